"""The host's end of the one connection that a pod may have: a Unix socket that only this pod can reach."""

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

from sandbox.frames import HEADER, FrameError, FrameLimits, Message, decode_json, encode, lengths
from sandbox.short_path import socket_address

SOCKET_NAME = "host.sock"
_POLL_S = 0.05


class Silence(Enum):
    """Why no message came."""

    CLOSED = "closed"
    """The guest's process closed the connection, or it ended before it connected."""
    DEADLINE = "deadline"


def listen(folder: Path) -> socket.socket:
    """The socket on which the guest that finds this folder as its link connects.

    Raises:
        OSError: the folder is not there or cannot be written to.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = folder / SOCKET_NAME
    try:
        with socket_address(path) as address:
            listener.bind(address)
        path.chmod(0o666)  # the folder around the pod's folder is closed to others, the pod's uid is another one
        listener.listen(1)
    except OSError:
        listener.close()
        raise
    return listener


class Endpoint:
    """Listens in a folder, accepts exactly one connection and exchanges frames with it.

    The first connection is ours: guest code connects before a line of the learner's runs. After that nobody listens any
    more, so that nothing else in the pod can speak.

    Args:
        place: the folder, in which the name is removed as well; or what `listen` made for us in a folder of another
            process, which removes it.
    """

    def __init__(self, place: Path | socket.socket, limits: FrameLimits) -> None:
        self._limits = limits
        self._connection: socket.socket | None = None
        self._listener = listen(place) if isinstance(place, Path) else place
        self._path = place / SOCKET_NAME if isinstance(place, Path) else None

    def connect(self, deadline: float, alive: Callable[[], bool]) -> Silence | None:
        """Waits for the guest until `deadline` (monotonic seconds); None when it is connected."""
        if self._connection is not None:
            return None
        next_look = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            try:
                self._listener.settimeout(_POLL_S)
                self._connection, _ = self._listener.accept()
            except TimeoutError:
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + 0.5
                    if not alive():
                        return Silence.CLOSED
            except OSError:  # closed by another thread
                return Silence.CLOSED
            else:
                _end(self._listener)
                self._forget_name()
                return None
        return Silence.DEADLINE

    def send(self, body: Mapping[str, object], blob: bytes, deadline: float) -> Silence | None:
        """Sends one frame; the guest's silence, if it no longer listens, is a value."""
        connection = self._connected()
        frame = encode(body, blob)
        try:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            connection.sendall(frame)
        except TimeoutError:
            return Silence.DEADLINE
        except OSError:
            return Silence.CLOSED
        return None

    def receive(self, deadline: float) -> Message | Silence:
        """Reads one frame until `deadline`.

        Raises:
            FrameError: what came is not a valid frame.
        """
        header = self._read(HEADER.size, deadline)
        if isinstance(header, Silence):
            return header
        json_length, blob_length = lengths(bytes(header), self._limits)
        text = self._read(json_length, deadline)
        if isinstance(text, Silence):
            return self._torn(text)
        blob = self._read(blob_length, deadline)
        if isinstance(blob, Silence):
            return self._torn(blob)
        return Message(decode_json(bytes(text), self._limits), bytes(blob))

    def close(self) -> None:
        """Closes the connection and the listener and removes the socket's name; wakes a thread that waits here."""
        for end in (self._connection, self._listener):
            if end is not None:
                _end(end)
        self._forget_name()

    def _forget_name(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _torn(self, silence: Silence) -> Silence:
        if silence is Silence.CLOSED:
            raise FrameError("the connection closed inside a frame")
        return silence

    def _read(self, size: int, deadline: float) -> bytearray | Silence:
        connection = self._connected()
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                return Silence.DEADLINE
            try:
                connection.settimeout(left)
                # Memory grows with what arrives, not with what the header promised.
                chunk = connection.recv(min(size - len(data), 1 << 16))
            except TimeoutError:
                return Silence.DEADLINE
            except OSError:
                return Silence.CLOSED
            if not chunk:
                return Silence.CLOSED if not data else self._torn(Silence.CLOSED)
            data += chunk
        return data

    def _connected(self) -> socket.socket:
        if self._connection is None:
            raise RuntimeError("connect() comes first")
        return self._connection


def _end(end: socket.socket) -> None:
    """Closes a socket for whoever has it: the process that made a listener for us may not have closed its own copy."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
