"""Connections to a PostgreSQL of another host: what is lost with it is noticed, whatever was asked last."""

import os
import socket

import pytest

from grader_service.store import migrating
from grader_service.store.engine import Store
from tests.services.stream_proxy import StreamProxy

pytestmark = pytest.mark.integration
_OPTIONS = {
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 30,
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 10,
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): 3,
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): 60_000,
}
"""After a minute in which the other host acknowledged nothing, the kernel ends the connection."""


@pytest.fixture
def store(postgres_url):
    """Talks to its database by TCP."""
    base, folder = postgres_url.split("?host=")
    proxy = StreamProxy(f"{folder}/.s.PGSQL.5432")
    opened = Store(base.replace("grader@", f"grader@127.0.0.1:{proxy.port}"))
    yield opened
    opened.close()
    proxy.close()


@pytest.mark.parametrize(
    "opened", [Store.transaction, lambda store: migrating.alone(store.engine)], ids=["service", "migration"]
)
def test_a_host_that_went_silent_is_given_up(store, opened):
    """Within a minute, by the kernel, on the connection of a migration as on all others."""
    with opened(store) as connection:
        own = os.dup(connection.connection.driver_connection.fileno())
        with socket.socket(fileno=own) as theirs:
            found = {(level, name): theirs.getsockopt(level, name) for level, name in _OPTIONS}
    assert found == _OPTIONS
