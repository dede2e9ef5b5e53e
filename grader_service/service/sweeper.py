"""Does chores at intervals, such as for expired leases or undelivered answers. Any number of sweepers may run."""

import threading
import time
from collections.abc import Callable, Sequence

import structlog

from grader_service.store.workers import FAILING_S, Failing

log = structlog.get_logger(__name__)

Chore = Callable[[], object]


class Sweeper:
    """Does its chores every few seconds in a thread, and at once when nudged.

    Args:
        chores: by their names, in this order.
        interval_s: seconds between two rounds.
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
        self._in_hand: tuple[str, float] | None = None
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
        """The chores that failed the last time, and the one that has not ended for `FAILING_S`, by name."""
        failing = dict(self._failing)
        if (in_hand := self._in_hand) is not None:
            name, began = in_hand
            now = self._clock()
            if now - began >= FAILING_S:
                failing[name] = Failing(
                    for_s=now - self._since.get(name, began), error=f"it has not ended for {now - began:.0f} s"
                )
        return failing

    def once(self) -> None:
        """Does every chore; one that fails does not keep the others from being done."""
        for name, chore in self._chores:
            self._in_hand = name, self._clock()
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
            self._in_hand = None

    def _run(self) -> None:
        while not self._stopped:
            self.once()
            self._wake.wait(self._interval_s)
            self._wake.clear()
