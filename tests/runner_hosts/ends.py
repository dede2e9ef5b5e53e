"""Both ends of the way between a control host and a runner host, in this process, and services behind it."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal

from grader_service.runner_hosts.certificates import make_pair
from grader_service.runner_hosts.register import Register
from grader_service.runner_hosts.tunnel import accept, connect
from tests.services.stream_proxy import Listener

ANY = ("127.0.0.1", 0)


class Echo(Listener):
    """A service that answers with its name and what it was sent."""

    def __init__(self, name: str) -> None:
        self.met = 0
        """Connections that it has seen."""
        self._name = name.encode()
        super().__init__(ANY, self._serve)

    @property
    def where(self) -> tuple[str, int]:
        return self.server_address

    def _serve(self, client: socket.socket) -> None:
        self.met += 1
        while piece := client.recv(1 << 16):
            client.sendall(self._name + b" " + piece)


class Control:
    """A control host, with the folder of its secrets."""

    def __init__(self, folder: Path, portal: BlockingPortal) -> None:
        folder.mkdir()
        self.register = Register(folder / "hosts")
        self.register.prepare()
        self._portal = portal

    def accepts(self, **targets: tuple[str, int]) -> tuple[str, int]:
        """Starts its end; where it takes connections."""
        return self._portal.start_task(accept, self.register, targets, ANY)[1]

    def host(self, name: str, folder: Path) -> Path:
        """Makes a runner host known; the folder with what it was given."""
        with self.register.added(name) as (key, certificate):
            return given(folder, key, certificate, self.register.certificate.read_bytes())


def given(folder: Path, key: bytes, certificate: bytes, control: bytes) -> Path:
    """The files of a runner host."""
    folder.mkdir()
    for name, data in {"host.key": key, "host.pem": certificate, "control.pem": control}.items():
        (folder / name).write_bytes(data)
    return folder


def stranger(folder: Path, control: Control) -> Path:
    """Of a host that nobody made known, and which knows the control host."""
    return given(folder, *make_pair("gpu1", server=False), control.register.certificate.read_bytes())


@contextmanager
def portal_that_ends() -> Iterator[BlockingPortal]:
    """An event loop in a thread of its own, whose tasks end with the block."""
    with start_blocking_portal() as portal:
        yield portal
        portal.call(portal.stop, True)


class Ends:
    """What tests take connections with."""

    def __init__(self, portal: BlockingPortal, kept: ExitStack) -> None:
        self._portal, self._kept = portal, kept

    def echo(self, name: str) -> Echo:
        made = Echo(name)
        self._kept.callback(made.close)
        return made

    def control(self, folder: Path) -> Control:
        return Control(folder, self._portal)

    def connects(self, files: Path, control: tuple[str, int], *routes: str) -> dict[str, tuple[str, int]]:
        """Starts a runner host's end; where it listens for each of these routes."""
        return self._portal.start_task(connect, files, control, dict.fromkeys(routes, ANY))[1]


def asked(where: tuple[str, int], text: bytes = b"hello") -> bytes:
    """What is answered there; nothing where the connection ends without an answer."""
    with socket.create_connection(where, 10) as client:
        try:
            client.sendall(text)
            return client.recv(1 << 16)
        except ConnectionError:
            return b""


def greeted(where: tuple[str, int], context: ssl.SSLContext, text: bytes = b"hello") -> bytes:
    """The same through TLS that the test makes itself.

    Raises:
        ssl.SSLError: no agreement was come to.
    """
    with socket.create_connection(where, 10) as raw, context.wrap_socket(raw) as client:
        client.sendall(text)
        return client.recv(1 << 16)


def refused(where: tuple[str, int], context: ssl.SSLContext, text: bytes = b"hello") -> bool:
    """Whether a connection came to nothing: in the handshake, or when the first answer should come."""
    try:
        return greeted(where, context, text) == b""
    except (ssl.SSLError, ConnectionError):
        return True
