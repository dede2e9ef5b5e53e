"""Starts pods of the process sandbox by forking: a program that has torch, torchvision and DALI imported already.

    python -P -s -B fork_server.py SOCKET MODULES

MODULES, separated by commas, are imported first; one that is not there is left out. Each request is JSON (`memory_mib`,
`cpus`, `boot`, `program`, `cwd`, `environment`) with two descriptors, those of the supervisor's standard input and
output; the answer is the supervisor's process id. The server ends with whoever started it.
"""

import contextlib
import ctypes
import gc
import importlib.util
import io
import json
import os
import resource
import signal
import socket
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Imports, then forks a pod for each request."""
    _die_with_parent()
    supervisor = _load("process_supervisor", Path(__file__).parents[2] / "sandbox" / "process" / "supervisor.py")
    for name in sys.argv[2].split(","):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # a pod that looked through all of it for garbage would copy its memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a supervisor ended: it leaves no zombie
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(f"{sys.argv[1]}.new")
    server.listen()
    os.rename(f"{sys.argv[1]}.new", sys.argv[1])  # where it can be seen, it answers
    while True:
        connection, _ = server.accept()
        with connection:
            data, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 2)
            pid = os.fork()
            if pid == 0:
                server.close()
                connection.close()
                _supervise(supervisor, json.loads(data), *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            connection.sendall(str(pid).encode())


def _supervise(supervisor: Any, request: dict[str, Any], orders: int, answers: int) -> None:
    """As `supervisor.main` of the process sandbox, with a guest that is forked."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(orders, 0)
    os.dup2(answers, 1)
    os.close(orders)
    os.close(answers)
    ctypes.CDLL(None, use_errno=True).prctl(supervisor.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    output, write_end = os.pipe()
    os.set_blocking(output, False)
    guest = os.fork()
    if guest == 0:
        os.close(output)
        _become_guest(request, write_end)
    os.close(write_end)
    supervisor.acknowledge()
    report = supervisor.supervise(guest, output, request["memory_mib"] * 1024)
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(report).encode() + b"\n")
    os._exit(0)


def _become_guest(request: dict[str, Any], write_end: int) -> None:
    """Everything that a fresh interpreter would have of its own; then the guest's first file."""
    os.setsid()
    _die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for given, wanted in ((nowhere, 0), (write_end, 1), (write_end, 2)):
        os.dup2(given, wanted)
    os.close(nowhere)
    os.close(write_end)
    # What is written can be read at once, as from an interpreter with -u.
    out, err = (io.TextIOWrapper(os.fdopen(number, "wb", 0), write_through=True) for number in (1, 2))
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), out, err
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    cpus = set(request["cpus"]) & os.sched_getaffinity(0)
    if cpus:
        os.sched_setaffinity(0, cpus)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()
    boot = request["boot"]
    sys.argv = [boot, request["program"]]
    module = types.ModuleType("__main__")
    module.__file__ = boot
    sys.modules["__main__"] = module
    try:
        exec(compile(Path(boot).read_bytes(), boot, "exec"), module.__dict__)  # noqa: S102 - as an interpreter does
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))
    except BaseException:  # noqa: BLE001 - whatever it is, the pod ends with it
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _load(name: str, path: Path) -> Any:
    """A module by its file: the repository is on no pod's path."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
