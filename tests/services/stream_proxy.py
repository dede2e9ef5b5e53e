"""Stands before a server that talks over a TCP or Unix socket: can go away, come back, break or silence connections."""

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from pathlib import Path

Address = tuple[str, int] | str
"""Host and port, or the path of a Unix socket."""


class Listener(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Hands each connection to `serve`, in a thread of its own; afterwards the connection is closed."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: Address, serve: Callable[[socket.socket], None]) -> None:
        self.address_family = _family(address)
        super().__init__(address, lambda client, _address, _server: serve(client))
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Listens no more; connections that are open stay so."""
        self.shutdown()
        self.server_close()


class StreamProxy:
    """Passes bytes on in both directions, for any number of connections."""

    def __init__(self, server: Address, listen: Address = ("127.0.0.1", 0)) -> None:
        self._server = server
        self._away = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._silenced: set[socket.socket] = set()
        self._listener = Listener(listen, self._serve)

    @property
    def port(self) -> int:
        """Of the TCP socket on which it listens."""
        return self._listener.server_address[1]

    def reset(self) -> int:
        """Breaks every open connection; returns how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    # Closing without lingering tells the peer that the connection was reset.
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def silence(self) -> int:
        """Open connections stay open and carry nothing any more, as behind a firewall that forgot them.

        Returns how many there were; new connections work.
        """
        with self._lock:
            pairs, self._pairs = self._pairs, []
        self._silenced.update(end for pair in pairs for end in pair)
        return len(pairs)

    def go_away(self) -> None:
        """The server is not there any more: connections break, new ones get no answer."""
        self._away = True
        self.reset()

    def come_back(self) -> None:
        """The server is there again."""
        self._away = False

    def close(self) -> None:
        """Ends it."""
        self._listener.close()
        self.reset()

    def _serve(self, client: socket.socket) -> None:
        if self._away:
            return
        with socket.socket(_family(self._server)) as server, contextlib.suppress(OSError):
            server.connect(self._server)
            with self._lock:
                self._pairs.append((client, server))
            threading.Thread(target=self._copy, args=(server, client), daemon=True).start()
            self._copy(client, server)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                if source not in self._silenced:
                    sink.sendall(chunk)
        # One end is gone: so is the other, and both copiers come here.
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_UNIX if isinstance(address, str) else socket.AF_INET


def before_postgres(url: str, folder: Path) -> tuple[StreamProxy, str]:
    """A proxy before the PostgreSQL that a URL with `?host=/folder` names, and the URL that goes through it."""
    base, host = url.split("?host=")
    name = ".s.PGSQL.5432"
    return StreamProxy(f"{host}/{name}", str(folder / name)), f"{base}?host={folder}"
