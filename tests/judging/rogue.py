"""A check that does what its file is named after; the tests copy this file under the name of each of `ROGUES`."""

import contextlib
import ctypes
import os
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np

from checks.api import Check, Result, passed
from grader_service.model.base import Wire

_asked = []


def chats():
    """Prints, and looks where it is."""
    print("to whoever listens")
    print("and here", file=sys.stderr)
    return ",".join(sorted(os.environ))


def counts():
    """Remembers how often it was asked."""
    _asked.append(1)
    return str(len(_asked))


def crashes():
    """Kills its process without a word to Python."""
    os.kill(os.getpid(), signal.SIGSEGV)


def details():
    """Has details that JSON does not have."""
    return {"number": np.float64(1.5), "set": {1}, "bad": "\udce9"}


def exits():
    """Leaves the process."""
    sys.exit(3)


def hangs():
    """Never answers."""
    while True:
        time.sleep(1)


def hoards():
    """Wants all memory that there is."""
    return str(len([bytearray(1 << 28) for _ in range(1 << 10)]))


def raises():
    """Raises."""
    return str(1 / 0)


def listens():
    """Makes a socket in a roundabout way."""
    return str(socket.socketpair())


def looks():
    """Reads what it should not, by every way; says which of them are open, and which file of its own it may read."""
    parent = os.getppid()
    return ",".join(name for name, look in _ways(parent).items() if _open(look))


def _ways(parent):
    secret = Path(__file__).parents[1] / "secrets"
    return {
        "own code": Path(__file__).read_bytes,
        "library": Path(os.environ.get("LD_LIBRARY_PATH", "").rpartition(":")[2], "library").read_bytes,
        "null": lambda: Path(os.devnull).open("w").close(),
        "key": (secret / "verdict-signing.pem").read_bytes,
        "signer": lambda: socket.socket(socket.AF_UNIX).connect(str(secret / "socket")),
        "removal": (secret / "verdict-signing.pem").unlink,
        "emptying": lambda: os.truncate(secret / "verdict-signing.pem", 0),
        "opening empty": lambda: os.open(secret / "verdict-signing.pem", os.O_RDONLY | os.O_TRUNC),
        "rights": lambda: secret.chmod(0o700),
        "rights of what is open": lambda: os.fchmod(os.open(secret, os.O_RDONLY), 0o700),
        "owner": lambda: os.chown(secret, os.getuid(), os.getgid()),
        "times": lambda: os.utime(secret),
        "attribute": lambda: os.setxattr(secret, "user.x", b""),
        "network": lambda: socket.socket().connect(("127.0.0.1", 9)),
        "environment": Path(f"/proc/{parent}/environ").read_bytes,
        "memory": lambda: Path(f"/proc/{parent}/mem").open("rb"),
        "open files": lambda: os.readlink(f"/proc/{parent}/fd/0"),
        "ptrace": lambda: _call(101, 16, parent, 0, 0),  # PTRACE_ATTACH
        "read memory": lambda: _call(310, parent, 0, 0, 0, 0, 0),  # process_vm_readv
        "uring": lambda: _call(425, 1, 0),
    }


def _open(look):
    try:
        look()
    except OSError:
        return False
    return True


def _call(*arguments):
    if ctypes.CDLL(None, use_errno=True).syscall(*map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def shouts():
    """Writes to the standard error of the process without end."""
    for _ in range(64):
        with contextlib.suppress(BlockingIOError):
            os.write(2, b"x" * 65536)


def spins():
    """Computes for ever."""
    while True:
        pass


def writes():
    """Writes a file."""
    Path("/tmp/written-by-a-check").write_text("x")


ROGUES = {
    rogue.__name__: rogue
    for rogue in (chats, counts, crashes, details, exits, hangs, hoards, listens, looks, raises, shouts, spins, writes)
}


class Nothing(Wire):
    """No fields."""


class Rogue(Check[Nothing, Nothing]):
    """See above."""

    id = Path(__file__).stem
    version = "1.0.0"
    title = "Rogue"
    needs = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> Result:
        said = ROGUES[self.id]()
        if isinstance(said, dict):
            return passed("", details=said)
        return passed(said or "")


CHECK = Rogue()
