"""Notices that a learner's code waits for something that never comes: no processor time, nothing read or written.

All processes of the pod count, which are those below the one that started it: where pods are plain processes too, it
inherits every orphan of the pod's tree. The watch's own thread does not count.
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

    def _watch(self) -> None:
        root = os.getppid()
        before, since = activity(root), time.monotonic()
        while not self._over:
            time.sleep(self._poll_s)
            seen = activity(root)
            if seen.cpu_s - before.cpu_s > _BUSY * self._poll_s or seen.characters != before.characters:
                since = time.monotonic()
            before = seen
            if time.monotonic() - since >= self._seconds and not self._over:
                self._over = True
                self._ring()


def activity(root: int) -> Activity:
    """What all processes below this one have done so far, without this thread; of what ended meanwhile nothing.

    Args:
        root: process id; 0 for every process.
    """
    table: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = _fields(f"/proc/{name}/stat")
                table[int(name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    below = [pid for pid in table if _is_below(pid, root, table)]
    cpu = sum(table[pid][1] for pid in below)
    return Activity(cpu * _TICK_S - time.thread_time(), sum(_characters(pid) for pid in below))


def _is_below(pid: int, root: int, table: dict[int, tuple[int, int]]) -> bool:
    """Whether it descends from the root; ids that were given anew meanwhile must not lead round in a circle."""
    for _ in range(len(table)):
        if pid not in table:
            return False
        pid = table[pid][0]
        if pid == root:
            return True
    return False


def _characters(pid: int) -> int:
    """Read and written by a process; of this one by all threads but this, which reads about all others."""
    if pid != os.getpid():
        return _read_and_written(f"/proc/{pid}/io")
    own = str(_thread.get_native_id())
    threads = f"/proc/{pid}/task"
    return sum(_read_and_written(f"{threads}/{name}/io") for name in os.listdir(threads) if name != own)


def _read_and_written(path: str) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(path, "rb") as file:
        return sum(int(line.split()[1]) for line in file.read().splitlines()[:2])
    return 0


def _fields(path: str) -> list[bytes]:
    """Fields of a process's state from the third on; the name before may hold spaces and brackets."""
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()
