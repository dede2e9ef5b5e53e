"""Lets learners go first: judging in bulk rests while their submissions come in and what was run is judged."""

import contextlib
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from grader_service.errors import StoreUnavailable
from grader_service.store.engine import Store
from grader_service.store.operations import work_came

log = structlog.get_logger(__name__)

_LEAST_NICE = 19
_LOOK_S = 0.025
_FRESH_S = 0.2
"""An arrival counts for so long: afterwards it waits for a GPU, and a free processor would not help it."""
_LONGEST_S = 0.2
"""Rest between two items, at most: a batch goes on however busy a day is."""


def lower_priority() -> None:
    """Everybody else gets the processor before this process.

    Where Linux shares the processor by session first, a low priority counts within the session only; this process was
    started in one of its own, which is told the same. In a container its `cpu_shares` decide.
    """
    os.nice(_LEAST_NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_LEAST_NICE))


class LiveWatch:
    """Looks for arrivals, in a thread, and makes bulk work rest between two items."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._end = threading.Event()
        self._quiet = threading.Event()
        self._quiet.set()
        self._thread = threading.Thread(target=self._run, name="live-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._quiet.set()
        self._thread.join(timeout=10.0)

    def rest(self) -> None:
        """Returns when nothing came lately, or at last when the longest rest is over."""
        self._quiet.wait(_LONGEST_S)

    def _run(self) -> None:
        while not self._end.wait(_LOOK_S):
            try:
                came = work_came(self._store, _FRESH_S)
            except StoreUnavailable as error:
                log.warning("live_work_not_seen", error=str(error)[:200])
                self._end.wait(_LONGEST_S)
                continue
            if came:
                self._quiet.clear()
            else:
                self._quiet.set()
