"""Ends the learner's code when its time is over: by an exception first, and over its head if it catches that too."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

GRACE_S = 5.0
"""From the exception to the end of patience; also the time to clean up in."""


class LearnerTimeout(BaseException):
    """The learner's code used up its time; not an `Exception`, so that `except Exception` does not swallow it."""


class Deadline:
    """Raises `LearnerTimeout` in the main thread after some seconds; calls `abandon` when the code still runs later.

    `abandon` is called on top of the learner's stack. It may use the pod as if the code had returned, and never returns
    itself: code that catches everything for ever is left where it stands.
    """

    def __init__(
        self,
        seconds: float,
        ring: Callable[[FrameType | None], None],
        abandon: Callable[[], None] | None,
        grace_s: float,
    ) -> None:
        self.over = False
        self._seconds = seconds
        self._ring = ring
        self._abandon = abandon
        self._grace_s = grace_s
        self._rang = False

    def start(self) -> None:
        """Starts the clock."""
        signal.signal(signal.SIGALRM, self._out_of_time)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, self._grace_s)

    def ring_now(self) -> None:
        """As if the time were up; from any thread."""
        signal.setitimer(signal.ITIMER_REAL, 1e-6, self._grace_s)

    def stop(self) -> None:
        """Stops it; safe to call at any time."""
        self.over = True
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _out_of_time(self, _: int, frame: FrameType | None) -> Any:
        if self.over:
            return
        if not self._rang:
            self._rang = True
            self._ring(frame)
            raise LearnerTimeout
        if self._abandon is not None:
            self.stop()
            self._abandon()
        raise LearnerTimeout


_QUESTIONS_S = 15.0
"""For reading what the code left behind, of which its own `__str__`, `__len__` and the like are a part."""
_AGAIN_S = 1.0
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@contextmanager
def impatient(*folders: str) -> Iterator[None]:
    """Interrupts methods of the learner's objects that are still running after some seconds, again and again.

    What reads them takes any exception for an answer. Our own code is never interrupted.

    Args:
        folders: where the learner's source lies.
    """
    sources = tuple(folder + os.sep for folder in folders)

    def interrupt(_: int, frame: FrameType | None) -> None:
        # Who is at work is said by the innermost frame that is ours or theirs; below it may lie anybody's.
        while frame is not None and not frame.f_code.co_filename.startswith(_OURS):
            if frame.f_code.co_filename.startswith(sources):
                raise LearnerTimeout
            frame = frame.f_back

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, _QUESTIONS_S, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
