"""What NVML saw of the GPU in each arm's windows, as means; pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from grader_service.host.gpu.poll import Sample
from grader_service.model.measurement import Arm, GpuUse


@dataclass(frozen=True)
class Span:
    """When one arm had a window, by the host's monotonic clock."""

    arm: Arm
    start: float
    end: float


def use_by_arm(spans: Sequence[Span], between: Callable[[float, float], list[Sample]]) -> tuple[GpuUse, ...]:
    """One row for each arm that had a window of a valid block, in the order of `Arm`.

    Args:
        between: samples of a time, as of `GpuPoll.between`.
    """
    rows = []
    for arm in Arm:
        own = [span for span in spans if span.arm is arm]
        # A sample is a mean over the time before it: the first ones of a window still show the arm before.
        samples = [
            sample
            for span in own
            for sample in between(span.start, span.end)
            if sample.asked - sample.use.period_s >= span.start
        ]
        if own:
            rows.append(
                GpuUse(
                    arm=arm,
                    samples=len(samples),
                    sm_percent=_mean(sample.use.sm_percent for sample in samples),
                    jpg_percent=_mean(sample.use.jpg_percent for sample in samples),
                    memory_mib=_mean(sample.use.memory_used_mib for sample in samples),
                    processes=max((len(sample.use.processes) for sample in samples), default=None),
                )
            )
    return tuple(rows)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
