"""Renews a run's lease while its work goes on, and stops the work when the lease is lost or the work hangs."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from grader_service.errors import StoreUnavailable
from grader_service.store.claims import Claim
from grader_service.store.engine import Store
from grader_service.store.leases import renew

log = structlog.get_logger(__name__)


class LeaseHeartbeat:
    """Renews a lease three times per its length, in a thread.

    Args:
        on_lost: called once, from the thread, when the work must not go on: the run belongs to somebody else, or took
            too long; it should end the work.
        limit_s: how long the work may take; the lease is not renewed beyond that.
    """

    def __init__(
        self, store: Store, claim: Claim, lease_s: float, on_lost: Callable[[], None], limit_s: float = float("inf")
    ) -> None:
        self._store = store
        self._claim = claim
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._limit_s = limit_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lease-{claim.run_id[:8]}", daemon=True)
        self.lost = False
        """The run belongs to somebody else."""
        self.overdue = False
        """The work took too long."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=self._lease_s)

    def _run(self) -> None:
        end = time.monotonic() + self._limit_s
        while not self._stop.wait(max(0.0, min(self._lease_s / 3, end - time.monotonic()))):
            if time.monotonic() >= end:
                self.overdue = True
                log.error("run_overdue", run_id=self._claim.run_id, limit_s=self._limit_s)
                self._on_lost()
                return
            try:
                kept = renew(self._store, self._claim, self._lease_s)
            except StoreUnavailable as error:
                # When it is back, nobody's lease ends before it could be renewed: see `Expiry`.
                log.warning("lease_not_renewed", run_id=self._claim.run_id, error=str(error)[:200])
                continue
            if not kept:
                self.lost = True
                log.warning("lease_lost", run_id=self._claim.run_id, fence=self._claim.fence)
                self._on_lost()
                return
