"""Stands before a server that talks over a TCP or Unix socket: can go away, come back, break or silence connections."""

import contextlib
import socket
import struct
import threading
from pathlib import Path

Address = tuple[str, int] | str
"""Host and port, or the path of a Unix socket."""


class StreamProxy:
    """Passes bytes on in both directions, for any number of connections."""

    def __init__(self, server: Address, listen: Address = ("127.0.0.1", 0)) -> None:
        self._server = server
        self._away = False
        self._stopped = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._silenced: set[socket.socket] = set()
        self._listener = _new(listen)
        self._listener.bind(listen)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Of the TCP socket on which it listens."""
        return self._listener.getsockname()[1]

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
        self._stopped = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()

    def _accept(self) -> None:
        while not self._stopped:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._away:
                client.close()
                continue
            server = _new(self._server)
            try:
                server.connect(self._server)
            except OSError:
                client.close()
                server.close()
                continue
            with self._lock:
                self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

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


def _new(address: Address) -> socket.socket:
    return socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)


def before_postgres(url: str, folder: Path) -> tuple[StreamProxy, str]:
    """A proxy before the PostgreSQL that a URL with `?host=/folder` names, and the URL that goes through it."""
    base, host = url.split("?host=")
    name = ".s.PGSQL.5432"
    return StreamProxy(f"{host}/{name}", str(folder / name)), f"{base}?host={folder}"
