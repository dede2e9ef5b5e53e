"""The process sandbox with pods that are forked from one interpreter, which has imported what prepared pods import.

Importing torch, torchvision and DALI anew for each pod is most of a short grading. Whose outcome hangs on a fresh
interpreter or on the walls between pods uses the real runners.
"""

import atexit
import contextlib
import functools
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from grader_service.run.pod_set import AHEAD
from sandbox.api import SpaceLimits
from sandbox.process.runner import ProcessRunner, ProcessRunSpace

_START_S = 120.0
_NAMED = "FORK_SERVER"


class ForkedRunner(ProcessRunner):
    """A `ProcessRunner` whose pods start in milliseconds; made by a thread that lives as long as pods are wanted."""

    def __init__(self, state_dir: Path) -> None:
        """Starts the interpreter that pods are forked from, if this process has none yet."""
        super().__init__(state_dir)
        _socket()

    def open_run(self, run_id: str, limits: SpaceLimits) -> "ForkedRunSpace":
        """See `SandboxRunner.open_run`."""
        del limits
        return ForkedRunSpace(self._state_dir, self._python, self._lab_data, run_id, self._gpu)


class ForkedRunSpace(ProcessRunSpace):
    """See `sandbox.api.RunSpace`."""

    def launch(
        self, command: list[str], memory_mib: int, cpus: tuple[int, ...], cwd: str, environment: dict[str, str]
    ) -> "_Forked":
        """See `ProcessRunSpace.launch`; of the command only the guest's file and program are of use."""
        *_, boot, program = command
        guest = {"boot": boot, "program": program, "cwd": cwd, "environment": environment}
        request = {"memory_mib": memory_mib, "cpus": list(cpus), **guest}
        order_end, orders = os.pipe()
        answers, answer_end = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(_socket())
            socket.send_fds(connection, [json.dumps(request).encode()], [order_end, answer_end])
            pid = int(connection.recv(32))
        os.close(order_end)
        os.close(answer_end)
        return _Forked(pid, orders, answers)


class _Forked:
    """A supervisor that somebody else is the parent of, with what `subprocess.Popen` offers of one."""

    def __init__(self, pid: int, orders: int, answers: int) -> None:
        self.pid = pid
        self.stdin = os.fdopen(orders, "wb", buffering=0)
        self.stdout = os.fdopen(answers, "rb", buffering=0)
        self._life = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """None while it lives; its status is its parent's to know."""
        return 0 if select.select([self._life], [], [], 0)[0] else None

    def wait(self) -> None:
        """Until it has ended."""
        select.select([self._life], [], [])

    def kill(self) -> None:
        """At once."""
        os.kill(self.pid, 9)

    def communicate(self, data: bytes, timeout: float) -> tuple[bytes, None]:
        """Sends an order and reads to the end."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.write(data)
        self.stdin.close()
        output, until = b"", time.monotonic() + timeout
        while select.select([self.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            if not (part := self.stdout.read(1 << 16)):
                self.stdout.close()
                os.close(self._life)
                return output, None
            output += part
        raise subprocess.TimeoutExpired("a forked pod", timeout)


@contextlib.contextmanager
def fork_server() -> Iterator[dict[str, str]]:
    """Starts the interpreter that pods are forked from; yields the variable that tells other processes of it."""
    with tempfile.TemporaryDirectory(prefix="grader-fork-", ignore_cleanup_errors=True) as folder:
        path = f"{folder}/socket"
        program = str(Path(__file__).with_name("fork_server.py"))
        command = [sys.executable, "-P", "-s", "-B", "-u", program, path, ",".join(AHEAD)]
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}  # pods share cores: who waits for a thread sleeps
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment) as process:
            try:
                yield {_NAMED: f"{process.pid}:{path}"}
            finally:
                process.kill()  # pods end by themselves


@functools.cache
def _socket() -> str:
    """Where the interpreter listens that pods are forked from: that of this test run, or one of this process."""
    stack = contextlib.ExitStack()
    named = os.environ.get(_NAMED) or stack.enter_context(fork_server())[_NAMED]
    atexit.register(stack.close)
    pid, _, path = named.partition(":")
    life = os.pidfd_open(int(pid))
    deadline = time.monotonic() + _START_S
    while not os.path.exists(path):
        assert not select.select([life], [], [], 0.05)[0], "the fork server ended while it imported"
        assert time.monotonic() < deadline, "the fork server did not begin"
    os.close(life)
    return path
