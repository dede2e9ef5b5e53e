"""Renews a lease while its work goes on, and stops the work when the lease is lost or the work hangs."""

import threading
import time
from collections.abc import Callable
from typing import Any, Self

import structlog

from grader_service.errors import StoreUnavailable

log = structlog.get_logger(__name__)


class LeaseHeartbeat:
    """Renews a lease three times per its length, in a thread.

    Args:
        renew: extends the lease; False when it is somebody else's.
        lease_s: how long it lasts.
        on_lost: called once, from the thread, when the work must not go on: somebody else has it, or it took too long;
            it should end the work.
        limit_s: how long the work may take; the lease is not renewed beyond that.
        about: names the work in logs.
    """

    def __init__(
        self,
        renew: Callable[[], bool],
        lease_s: float,
        on_lost: Callable[[], object] = bool,
        limit_s: float = float("inf"),
        **about: Any,
    ) -> None:
        self._renew = renew
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._limit_s = limit_s
        self._log = log.bind(**about)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self.lost = False
        self.overdue = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=self._lease_s)

    def _run(self) -> None:
        end = time.monotonic() + self._limit_s
        while not self._stop.wait(max(0.0, min(self._lease_s / 3, end - time.monotonic()))):
            if time.monotonic() >= end:
                self.overdue = True
                self._log.error("run_overdue", limit_s=self._limit_s)
                self._on_lost()
                return
            try:
                kept = self._renew()
            except StoreUnavailable as error:
                # When it is back, nobody's lease ends before it could be renewed: see `Expiry`.
                self._log.warning("lease_not_renewed", error=str(error)[:200])
                continue
            if not kept:
                self.lost = True
                self._log.warning("lease_lost")
                self._on_lost()
                return
