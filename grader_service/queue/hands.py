"""Which children of a worker have work in hand, as their parent sees it."""

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

from billiard import current_process
from celery import signals


class Hands:
    """A flag and a count for each child, in memory that they share with their parent.

    Args:
        children: processes that work at the same time.
    """

    def __init__(self, children: int) -> None:
        self.children = children
        self._busy = multiprocessing.RawArray("b", children)
        self._taken = multiprocessing.RawArray("Q", children)

    @property
    def idle(self) -> bool:
        """Whether no child has anything in hand."""
        return not any(self._busy)

    @property
    def taken(self) -> int:
        """Wake-ups that the children have taken so far."""
        return sum(self._taken)

    def open(self) -> None:
        """Looks from here on; before the children are made."""
        for signal_, handler in self._handlers():
            signal_.connect(handler, weak=False)

    def close(self) -> None:
        """Looks no longer."""
        for signal_, handler in self._handlers():
            signal_.disconnect(handler)

    def wait_until_empty(self, most_s: float) -> None:
        """Returns when every child has finished what it had in hand, or after this time."""
        deadline = time.monotonic() + most_s
        while not self.idle and time.monotonic() < deadline:
            time.sleep(0.05)

    def _handlers(self) -> list[tuple[Any, Callable[..., None]]]:
        return [
            (signals.worker_process_init, self._free),  # a child in a dead one's place has nothing in hand
            (signals.task_prerun, self._work),
            (signals.task_postrun, self._free),
        ]

    def _work(self, **_: Any) -> None:
        self._busy[current_process().index] = 1
        self._taken[current_process().index] += 1

    def _free(self, **_: Any) -> None:
        self._busy[current_process().index] = 0
