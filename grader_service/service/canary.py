"""Puts a device that its steward took out of service back, by itself, once it can grade again."""

from collections.abc import Callable
from dataclasses import replace

import structlog

from grader_service.errors import GraderError, StoreUnavailable
from grader_service.host.gpu.monitor import GpuMonitor
from grader_service.host.gpu.steward import GpuUnfit, Steward
from grader_service.retry_policy import CANARIES
from grader_service.store import canaries
from grader_service.store.engine import Store

log = structlog.get_logger(__name__)


class Canary:
    """Tries one device, with growing patience. Use it while no run is open there: what is in quarantine gets none.

    Args:
        grade: executes a submission of ours on it; raises a `GraderError` when what came is not as expected.
        first_s: from a quarantine to its first canary; doubled by each failure and each relapse.
        patience_s: how long memory and processes of others may take to go.
    """

    def __init__(
        self,
        store: Store,
        device_id: str,
        monitor: GpuMonitor,
        grade: Callable[[], None],
        *,
        first_s: float,
        owner: str,
        patience_s: float = 20.0,
    ) -> None:
        self._store = store
        self._device_id = device_id
        self._steward = Steward(monitor, _refuse, patience_s=patience_s)
        self._grade = grade
        self._policy = replace(CANARIES, delay_s=first_s)
        self._actor = f"canary:{owner}"

    def look(self) -> bool:
        """Tries the device when it is due; whether it did. Raises nothing."""
        try:
            found = canaries.quarantine_of(self._store, self._device_id)
            if found is None or found.waited_s < self._policy.wait_s(found.failures):
                return False
            problem = self._problem()
            if problem is None:
                kept = canaries.passed(self._store, found, self._actor)
            else:
                kept = canaries.failed(self._store, found, problem, self._policy, self._actor)
        except StoreUnavailable as error:
            log.warning("canary_without_database", error=str(error)[:300])
            return False
        log.warning("canary", device=self._device_id, problem=problem, kept=kept)
        return True

    def _problem(self) -> str | None:
        """What speaks against the device; None where nothing does."""
        try:
            self._steward.admit()
            try:
                self._grade()
            finally:
                health = self._steward.release()  # nor is a fault in here left for the next canary to find
        except GraderError as error:
            return str(error)[:500]
        except Exception as error:
            log.exception("canary_bug")
            return f"{type(error).__name__}: {error}"[:500]
        return "; ".join(health.notes) or None


def _refuse(reason: str) -> None:
    raise GpuUnfit(reason)
