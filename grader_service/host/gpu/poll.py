"""Looks at a GPU again and again in a thread of its own, so that what lasts shorter than a block is seen too."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from grader_service.host.gpu.homes import home
from grader_service.host.gpu.monitor import GpuGone, GpuMonitor, Utilisation

EVERY_S = 0.1
"""A look waits up to 10 ms for the driver of a busy H100, and costs next to no processor time."""
_MOST_SAMPLES = 36_000


@dataclass(frozen=True)
class Sample:
    """One look."""

    asked: float
    """Host monotonic clock before the driver was asked, seconds."""
    at: float
    """The same when it had answered, which may be late on a busy host."""
    use: Utilisation
    homes: Mapping[int, str]
    """Process id to what the process belongs to, told when it was first seen: it may be gone soon."""


class GpuPoll:
    """Samples one GPU from `with` on until it ends; keeps the last hour.

    Args:
        monitor: the GPU; closed at the end.
        every_s: pause between looks, seconds.
    """

    def __init__(self, monitor: GpuMonitor, every_s: float = EVERY_S, home: Callable[[int], str] = home) -> None:
        self.monitor = monitor
        self._every_s = every_s
        self._home = home
        self._homes: dict[int, str] = {}
        self._samples: deque[Sample] = deque(maxlen=_MOST_SAMPLES)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="gpu-poll", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.monitor.close()

    def look(self) -> Sample:
        """One look now, kept like the others.

        Raises:
            GpuGone: the GPU does not answer.
        """
        asked = time.monotonic()
        use = self.monitor.utilisation()
        with self._lock:
            for pid in use.processes:
                if pid not in self._homes:
                    self._homes[pid] = self._home(pid)
            sample = Sample(asked, time.monotonic(), use, {pid: self._homes[pid] for pid in use.processes})
            self._samples.append(sample)
        return sample

    def between(self, start: float, end: float) -> list[Sample]:
        """Samples taken in this time of the host's monotonic clock, oldest first."""
        with self._lock:
            return [sample for sample in self._samples if start <= sample.at <= end]

    def _work(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self.look()
            except GpuGone:
                continue  # whoever decides looks for himself, and hears of it
