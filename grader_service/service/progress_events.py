"""Tells a platform that asked how far a run is: seldom enough, short enough, and never at the run's expense."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from grader_service.errors import StoreUnavailable
from grader_service.model.progress import ProgressEvent, one_line
from grader_service.run.progress import Progress, Silent
from grader_service.store.engine import Store
from grader_service.store.lease import Lease
from grader_service.store.submissions import progress_to

log = structlog.get_logger(__name__)

EVERY_S = 5.0
"""Shortest time between an event and the next one of the same stage."""
MOST = 200
"""Events of one try of a run."""
_MOST_LINES = 150
"""Of them within stages, so that enough are left for the beginnings of others."""

Send = Callable[[ProgressEvent], object]


def events_of(store: Store, send: Send, lease: Lease) -> Progress:
    """What hears about a claimed run: nobody where its platform did not ask, or nobody sits and waits."""
    if lease.item_id is not None:
        return Silent()
    try:
        asked = progress_to(store, lease.submission_id, lease.run_id)
    except StoreUnavailable:
        asked = None
    return Silent() if asked is None else RunEvents(lease, send)


class RunEvents:
    """Implements `Progress` for one try of a run.

    Args:
        send: takes events, which may be lost; it raises nothing, and returns at once.
    """

    def __init__(self, lease: Lease, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease = lease
        self._send = send
        self._clock = clock
        self._stage = ""
        self._next = 0.0
        self._sent = self._lines = 0

    def stage(self, name: str, *, key: str = "", limit_s: float | None = None) -> None:
        """See `Progress.stage`."""
        del name
        self._stage = key
        if key and self._sent < MOST:
            self._tell(0.0, limit_s, "")

    def note(self, text: str) -> None:
        """See `Progress.note`; rates of blocks are no platform's business before they are judged."""

    def running(self, elapsed_s: float, limit_s: float | None, line: str) -> None:
        """See `Progress.running`."""
        if self._stage and self._clock() >= self._next and self._lines < _MOST_LINES and self._sent < MOST:
            self._lines += 1
            self._tell(elapsed_s, limit_s, line)

    def _tell(self, elapsed_s: float, limit_s: float | None, line: str) -> None:
        self._sent += 1
        # Of a stage that may take long, the events are spread over all of it.
        self._next = self._clock() + max(EVERY_S, (limit_s or 0.0) / _MOST_LINES)
        try:
            self._send(
                ProgressEvent(
                    submission_id=self._lease.submission_id,
                    run_id=self._lease.run_id,
                    stage=self._stage,
                    elapsed_s=round(elapsed_s, 1),
                    limit_s=limit_s,
                    line=one_line(line),
                    at=datetime.now(UTC),
                )
            )
        except Exception:  # whatever is wrong with an event, the run is not
            log.exception("progress_bug")
