"""A socket to the real Docker engine that can fail, answer late, or go away: an engine on a bad day."""

import contextlib
import os
import re
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.services.stream_proxy import Listener

ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


@dataclass
class Fault:
    """What happens to the next `times` requests whose method and path match."""

    pattern: str
    action: int | str
    times: int = 1_000_000
    met: int = 0


class Faults:
    """Those of a server, which tests add and take away."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def fail(self, pattern: str, action: int | str, times: int = 1_000_000) -> Fault:
        """Adds a fault; the newest one that matches counts."""
        fault = Fault(pattern, action, times)
        with self._lock:
            self._faults.insert(0, fault)
        return fault

    def heal(self) -> None:
        """Takes every fault away."""
        with self._lock:
            self._faults.clear()

    def meet(self, line: str) -> int | str | None:
        """What happens to this request; None where nothing does."""
        with self._lock:
            for fault in self._faults:
                if fault.met < fault.times and re.search(fault.pattern, line):
                    fault.met += 1
                    return fault.action
        return None


class EngineProxy(Faults):
    """Listens on a socket of its own and passes on, request by request.

    Actions of faults: `refuse`, an error 500, not passed on · `drop`, the connection breaks, not passed on · `lose`,
    passed on, and the answer is lost · `hang`, passed on, and no answer comes.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / "engine.sock"
        self.requests: list[str] = []
        self._stopped = threading.Event()
        self._listener = Listener(str(self.path), self._serve)

    @property
    def url(self) -> str:
        """For a client."""
        return f"unix://{self.path}"

    def close(self) -> None:
        """Goes away, as an engine that is stopped."""
        self._stopped.set()
        self.path.unlink(missing_ok=True)
        self._listener.close()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            request = _read_request(client)
            if not request:
                return
            line = request.split(b"\r\n", 1)[0].decode()
            self.requests.append(line)
            action = self.meet(line)
            if action == "drop":
                return
            if action == "refuse":
                text = b'{"message": "the engine has a bad day"}'
                client.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n")
                client.sendall(b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
                return
            with socket.socket(socket.AF_UNIX) as engine:
                engine.connect(ENGINE)
                # One request for each connection, so that each can meet its own fault.
                engine.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                while chunk := engine.recv(1 << 16):
                    if action is None:
                        client.sendall(chunk)
            if action == "hang":
                self._stopped.wait(60)


def _read_request(client: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(1 << 16)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    head = re.sub(rb"\r\nConnection: [^\r]*", b"", head, flags=re.IGNORECASE)
    length = re.search(rb"content-length: (\d+)", head.lower())
    while length and len(body) < int(length[1]):
        body += client.recv(1 << 16)
    return head + b"\r\n\r\n" + body
