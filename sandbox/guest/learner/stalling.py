"""Notices that a learner's code waits for something that never comes: no processor time, nothing read or written.

All processes of the pod count. Where pods are plain processes, so do others of the same user that were started later;
by them a stall may go unnoticed, never be seen where there is none.
"""

import _thread
import contextlib
import os
import time
from collections.abc import Callable
from typing import NamedTuple

_POLL_S = 2.0
_BUSY = 0.02
"""Share of one processor from which on something is at work; threads that only look now and then take less."""
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class Activity(NamedTuple):
    """What all processes together have done so far."""

    cpu_s: float
    characters: int
    """Read and written, by whatever call."""


class StallWatch:
    """Calls `ring` once when nothing happened for some seconds; on a thread that the code's own tools do not list."""

    def __init__(self, seconds: float, ring: Callable[[], None], poll_s: float = _POLL_S) -> None:
        self._seconds = seconds
        self._ring = ring
        self._poll_s = poll_s
        self._over = False

    def start(self) -> None:
        """Starts to watch."""
        _thread.start_new_thread(self._watch, ())

    def stop(self) -> None:
        """Ends it, at once or at the next look; safe to call at any time."""
        self._over = True

    def _watch(self, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.monotonic) -> None:
        started = _started(os.getpid())
        before, since = activity(started), now()
        while not self._over:
            sleep(self._poll_s)
            seen = activity(started)
            if seen.cpu_s - before.cpu_s > _BUSY * self._poll_s or seen.characters != before.characters:
                since = now()
            before = seen
            if now() - since >= self._seconds and not self._over:
                self._over = True
                self._ring()


def activity(started: int, proc: str = "/proc") -> Activity:
    """What this user's processes have done that began at this tick or later; of what ended meanwhile nothing."""
    cpu, characters = 0, 0
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = _fields(f"{proc}/{name}/stat")
            if int(fields[19]) < started:
                continue
            cpu += int(fields[11]) + int(fields[12])
            with open(f"{proc}/{name}/io", "rb") as file:
                characters += sum(int(line.split()[1]) for line in file.read().splitlines()[:2])
    return Activity(cpu * _TICK_S, characters)


def _started(pid: int) -> int:
    """The tick at which a process began."""
    return int(_fields(f"/proc/{pid}/stat")[19])


def _fields(path: str) -> list[bytes]:
    """Fields of a process's state from the third on; the name before may hold spaces and brackets."""
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()
