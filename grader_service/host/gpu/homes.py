"""What a process on the GPU belongs to: this grader's family, a container, or nothing that is known."""

import contextlib
import os
from pathlib import Path

import psutil

OWN = "this grader"


def home(pid: int) -> str:
    """`OWN` for this process and its descendants, else the control group, else the process alone.

    A pod of Docker has a control group that none of its processes can leave. One that the process shares with this
    grader says nothing about it, and neither does a process that is gone or lies outside our PID namespace.
    """
    if pid == os.getpid() or _descends_from_us(pid):
        return OWN
    group = _control_group(pid)
    if group is None or group == _control_group(os.getpid()):
        return f"process {pid}"
    return group


def _descends_from_us(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(parent.pid == os.getpid() for parent in psutil.Process(pid).parents())
    return False


def _control_group(pid: int) -> str | None:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        if any(line.rpartition(":")[2] != "/" for line in lines):  # the root group holds whatever has no other
            return "\n".join(lines)
    return None
