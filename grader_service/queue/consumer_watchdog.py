"""Ends a worker that takes no wake-ups any more although some wait, so that its supervisor starts another.

A consumer that lost its broker in an unlucky moment can stay connected and read nothing, without an error that anyone
would see. Nothing is lost meanwhile, but nothing moves either.
"""

import os
import signal
import time
from collections.abc import Callable

import structlog

from grader_service.queue.task_tracker import TaskTracker

log = structlog.get_logger(__name__)
_LEAST_CHECKS = 4
"""At least so many: after a pause of the whole process (SIGSTOP, sleep) the clock alone says nothing."""


class ConsumerWatchdog:
    """Checks, as a chore of the parent's sweeper, that the consumer takes wake-ups.

    Args:
        waiting: the wake-ups that lie in this worker's queues, None when the broker does not answer.
        tasks: of the children; idle ones would take a wake-up within a second.
        silent_s: how long wake-ups may lie there beside idle children.
    """

    def __init__(self, waiting: Callable[[], int | None], tasks: TaskTracker, silent_s: float) -> None:
        self._waiting = waiting
        self._tasks = tasks
        self._silent_s = silent_s
        self._checks = 0
        self._since = 0.0
        self._taken = 0
        self.stalled = False
        """Whether this worker was ended for it."""

    def check(self, *, taking: bool = True) -> None:
        """Looks once; ends this process softly when wake-ups that it wants have been lying there for too long."""
        taken = self._tasks.taken
        if not (taking and self._tasks.idle and taken == self._taken and self._waiting()):
            self._checks, self._since, self._taken = 0, time.monotonic(), taken
            return
        self._checks += 1
        silent_s = time.monotonic() - self._since
        if self._checks >= _LEAST_CHECKS and silent_s >= self._silent_s and not self.stalled:
            self.stalled = True
            log.error("wake_ups_not_taken", silent_s=round(silent_s, 1), remedy="this worker ends; start another")
            os.kill(os.getpid(), signal.SIGTERM)
