"""What a runner's device does beside runs: our reference is measured, and a canary tried while it is quarantined."""

import threading
import time
from collections.abc import Callable

import structlog

from grader_service.errors import GraderError
from grader_service.service.canary import Canary
from grader_service.service.pipeline import StageEnd
from grader_service.service.runner import RunnerDeps, removal, run_next
from grader_service.store import devices

log = structlog.get_logger(__name__)

_LOOK_S = 10.0


class ReferenceKeeping:
    """Runs, the reference and the canary take turns on the device; see `KeptReferences` and `Canary`."""

    def __init__(self, deps: RunnerDeps, canary: Canary | None = None, *, look_s: float = _LOOK_S) -> None:
        """Starts nothing yet.

        Args:
            deps: where the runner keeps no references, none has a turn.
            canary: None where only operators put the device back into service.
            look_s: seconds between two looks, while nothing runs, whether one of them is due.
        """
        self._deps = deps
        self._canary = canary
        self._look_s = look_s
        self._turn = threading.Lock()
        self._idle: threading.Thread | None = None

    def run_next(self, after: Callable[[StageEnd], None]) -> StageEnd:
        """Executes the run that should come next, as `runner.run_next`, then measures the reference when it is due.

        Args:
            after: told the end of the run before anything else is done: somebody may wait for it.
        """
        if self._deps.references is not None:
            self.watch()
        with self._turn:
            with removal() as afterwards:
                end = run_next(self._deps, afterwards)
                after(end)  # before folders and volumes are removed
            if end is StageEnd.STORED:
                self._refresh_safely()
        return end

    def watch(self) -> None:
        """From now on looks at the device while nothing runs; once is enough. What a dead runner left comes first."""
        with self._turn:
            if self._idle is None:
                self._idle = threading.Thread(target=self._keep, name="idle", daemon=True)
                self._idle.start()

    def judge_what_was_left(self) -> None:
        """Examines the device where the store has a run that died with its runner, and whose lease has not ended yet.

        If the device is found unfit now, that run is not handed to another one. Call it while no run is open.
        """
        device = devices.device_of(self._deps.owner)
        if any(one.device_id == device and one.run_id for one in devices.devices(self._deps.store)):
            self._deps.gate.open()

    def refresh(self) -> bool:
        """Measures the reference when it is due and the device may be used; whether it did."""
        references, gate = self._deps.references, self._deps.gate
        if references is None or not references.due() or not self._deps.host.fit() or not gate.open():
            return False
        try:
            return references.refresh()
        finally:
            gate.release()

    def _keep(self) -> None:
        with self._turn:
            self._judge_safely()
        while True:
            time.sleep(self._look_s)
            with self._turn:
                self._refresh_safely(only_if_free=True)
                if self._canary is not None and self._deps.host.fit():
                    self._canary.look()

    def _judge_safely(self) -> None:
        try:
            self.judge_what_was_left()
        except GraderError as error:  # then the next run's gate judges it
            log.warning("device_not_judged", error=str(error)[:300])

    def _refresh_safely(self, *, only_if_free: bool = False) -> None:
        """Nothing that goes wrong here may touch a run: the one before is stored, the next one measures everything.

        While nobody waits, a device that is not free is left alone: its steward need not say again that it is closed.
        """
        references = self._deps.references
        try:
            if only_if_free and (references is None or not references.due() or not self._deps.gate.free()):
                return
            self.refresh()
        except GraderError as error:
            log.warning("reference_not_refreshed", error=str(error)[:300])
        except Exception:
            log.exception("reference_bug")
