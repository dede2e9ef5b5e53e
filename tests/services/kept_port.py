"""A port that nobody else gets before, or between two lives of, the server that is told its number."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[int]:
    """Yields a free port of 127.0.0.1; while the block lasts only a server that asks for it by number can have it.

    A socket that is bound and does not listen leaves its port to those who also set SO_REUSEADDR, as servers do; the
    kernel gives it to nobody who asks for any port, nor to a connection.
    """
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]
