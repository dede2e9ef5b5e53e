"""Lets a run onto a GPU only when it is clean, and takes the GPU out of service when it is not to be trusted."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

from grader_service.errors import InfrastructureError
from grader_service.host.gpu.monitor import GpuGone, GpuMonitor, GpuSnapshot
from grader_service.host.gpu.xid import Blame, blame, explain


class GpuUnfit(InfrastructureError):
    """The GPU is not to be used. Its run is dead-lettered: it might put one GPU after another out of use."""

    retry: ClassVar[bool] = False


@dataclass(frozen=True)
class Health:
    """What is recorded of a GPU beside a run."""

    memory_used_before_mib: int
    xids: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Steward:
    """Guards one GPU.

    Args:
        max_used_mib: memory in use beyond which somebody else's work is still on the GPU.
        patience_s: how long a dead run's memory may take to be freed.
        quarantine: called with the reason when the GPU must not be used any more.
    """

    monitor: GpuMonitor
    quarantine: Callable[[str], None]
    max_used_mib: int = 2048
    patience_s: float = 20.0
    _before: int = field(default=0, init=False)

    def admit(self) -> None:
        """Waits until the GPU is clean.

        Raises:
            GpuUnfit: it is not, and will not become so by waiting; it has been quarantined.
        """
        deadline = time.monotonic() + self.patience_s
        self._refuse_hardware_faults(self.monitor.drain_xids())
        while True:
            snapshot = self._snapshot()
            self._before = snapshot.memory_used_mib
            reason = self._blemish(snapshot)
            if reason is None:
                return
            if time.monotonic() >= deadline:
                self._retire(reason)
            time.sleep(min(0.5, self.patience_s))

    def is_free(self) -> bool:
        """Whether the GPU is clean now: a look without waiting and without consequences."""
        try:
            return self._blemish(self.monitor.snapshot()) is None
        except GpuGone:
            return False

    def release(self) -> Health:
        """Looks at the GPU after a run.

        Raises:
            GpuUnfit: the hardware failed during the run, whose result must not be used.
        """
        xids = self.monitor.drain_xids()
        self._refuse_hardware_faults(xids)
        if (action := self._snapshot().recovery_action) is not None:
            self._retire(f"the driver asks for {action}")
        return Health(self._before, xids, tuple(explain(xid) for xid in xids))

    def _snapshot(self) -> GpuSnapshot:
        try:
            return self.monitor.snapshot()
        except GpuGone as error:
            self._retire(str(error))  # waiting brings no GPU back

    def _blemish(self, snapshot: GpuSnapshot) -> str | None:
        if snapshot.recovery_action is not None:
            return f"the driver asks for {snapshot.recovery_action}"
        if snapshot.processes:
            return f"processes {', '.join(map(str, snapshot.processes[:5]))} still use it"
        if snapshot.memory_used_mib > self.max_used_mib:
            return f"{snapshot.memory_used_mib} MiB are in use without a process that owns them"
        return None

    def _refuse_hardware_faults(self, xids: tuple[int, ...]) -> None:
        faults = [explain(xid) for xid in xids if blame(xid) is Blame.HARDWARE]
        if faults:
            self._retire("; ".join(faults))

    def _retire(self, reason: str) -> NoReturn:
        self.quarantine(reason)
        raise GpuUnfit(f"{self.monitor.uuid} was taken out of service: {reason}")
