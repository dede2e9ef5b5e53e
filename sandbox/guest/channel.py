"""The guest's end of the connection to the host: frames of JSON and bytes over one Unix socket."""

import json
import os
import socket
import struct
from typing import Any

HEADER = struct.Struct(">II")
_MAX_REQUEST = 8 << 20


class Link:
    """Sends and receives frames; when the host goes away the pod ends."""

    def __init__(self, connection: socket.socket, path: str) -> None:
        self.path = path
        self._connection = connection
        self._owner = os.getpid()

    def send(self, kind: str, blob: bytes = b"", **body: Any) -> None:
        """Sends one message of this kind; `body` holds JSON values only.

        Does nothing in a forked child: a DataLoader worker inherits the socket, and two speakers would tear frames.
        """
        if os.getpid() != self._owner:
            return
        text = json.dumps({"kind": kind, **body}, allow_nan=False, separators=(",", ":")).encode()
        self._connection.sendall(HEADER.pack(len(text), len(blob)) + text + blob)

    def receive(self) -> dict[str, Any]:
        """The host's next request, its bytes under `blob`; ends the process when the host is gone."""
        text_length, blob_length = HEADER.unpack(self._read(HEADER.size))
        if text_length + blob_length > _MAX_REQUEST:
            os._exit(70)
        text = self._read(text_length)
        blob = self._read(blob_length)
        return {**json.loads(text), "blob": blob}

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._connection.recv(size - len(data))
            if not chunk:
                os._exit(0)
            data += chunk
        return bytes(data)


def connect(path: str) -> Link:
    """Connects to the host's socket; going through the folder's descriptor keeps a long path within 107 bytes."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)
    return Link(connection, path)
