"""Starts the page's server and ends it when told to."""

import signal
import socket
import threading
from collections.abc import Callable, Sequence

import uvicorn
from starlette.applications import Starlette

from checks.registry import Registry
from grader_service.errors import ConfigurationError
from grader_service.store.engine import Store
from grader_service.web.access import Tokens
from grader_service.web.app import make_app
from grader_service.web.hosts import address, allowed_names, is_loopback
from grader_service.web.oidc import Provider
from grader_service.web.site import Site

_STOP_S = 5


def make_site(
    store: Store,
    tokens: Tokens,
    host: str,
    names: Sequence[str] = (),
    provider: Provider | None = None,
    acting: Store | None = None,
) -> Site:
    """What the page works with when it is served on this host.

    Args:
        store: pages are read from it.
        tokens: that open the page.
        host: on which it listens.
        names: of hosts under which proxies serve it.
        provider: of people who sign in as themselves.
        acting: the same store in the role in which operators act; `store` where there is none.

    Raises:
        ConfigurationError: others than this machine's users could read without signing in.
    """
    if tokens.viewer is None and provider is None and (names or not is_loopback(host)):
        reason = f"is served as {', '.join(names)}" if names else f"listens on {host}"
        raise ConfigurationError(
            f"the admin page {reason}, where others can reach it, and reading needs no token: set "
            "GRADER_WEB_VIEWER_TOKEN_FILE to a file with a token, or GRADER_WEB_OIDC_ISSUER and what belongs to it, or "
            "use GRADER_WEB_HOST=127.0.0.1 without --name"
        )
    return Site(store, acting or store, Registry(), tokens, allowed_names(host, names), provider=provider)


def serve(site: Site, host: str, port: int, announce: Callable[[str], None], proxies: Sequence[str] = ()) -> None:
    """Serves until SIGTERM or SIGINT; `announce` gets the address once connections are accepted.

    Args:
        proxies: networks whose `X-Forwarded-*` is believed.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    listening = listen(host, port)
    server = make_server(make_app(site), proxies)
    if threading.current_thread() is threading.main_thread():
        # The server raises the signal that stopped it once more when it is done; stopping is what was asked for.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
    announce(address(host, listening.getsockname()[1]))
    with listening:
        server.run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections at once.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, where = found[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(where, family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host} port {port}: {error}; choose with GRADER_WEB_HOST and GRADER_WEB_PORT"
        ) from error


def make_server(app: Starlette, proxies: Sequence[str] = ()) -> uvicorn.Server:
    """A server with bounded waits; the client is the last address of `X-Forwarded-For` that is in none of `proxies`."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",  # in Python, whatever else is installed: it reads strangers' bytes
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            limit_concurrency=200,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=_STOP_S,
        )
    )
