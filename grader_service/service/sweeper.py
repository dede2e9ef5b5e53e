"""Looks round at intervals: expired leases, lost hints, undelivered answers. Any number may run at once."""

import threading
import time
from collections.abc import Callable, Sequence

import structlog

from grader_service.store.workers import Failing

log = structlog.get_logger(__name__)

Chore = Callable[[], object]


class Sweeper:
    """Does its chores every few seconds in a thread, and at once when nudged.

    Args:
        chores: by their names, in this order.
        interval_s: seconds between two rounds.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        chores: Sequence[tuple[str, Chore]],
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chores = list(chores)
        self._interval_s = interval_s
        self._clock = clock
        self._wake = threading.Event()
        self._stopped = False
        self._since: dict[str, float] = {}
        self._failing: dict[str, Failing] = {}
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def nudge(self) -> None:
        """Something was just written that a chore should see."""
        self._wake.set()

    def stop(self) -> None:
        """Ends the thread after the chore in hand."""
        self._stopped = True
        self._wake.set()
        self._thread.join(timeout=30.0)

    @property
    def failing(self) -> dict[str, Failing]:
        """The chores that failed the last time, by name."""
        return dict(self._failing)

    def once(self) -> None:
        """Does every chore; one that fails does not keep the others from being done."""
        for name, chore in self._chores:
            try:
                chore()
            except Exception as error:  # noqa: BLE001 - a database or broker that is away comes back
                said = f"{type(error).__name__}: {str(error)[:300]}"
                log.warning("chore_failed", chore=name, error=said)
                now = self._clock()
                self._failing[name] = Failing(for_s=now - self._since.setdefault(name, now), error=said)
            else:
                self._since.pop(name, None)
                self._failing.pop(name, None)

    def _run(self) -> None:
        while not self._stopped:
            self.once()
            self._wake.wait(self._interval_s)
            self._wake.clear()
