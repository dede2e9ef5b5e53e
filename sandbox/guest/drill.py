"""A guest that does what it is told, however hostile: the other half of `tests/sandbox/conformance.py`."""

# ruff: noqa: ARG001 - every action takes the same two arguments

import contextlib
import os
import pathlib
import signal
import socket
import struct
import sys
import threading
import time
from typing import Any

from .channel import Link

_IO_SETUP = 0 if os.uname().machine == "aarch64" else 206


def run(link: Link) -> None:
    """Guest program: performs one action per request; imports ahead what a learner's pod would."""
    if names := os.environ.get("GRADER_AHEAD"):  # left in the environment, so that `facts` shows it
        from .learner.main import import_ahead

        import_ahead(names)
    while True:
        request = link.receive()
        globals()[f"do_{request['kind']}"](link, request)


def do_echo(link: Link, request: dict[str, Any]) -> None:
    """Sends back what came."""
    link.send("echo", request["blob"], value=request["value"])


def do_exit(link: Link, request: dict[str, Any]) -> None:
    """Ends the process at once."""
    os._exit(request["code"])


def do_signal(link: Link, request: dict[str, Any]) -> None:
    """Dies of a memory fault, which even process 1 of a container cannot ignore."""
    import ctypes

    ctypes.string_at(0)


def do_hang(link: Link, request: dict[str, Any]) -> None:
    """Ignores every signal that can be ignored, and never answers."""
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def do_spin(link: Link, request: dict[str, Any]) -> None:
    """Keeps a processor busy for ever."""
    while True:
        pass


def do_daemon(link: Link, request: dict[str, Any]) -> None:
    """Leaves a process behind that has its own session, no parent and no terminal, and writes for ever."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            while True:
                with open(request["path"], "ab") as file:
                    file.write(b".")
                time.sleep(0.01)
        os._exit(0)
    os.wait()
    link.send("left")


def do_count(link: Link, request: dict[str, Any]) -> None:
    """Counts in a thread; `read_count` says how far."""
    counter = _Counter()
    globals()["_counter"] = counter
    threading.Thread(target=counter.run, daemon=True).start()
    counter.runs.wait()
    link.send("counting")


class _Counter:
    def __init__(self) -> None:
        self.value = 0
        self.runs = threading.Event()
        self._last = time.monotonic()
        self._longest = 0.0

    def run(self) -> None:
        while True:
            now = time.monotonic()
            self._longest = max(self._longest, now - self._last)
            self._last = now
            self.value += 1
            self.runs.set()
            time.sleep(0.005)

    def longest(self) -> float:
        """Longest time in seconds between two counts; the one under way is among them, since it may be asked first."""
        last = self._last  # before `_longest`, which is set before it
        return max(time.monotonic() - last, self._longest)


def do_read_count(link: Link, request: dict[str, Any]) -> None:
    """Says how far the counter is, and the longest time in seconds for which it stood."""
    counter = globals()["_counter"]
    link.send("count", value=counter.value, longest=counter.longest())


def do_loaded(link: Link, request: dict[str, Any]) -> None:
    """Which of these modules are imported."""
    link.send("loaded", value=[name for name in request["names"] if name in sys.modules])


def do_raw(link: Link, request: dict[str, Any]) -> None:
    """Sends bytes that no `Link` would, then waits or closes."""
    link._connection.sendall(bytes.fromhex(request["data"]))
    if request.get("close"):
        link._connection.close()
    time.sleep(3600)


def do_drip(link: Link, request: dict[str, Any]) -> None:
    """Promises a frame and sends it a byte at a time."""
    link._connection.sendall(struct.pack(">II", 100_000, 0))
    while True:
        link._connection.sendall(b" ")
        time.sleep(0.05)


def do_connect_again(link: Link, request: dict[str, Any]) -> None:
    """Tries to open a second connection to the host."""
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(1.0)
        os.chdir(os.path.dirname(link.path))
        connection.connect(os.path.basename(link.path))
    except OSError:
        link.send("second", connected=False)
    else:
        link.send("second", connected=True)


def do_listen(link: Link, request: dict[str, Any]) -> None:
    """Opens a socket in TMPDIR, as workers of a DataLoader do."""
    from multiprocessing.connection import Listener

    try:
        Listener(family="AF_UNIX").close()
    except OSError as error:
        link.send("listening", problem=str(error))
    else:
        link.send("listening", problem="")


def do_eat_memory(link: Link, request: dict[str, Any]) -> None:
    """Takes memory until something stops it."""
    kept = []
    while True:
        block = bytearray(16 << 20)
        for offset in range(0, len(block), 4096):
            block[offset] = 1
        kept.append(block)


def do_fork_many(link: Link, request: dict[str, Any]) -> None:
    """Forks until it cannot; the children sleep."""
    made = 0
    with contextlib.suppress(OSError):
        while made < request["most"]:
            if os.fork() == 0:
                time.sleep(3600)
            made += 1
    link.send("forked", made=made)


def do_flood(link: Link, request: dict[str, Any]) -> None:
    """Writes a lot to standard output, without a line's end."""
    block = b"x" * (1 << 16)
    for _ in range(request["mib"] * 16):
        os.write(1, block)
    link.send("flooded")


def do_say(link: Link, request: dict[str, Any]) -> None:
    """Prints a text as a learner's code would, to standard output or to standard error."""
    print(request["text"], file=getattr(sys, request["stream"]))
    link.send("said")


def do_write(link: Link, request: dict[str, Any]) -> None:
    """Writes a file; says how many bytes were taken and which error ended it."""
    written, error = 0, ""
    try:
        with open(request["path"], "wb", buffering=0) as file:
            while written < request["size"]:
                written += file.write(b"\0" * min(1 << 20, request["size"] - written))
    except OSError as failure:
        error = os.strerror(failure.errno or 0)
    link.send("written", size=written, error=error)


def do_size(link: Link, request: dict[str, Any]) -> None:
    """Size of a file, or -1."""
    path = pathlib.Path(request["path"])
    link.send("size", value=path.stat().st_size if path.exists() else -1)


def do_take_quotas(link: Link, request: dict[str, Any]) -> None:
    """Takes and keeps what the kernel counts for each user or for the host; tells how many of each it got."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    got = {"pipes": 0, "inotify": 0, "aio": 0}
    while got["pipes"] < request["pipes"]:
        os.pipe()
        got["pipes"] += 1
    while got["inotify"] < 1000 and libc.inotify_init() >= 0:
        got["inotify"] += 1
    while got["aio"] < 100 and libc.syscall(_IO_SETUP, 1000, ctypes.byref(ctypes.c_ulong(0))) == 0:
        got["aio"] += 1
    link.send("taken", pipes=got["pipes"], inotify=got["inotify"], aio=got["aio"])


def do_pipe_size(link: Link, request: dict[str, Any]) -> None:
    """Bytes that a new pipe holds: less than usual where this user has too many."""
    import fcntl

    link.send("pipe", value=fcntl.fcntl(os.pipe()[1], fcntl.F_GETPIPE_SZ))


def do_facts(link: Link, request: dict[str, Any]) -> None:
    """What the pod's process is and may do."""
    import resource

    status = dict(
        line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines() if ":" in line
    )
    interfaces = [line.split(":")[0].strip() for line in pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]]
    link.send(
        "facts",
        uid=os.getuid(),
        capabilities=status["CapEff"].strip(),
        bounding=status["CapBnd"].strip(),
        no_new_privileges=status["NoNewPrivs"].strip(),
        seccomp=status["Seccomp"].strip(),
        interfaces=interfaces,
        cpus=sorted(os.sched_getaffinity(0)),
        environment=sorted(os.environ),
        core_limit=resource.getrlimit(resource.RLIMIT_CORE)[0],
        path=[entry for entry in os.sys.path if "grader" in entry],  # type: ignore[attr-defined]
    )
