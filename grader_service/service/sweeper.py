"""Looks round at intervals: expired leases, lost hints, undelivered answers. Any number may run at once."""

import threading
from collections.abc import Callable, Sequence

import structlog

log = structlog.get_logger(__name__)

Chore = Callable[[], object]


class Sweeper:
    """Does its chores every few seconds in a thread, and at once when nudged."""

    def __init__(self, chores: Sequence[tuple[str, Chore]], interval_s: float) -> None:
        self._chores = list(chores)
        self._interval_s = interval_s
        self._wake = threading.Event()
        self._stopped = False
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

    def once(self) -> None:
        """Does every chore; one that fails does not keep the others from being done."""
        for name, chore in self._chores:
            try:
                chore()
            except Exception as error:  # noqa: BLE001 - a database or broker that is away comes back
                log.warning("chore_failed", chore=name, error=f"{type(error).__name__}: {str(error)[:300]}")

    def _run(self) -> None:
        while not self._stopped:
            self.once()
            self._wake.wait(self._interval_s)
            self._wake.clear()
