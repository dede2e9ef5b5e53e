"""Counts the tasks that the children of a worker have begun, and those that they are running, for their parent."""

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

from billiard import current_process
from celery import signals


class TaskTracker:
    """A flag and a count for each child, in memory that they share with their parent."""

    def __init__(self, children: int) -> None:
        self.children = children
        self._busy = multiprocessing.RawArray("b", children)
        self._taken = multiprocessing.RawArray("Q", children)

    @property
    def idle(self) -> bool:
        """Whether no child runs a task."""
        return not any(self._busy)

    @property
    def taken(self) -> int:
        """Tasks that the children have begun so far."""
        return sum(self._taken)

    def open(self) -> None:
        """Counts from here on; call it before the children are made."""
        for signal_, handler in self._handlers():
            signal_.connect(handler, weak=False)

    def close(self) -> None:
        """Counts no longer."""
        for signal_, handler in self._handlers():
            signal_.disconnect(handler)

    def wait_until_idle(self, most_s: float) -> None:
        """Returns when every child has finished its task, or after this time."""
        deadline = time.monotonic() + most_s
        while not self.idle and time.monotonic() < deadline:
            time.sleep(0.05)

    def _handlers(self) -> list[tuple[Any, Callable[..., None]]]:
        return [
            (signals.worker_process_init, self._free),  # a child that replaces a dead one runs nothing yet
            (signals.task_prerun, self._work),
            (signals.task_postrun, self._free),
        ]

    def _work(self, **_: Any) -> None:
        self._busy[current_process().index] = 1
        self._taken[current_process().index] += 1

    def _free(self, **_: Any) -> None:
        self._busy[current_process().index] = 0
