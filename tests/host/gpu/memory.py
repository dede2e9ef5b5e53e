"""A GPU that exists in memory only. Its faults are set by hand."""

from dataclasses import dataclass, field

from grader_service.host.gpu.monitor import GpuGone, GpuSnapshot, Utilisation


@dataclass
class InMemoryGpu:
    """Implements `GpuMonitor`; every field may be changed while it is in use."""

    uuid: str = "GPU-00000000-0000-0000-0000-000000000000"
    processes: list[int] = field(default_factory=list)
    memory_used_mib: int = 500
    recovery_action: str | None = None
    throttled: str | None = None
    xids: list[int] = field(default_factory=list)
    gone: bool = False
    sm_percent: float | None = 0.0
    jpg_percent: float | None = 0.0
    period_s: float = 0.0

    def snapshot(self) -> GpuSnapshot:
        """See `GpuMonitor.snapshot`."""
        if self.gone:
            raise GpuGone(f"{self.uuid} does not answer")
        return GpuSnapshot(tuple(self.processes), self.memory_used_mib, self.recovery_action)

    def utilisation(self) -> Utilisation:
        """See `GpuMonitor.utilisation`."""
        if self.gone:
            raise GpuGone(f"{self.uuid} does not answer")
        return Utilisation(
            sm_percent=self.sm_percent,
            jpg_percent=self.jpg_percent,
            memory_used_mib=self.memory_used_mib,
            processes=tuple(self.processes),
            throttled=self.throttled,
            period_s=self.period_s,
        )

    def drain_xids(self) -> tuple[int, ...]:
        """See `GpuMonitor.drain_xids`."""
        drained, self.xids = tuple(self.xids), []
        return drained

    def close(self) -> None:
        """See `GpuMonitor.close`."""
