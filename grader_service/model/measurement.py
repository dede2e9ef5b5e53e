"""What was timed: arms, blocks and the decision on the throughput ratio."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from grader_service.model.base import Count, Frozen, LongText, Seconds, ShortText
from grader_service.model.lab import MeasurementPlan

ImagesPerSecond = Annotated[float, Field(gt=0)]


class Arm(StrEnum):
    """One side of the comparison; each runs in a pod of its own."""

    DALI = "dali"
    """The learner's graph in the clean room."""
    LEARNER = "pytorch"
    """The learner's DataLoader in the learner's pod."""
    DECLARED = "reference_declared"
    """Our DataLoader at the learner's declared settings."""
    FAIR = "reference_fair"
    """Our DataLoader at the pod's fair settings."""


class Window(Frozen):
    """One timed window of one arm."""

    arm: Arm
    images: Annotated[int, Field(gt=0)]
    seconds: Annotated[float, Field(gt=0)]
    """Host monotonic clock, from the mark after the queue was drained to the last batch."""

    @property
    def images_per_s(self) -> float:
        """Images delivered per second in this window."""
        return self.images / self.seconds


class Block(Frozen):
    """One window of every arm, taken one after another."""

    index: Count
    order: tuple[Arm, ...]
    windows: tuple[Window, ...]
    log_ratio: float
    """`ln(DALI / effective baseline)` of this block."""
    baseline: Arm
    """The arm that set the effective baseline."""
    spoiled: ShortText | None = None
    """Why the host discarded the block before its rates were looked at; null for a valid block."""


class Interval(Frozen):
    """A two-sided confidence interval of the ratio."""

    low: Annotated[float, Field(gt=0)]
    high: Annotated[float, Field(gt=0)]
    confidence: Annotated[float, Field(gt=0, lt=1)]


class Decision(Frozen):
    """What the sequential test said, and on which numbers."""

    outcome: Literal["passed", "failed", "inconclusive"]
    threshold: Annotated[float, Field(gt=0)]
    ratio: Annotated[float, Field(gt=0)]
    """Geometric mean over blocks of DALI over the effective baseline."""
    interval: Interval
    blocks_used: Count
    look: Count
    """1-based look at which the test stopped."""
    rule: LongText


class LoaderSettings(Frozen):
    """How a DataLoader was configured."""

    batch_size: Annotated[int, Field(gt=0)]
    num_workers: Count
    pin_memory: bool
    persistent_workers: bool
    prefetch_factor: Count | None


class ArmReport(Frozen):
    """One arm over all valid blocks."""

    arm: Arm
    images_per_s: ImagesPerSecond | None
    """Median over blocks; null when the arm could not be measured."""
    low: ImagesPerSecond | None
    high: ImagesPerSecond | None
    settings: LoaderSettings | None = None
    notes: tuple[ShortText, ...] = ()


class ClaimBesideMeasurement(Frozen):
    """A number that the learner stated, next to what we measured; never an input to the verdict."""

    name: ShortText
    claimed: float | None
    measured: float | None


class Measurement(Frozen):
    """Everything about the timing that a person needs to believe or doubt it."""

    device: Literal["cuda", "cpu"]
    plan: MeasurementPlan
    """As it was run; a judge applies the same test to the same blocks, perhaps with another threshold."""
    images: Count
    image_sizes: ShortText
    """Width × height range of the held-out images, pixels."""
    arms: tuple[ArmReport, ...]
    blocks: tuple[Block, ...]
    decision: Decision | None
    dali_settings: Mapping[str, object] = Field(default_factory=dict)
    """Batch size, threads, prefetch depth as run, and what was changed from the learner's graph."""
    claims: tuple[ClaimBesideMeasurement, ...] = ()
    problem: LongText | None = None
    """Why there is no decision, when there is none."""
    measured_s: Seconds = 0.0
