"""What was timed: arms, blocks and the decision on the throughput ratio."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from grader_service.model.base import Count, Device, Frozen, LongText, Seconds, ShortText
from grader_service.model.lab import MeasurementPlan

ImagesPerSecond = Annotated[float, Field(gt=0)]


class Arm(StrEnum):
    """One side of the comparison; nothing of one runs while another is timed."""

    DALI = "dali"
    """The learner's graph in the clean room."""
    LEARNER = "pytorch"
    """The learner's DataLoader in the learner's pod."""
    DECLARED = "reference_declared"
    """Our DataLoader at the learner's declared settings."""
    FAIR = "reference_fair"
    """Our DataLoader at the pod's fair settings."""


REFERENCES = (Arm.DECLARED, Arm.FAIR)
"""Arms of ours; what they do is known, and none of it is done on the GPU but to copy batches there."""


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
    log_ratio: Annotated[float, Field(ge=-50, le=50)]
    """`ln(DALI / effective baseline)` of this block."""
    baseline: Arm
    """The arm that set the effective baseline."""
    spoiled: ShortText | None = None
    """Why the block was discarded, asked of the host before its rates were looked at; null for a valid block."""


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
    """1-based look at which the test stopped; the extension is the last one."""
    rule: LongText
    attempt: Annotated[int, Field(ge=1)] = 1
    """Which measured attempt of the learner at the lab this was; later ones may spend less error."""
    reason: Literal["host_cannot_show_effect"] | None = None
    """Why the outcome is `inconclusive` although the test said otherwise or was undecided; null in all other cases."""


class HostBlock(Frozen):
    """Our own DALI graph and our own fair loader, one window each, one right after the other."""

    dali: ImagesPerSecond
    pytorch: ImagesPerSecond


class HostEffect(Frozen):
    """What this host can show at all: the learner's job done by our own DALI graph and by our own loader."""

    ratio: Annotated[float, Field(gt=0)]
    """Median over blocks of DALI over PyTorch."""
    blocks: Annotated[tuple[HostBlock, ...], Field(min_length=1)]


class LoaderSettings(Frozen):
    """How a DataLoader was configured."""

    batch_size: Annotated[int, Field(gt=0)]
    num_workers: Count
    pin_memory: bool
    persistent_workers: bool
    prefetch_factor: Count | None


class KeptReference(Frozen):
    """Our fair reference as it was measured on this host before the run, while no learner's code was there."""

    images_per_s: ImagesPerSecond
    """Of the fastest of its windows."""
    settings: LoaderSettings
    windows: Annotated[int, Field(ge=1)]
    age_s: Seconds
    """How long before the blocks it was measured."""


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


class ContentKind(StrEnum):
    """What the audited pixels say about the work behind them."""

    FULL = "full"
    """Every audited image was decoded at full resolution."""
    REDUCED = "reduced"
    """The fine texture is missing: decoded at a half, a quarter or an eighth of the resolution, and enlarged."""
    RENDERED = "rendered"
    """The right colour without the image's own texture: drawn, copied from another image, or partly decoded."""
    COARSE = "coarse"
    """The output is too small or too blurred for the fine texture; only coarser bands were compared."""
    UNKNOWN = "unknown"
    """Nothing could be compared, such as after an augmentation that mixes images."""


class ContentProof(Frozen):
    """What was delivered inside the timed windows, told from its pixels."""

    delivered: Count
    """Images in timed windows whose pixels were looked at."""
    identified: Count
    """Of them, those that are an image of this run's shard."""
    distinct: Count
    """Different shard images among them."""
    stale: Count = 0
    """Images of an earlier shard, tier B only: they cost time and count nothing."""
    repeated: Count = 0
    """Images that came again before the rest of the shard had come."""
    audited: Count
    """Images whose texture was compared with our own decode."""
    failed_audits: Count = 0
    texture: float | None = None
    """Mean correlation of the finest comparable band with our own decode, 1 for equal; null when none was audited."""
    area: Annotated[float, Field(ge=0, le=1.1)] | None = None
    """Mean share of the source image that is visible in the output."""
    expected_area: Annotated[float, Field(ge=0, le=1)] | None = None
    """The same for the standard job, torchvision's `RandomResizedCrop`."""
    low: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the images whose visible part reaches the lowest third of its source."""
    expected_low: Annotated[float, Field(ge=0, le=1)] | None = None
    """The same for the standard job."""
    kind: ContentKind = ContentKind.UNKNOWN
    problem: ShortText | None = None
    """Why the images do not count as delivered, such as `partial_decode`; null when they do."""
    note: LongText = ""


class GraphSeen(Frozen):
    """What was seen of a graph in experiments."""

    samples: Annotated[int, Field(ge=1)]
    """Images that were looked at in each run."""
    alike: Count
    """Images that are the same when a file holds the picture without loss."""
    stayed: Count = 0
    """Images that stayed as they were when all files showed other pictures."""
    own: Count
    """Images that changed whenever their own file showed another picture."""
    on_gpu: Count | None = None
    """Images that on the GPU resemble those of the CPU; null in a rehearsal, for graphs that a CPU cannot run, and
    where nothing was tried out."""
    windows: Count = 0
    """Windows of decoders that were measured: as many as would tell as much of files that are all of one size. 0 where
    whole files are decoded."""
    area: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of all pixels of the files that is decoded."""
    low: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of all pixels in pictures whose window reaches their lowest third."""
    scant: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the images of which less than a sixteenth is decoded."""
    credits: Mapping[str, float] = Field(default_factory=dict)
    """Kind of work (`turn`, `colour`, `blur`) to the share of images that it changed; the reference does as much."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """That the experiments took."""


class GraphProof(GraphSeen):
    """What a graph does in the clean room, found out by running it on other pictures and without its operators.

    See `grader_service/measure/acceptance.py` for what follows from it.
    """

    standard_area: Annotated[float, Field(ge=0, le=1)]
    """Share of all pixels that torchvision's `RandomResizedCrop` shows of images of these sizes."""
    standard_low: Annotated[float, Field(ge=0, le=1)]
    problem: ShortText | None = None
    """Why the graph was not timed: `not_examined`, `independent`, `unlike`, `unclear`, `lesser`; null when it was."""
    note: LongText = ""
    """What was seen, for the learner."""


class TierRefused(Frozen):
    """A stronger tier of evidence that was tried, and why it could not be had."""

    tier: Literal["A", "B", "C"]
    problem: ShortText
    text: LongText


class GpuUse(Frozen):
    """What NVML saw of the GPU while one arm had its windows; means over samples, null where there are none."""

    arm: Arm
    samples: Count
    """Looks in windows of valid blocks; a look that still shows the arm before is left out."""
    sm_percent: float | None = None
    """Share of the time in which a kernel ran; null where the driver does not say."""
    jpg_percent: float | None = None
    """Utilisation of the JPEG engine; null where the GPU has none."""
    memory_mib: float | None = None
    """In use on the whole GPU, by every pod."""
    processes: Count | None = None
    """Most processes seen on the GPU at once."""


GPU_IDLE = "the graph decodes on the GPU, but neither its SMs nor its JPEG engine moved"
"""How the flag of a DALI arm begins whose GPU was idle; a check looks for it."""


class Corroboration(Frozen):
    """Beside the rates, never instead of them: a contradiction is for a person to look at."""

    uses: tuple[GpuUse, ...] = ()
    """One row for each arm; empty where no GPU was watched."""
    flags: tuple[LongText, ...] = ()
    """Contradictions, and what the host noted while blocks ran, for staff."""


class Measurement(Frozen):
    """Everything about the timing that a person needs to believe or doubt it."""

    device: Device
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
    tier: Literal["A", "B", "C"] = "A"
    """How the DALI side was measured; see `docs/measurement.md`."""
    refused: tuple[TierRefused, ...] = ()
    """Stronger tiers that could not be had."""
    content: ContentProof | None = None
    """What the pixels of the DALI side showed, in tiers B and C; null in tier A."""
    graph: GraphProof | None = None
    """What the graph was seen to do, in tier A; null in measurements from before graphs were tried out."""
    corroboration: Corroboration | None = None
    """What NVML saw; null without a GPU."""
    attempt: Annotated[int, Field(ge=1)] = 1
    """Which measured attempt of the learner at the lab this was; the test spends less error on later ones."""
    kept_reference: KeptReference | None = None
    """The reference that the blocks were held against, where they passed by the two-block bound and none was timed in
    the run; null in all other cases."""
    screened: tuple[Block, ...] = ()
    """Blocks beside a kept reference that did not pass by the two-block bound: the measurement began anew, and they
    count nowhere."""
    host: HostEffect | None = None
    """What the host can show; measured only when the outcome would not be a pass."""
    unsteady: LongText | None = None
    """Why the host's own troubles kept the blocks from a decision; null when it was steady enough."""
