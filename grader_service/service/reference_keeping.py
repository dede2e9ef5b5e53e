"""Keeps the rate of our fair reference fresh on a runner's device: after a run, and while nothing waits."""

import threading
import time
from collections.abc import Callable

import structlog

from grader_service.errors import GraderError
from grader_service.service.runner import RunEnd, RunnerDesk, removal, run_next

log = structlog.get_logger(__name__)

_LOOK_S = 10.0


class ReferenceKeeping:
    """Runs and the reference take turns on the device; see `KeptReferences`."""

    def __init__(self, desk: RunnerDesk, *, look_s: float = _LOOK_S) -> None:
        """Starts nothing yet.

        Args:
            desk: of the runner; where it keeps no references, only runs have turns.
            look_s: between two looks, while nothing runs, whether the reference is due.
        """
        self._desk = desk
        self._look_s = look_s
        self._turn = threading.Lock()
        self._idle: threading.Thread | None = None

    def run_next(self, after: Callable[[RunEnd], None]) -> RunEnd:
        """Executes the run that should come next, as `runner.run_next`, then measures the reference when it is due.

        Args:
            after: told the end of the run before anything else is done: somebody may wait for it.
        """
        references = self._desk.references
        if references is None:
            return self._run(after)
        if self._idle is None:
            self._idle = threading.Thread(target=self._keep, name="reference", daemon=True)
            self._idle.start()
        with self._turn:
            end = self._run(after)
            if end is RunEnd.STORED:
                self._refresh_safely()
        return end

    def refresh(self) -> bool:
        """Measures the reference when it is due and the device may be used; whether it did."""
        references, gate = self._desk.references, self._desk.gate
        if references is None or not references.due() or not self._desk.host.fit() or not gate.open():
            return False
        try:
            return references.refresh()
        finally:
            gate.release()

    def _run(self, after: Callable[[RunEnd], None]) -> RunEnd:
        with removal() as afterwards:
            end = run_next(self._desk, afterwards)
            after(end)  # whoever waits does not wait for folders and volumes to go
        return end

    def _keep(self) -> None:
        while True:
            time.sleep(self._look_s)
            with self._turn:
                self._refresh_safely(only_if_free=True)

    def _refresh_safely(self, *, only_if_free: bool = False) -> None:
        """Nothing that goes wrong here may touch a run: the one before is stored, the next one measures everything.

        Args:
            only_if_free: leave a device alone that a run would be kept from: nobody waits, so its steward need not
                judge who else is on it, nor say again that it is closed.
        """
        references = self._desk.references
        try:
            if only_if_free and (references is None or not references.due() or not self._desk.gate.free()):
                return
            self.refresh()
        except GraderError as error:
            log.warning("reference_not_refreshed", error=str(error)[:300])
        except Exception:
            log.exception("reference_bug")
