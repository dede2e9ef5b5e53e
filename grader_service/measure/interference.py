"""Everything that looks at the host while blocks are timed, opened and closed together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from grader_service.host.facts import Gpu
from grader_service.host.gpu.monitor import GpuGone, GpuMonitor
from grader_service.host.gpu.poll import GpuPoll
from grader_service.measure.gpu_use import Span, use_by_arm
from grader_service.measure.gpu_watch import GpuWatch
from grader_service.measure.host_watch import ClockWatch, HostWatch, StealWatch, Together
from grader_service.model.measurement import GpuUse


@dataclass
class InterferenceMonitor:
    """What a measurement knows of its surroundings; without arguments it sees nothing."""

    watch: HostWatch = field(default_factory=lambda: Together(()))
    poll: GpuPoll | None = None
    notes: list[str] = field(default_factory=list)
    """What staff should know of."""

    def uses(self, spans: Sequence[Span]) -> tuple[GpuUse, ...]:
        """What the GPU did in these windows; empty where none is watched."""
        return use_by_arm(spans, self.poll.between) if self.poll is not None else ()


@contextmanager
def interference_monitor(cpus: Sequence[int], gpu: Gpu | None) -> Iterator[InterferenceMonitor]:
    """An interference monitor of the processors and the GPU that the arms use; closes what it opened."""
    monitor: GpuMonitor | None = None
    if gpu is not None:
        from grader_service.host.gpu.nvml import NvmlGpu  # noqa: PLC0415 - hosts without GPUs go without the driver's library

        monitor = NvmlGpu(gpu.uuid)
    with interference_monitor_with(cpus, monitor) as opened:
        yield opened


@contextmanager
def interference_monitor_with(cpus: Sequence[int], monitor: GpuMonitor | None) -> Iterator[InterferenceMonitor]:
    """The same for a GPU that is already watched, such as one in memory; closes its monitor.

    A GPU that cannot be watched from the start, as where NVML is forbidden, is noted and not watched: what keeps runs
    off a GPU that is gone is its steward.
    """
    host: list[HostWatch] = [ClockWatch(), StealWatch(cpus)]
    notes: list[str] = []
    if monitor is None:
        yield InterferenceMonitor(Together(host))
        return
    try:
        monitor.utilisation()
    except GpuGone as error:
        monitor.close()
        notes.append(f"the GPU was not watched: {error}"[:500])
        yield InterferenceMonitor(Together(host), notes=notes)
        return
    with GpuPoll(monitor) as poll:
        yield InterferenceMonitor(Together([GpuWatch(poll, notes.append), *host]), poll, notes)
