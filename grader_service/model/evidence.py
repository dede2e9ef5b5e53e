"""What a run left behind: host-seen facts and pod-claimed facts, kept apart by type.

The host saw `PodRecord` and all of `RunRecord`. `Discovery` was said by a process that the learner's code shared: it is
validated, bounded and never believed where a grade depends on it. `Scan` and `CleanRoom` come from pods of ours, over
the learner's files and graph. Lists are refused at their first wrong value: a million reasons would cost gigabytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from grader_service.errors import SubmissionRejected
from grader_service.model.base import (
    Code,
    Count,
    Device,
    Few,
    Identifier,
    LongText,
    Seconds,
    Sha256,
    Shape,
    ShortText,
    Version,
    Wire,
    Word,
)
from grader_service.model.discovery import Discovery
from grader_service.model.lab import LabRef
from grader_service.model.measurement import Measurement

ENOUGH_IMAGES = 1024
"""Distinct JPEGs of a learner's beyond which no lab's threshold lies, so that no more are counted."""
MAX_OUTPUT = 8000
"""Characters of a learner's output that are kept."""


class PodRole(StrEnum):
    """What a pod is for; learner code runs in `learner` only."""

    LEARNER = "learner"
    SCANNER = "scanner"
    CLEAN_ROOM = "clean_room"
    REFERENCE = "reference"
    PROBE_ROOM = "probe_room"


class Ending(StrEnum):
    """How a pod stopped."""

    COMPLETED = "completed"
    """It said that it was done, or we asked it to stop."""
    EXITED = "exited"
    """Its process ended before it was asked to."""
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    PROTOCOL_VIOLATION = "protocol_violation"
    """It sent bytes that are not a valid frame or message."""


class PodRecord(Wire):
    """What the host saw of one pod."""

    role: PodRole
    ending: Ending
    exit_code: int | None
    wall_s: Seconds
    """From its start, or its claim where it was prepared ahead, until it was gone."""
    oom_killed: bool = False
    log_tail: LongText = ""
    """Last bytes of standard output and error; for staff only, never parsed."""
    detail: LongText = ""


class RejectedExample(Wire):
    """One file that was not counted."""

    path: ShortText
    reason: Word


class ImageSize(Wire):
    """Dimensions of one decoded JPEG: pixels, and bytes on disk."""

    width: Annotated[int, Field(ge=1, le=100_000)]
    height: Annotated[int, Field(ge=1, le=100_000)]
    size_bytes: Count


class Scan(Wire):
    """The scanner's inventory of the learner's dataset, from files that could no longer change."""

    root: ShortText
    problem: Word | None = None
    """Why nothing was scanned, such as `missing`, `not_a_directory`, `outside`; null when it was."""
    distinct: Count = 0
    """JPEG files that decode fully and differ in their decoded pixels."""
    flat: Count = 0
    one_picture: Count = 0
    """`flat`: counted images of one colour; `one_picture`: those that look like one, in other qualities or sizes."""
    rejected: Annotated[Mapping[Word, Count], Few] = Field(default_factory=dict)
    """Reason to number of files or links that were not counted."""
    examples: Annotated[tuple[RejectedExample, ...], Field(max_length=40, fail_fast=True)] = ()
    entries_seen: Count = 0
    stopped_early: Word | None = None
    """Which cap ended the walk, such as `too_many_entries` or `deadline`."""
    sizes: Annotated[tuple[ImageSize, ...], Field(max_length=2048, fail_fast=True)] = ()
    """Sizes of counted images; a sample when there are more."""
    lab_copies: Count = 0
    """Counted images that lie in the lab's own hand-out folder."""


class OperatorFacts(Wire):
    """One operator of the learner's graph."""

    name: ShortText
    device: ShortText
    file: ShortText = ""
    line: Count | None = None


class GraphFacts(Wire):
    """What the clean room read in the learner's graph before running it."""

    operators: Annotated[tuple[OperatorFacts, ...], Field(max_length=2000, fail_fast=True)]
    declared_batch_size: Count
    declared_threads: Count
    declared_prefetch: Count
    output_devices: Annotated[tuple[ShortText, ...], Field(max_length=64, fail_fast=True)]
    decoder_devices: Annotated[tuple[ShortText, ...], Field(max_length=64, fail_fast=True)] = ()
    changed: Annotated[tuple[ShortText, ...], Field(max_length=64, fail_fast=True)] = ()
    """What was re-pointed, stripped or clamped."""
    augmentations: Annotated[tuple[ShortText, ...], Field(max_length=64, fail_fast=True)] = ()


class BatchFacts(Wire):
    """The first batch, drawn in our own process; a fact, not a claim."""

    output: Count
    """Index of the pipeline output that holds the images."""
    shape: Shape
    dtype: ShortText
    layout: ShortText
    device: ShortText
    """`cuda` or `cpu`, where the batch was found."""
    declared_device: ShortText
    """`gpu` or `cpu`, as the learner's graph places this output; differs from `device` in a rehearsal only."""
    finite: bool
    constant: bool
    low: float
    high: float
    outputs: Annotated[tuple[ShortText, ...], Field(max_length=64, fail_fast=True)] = ()


class ServedBatch(Wire):
    """The first batch of the learner's own code on held-out images, where its graph could not be carried (tiers B, C).

    Shape, type and device are claims of the learner's process; that images were new was seen by the host.
    """

    shape: Shape
    dtype: ShortText
    device: Device
    tier: Literal["B", "C"] = "B"
    distinct: Count
    """Different new images that were proved to come, counted up to the size of a batch as all windows held to it."""


class CleanRoom(Wire):
    """What became of the learner's graph in the clean room."""

    pipeline: ShortText
    """Name of the pipeline that was carried."""
    graph: GraphFacts | None = None
    batch: BatchFacts | None = None
    problem: Word | None = None
    """Why the graph could not be carried or run; null when it ran."""
    problem_text: LongText = ""
    served: ServedBatch | None = None
    """What the learner's own code delivered instead; null when the graph ran, or nothing could be drawn."""
    factory_problem: LongText = ""
    """What went wrong in that code where it delivered nothing; empty when it did, or was not called."""


class ProbeSite(StrEnum):
    """Where a probe runs, which says what its observations are worth."""

    LEARNER = "learner"
    """In the process that ran the learner's code: claims."""
    GRAPH = "graph"
    """In a pod of ours that holds the learner's DALI graphs and none of its Python: facts."""


class ProbeRef(Wire):
    """A probe that a run has to execute. Its source is known by its digest and never imported outside a pod."""

    id: Identifier
    version: Version
    site: ProbeSite
    sha256: Sha256
    """Of the source."""
    budget_s: Annotated[float, Field(gt=0, le=600)]
    """Seconds that it may take, the building of graphs included."""
    params: Mapping[Identifier, Mapping[str, object]] = Field(default_factory=dict)
    """Per check that asked for it, the lab's parameters."""


@dataclass(frozen=True)
class ProbeTask:
    """A probe on its way into a pod, with its source."""

    ref: ProbeRef
    source: bytes


class ProbeRecord(Wire):
    """What became of one probe."""

    id: Identifier
    version: Version
    site: ProbeSite
    sha256: Sha256
    status: Literal["ok", "raised", "graph_failed", "no_graph", "timed_out", "pod_ended", "unreadable"]
    """`graph_failed`: the learner's graph did not run on the probe's images. `no_graph`: none could be carried."""
    text: LongText = ""
    """What was raised, or why nothing could be observed."""
    traceback: LongText = ""
    """Of what was raised, from the probe's first line on, for its author; learners are not shown it."""
    printed: LongText = ""
    """What the probe printed last, for its author; learners are not shown it."""
    wall_s: Seconds = 0.0
    """By the host's clock."""
    observations: Mapping[str, JsonValue] | None = None
    """Null unless the status is `ok`."""


class RunRecord(Wire):
    """What the host saw of the whole run."""

    run_id: Identifier
    grader_version: ShortText | None = None
    """Of the grader that ran it, which may be another than the one that judges; null where it did not say so yet."""
    device: Device
    sandbox: ShortText
    isolated: bool
    image: ShortText | None = None
    image_digest: ShortText | None = None
    engine: ShortText | None = None
    entry_point: ShortText
    host: Mapping[str, object] = Field(default_factory=dict)
    gpu: Mapping[str, object] | None = None
    seed: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    pods: tuple[PodRecord, ...]
    versions: Mapping[Word, ShortText] = Field(default_factory=dict)
    """Of torch, torchvision and DALI, as our own pods found them; the learner's pod fills in what they do not load."""
    timings_s: Mapping[str, float] = Field(default_factory=dict)
    learner_limit_s: Seconds | None = None
    """What the learner's code was given; null where it was not recorded."""
    learner_output: LongText = ""
    """What it printed last while it ran top to bottom, without paths of ours; for the learner."""
    gpu_held_s: Seconds | None = None
    """From the first line of the learner's code until no pod of the run had the GPU any more; null without a GPU."""
    reused_from: Identifier | None = None
    """The run that found all this on the same bytes, so that this one was not executed; null for a run of its own."""

    def ending_of(self, role: PodRole) -> PodRecord | None:
        """The record of the pod with this role, if one was started."""
        return next((pod for pod in self.pods if pod.role is role), None)


class Evidence(Wire):
    """Everything a judge may look at, for one run."""

    schema_id: Literal["grader.evidence/v1"] = Field(default="grader.evidence/v1", alias="schema")
    run: RunRecord
    discovery: Discovery | None = None
    """Null when the learner's pod ended without saying anything."""
    scan: Scan | None = None
    clean_room: CleanRoom | None = None
    measurement: Measurement | None = None
    probes: Annotated[tuple[ProbeRecord, ...], Field(max_length=64)] = ()

    def probe(self, probe_id: str) -> ProbeRecord | None:
        """The record of the probe with this id, if the run was asked for it."""
        return next((record for record in self.probes if record.id == probe_id), None)


class Quoted(BaseModel):
    """What a verdict quotes of evidence; the rest of it is passed over, unread."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    run: RunRecord
    measurement: Measurement | None = None


class Rejection(Wire):
    """Why a submission could not be run at all; stored in the place of evidence."""

    schema_id: Literal["grader.rejection/v1"] = Field(default="grader.rejection/v1", alias="schema")
    run_id: Identifier
    device: Device
    sandbox: ShortText
    isolated: bool
    code: Code
    feedback: LongText

    @classmethod
    def of(cls, error: SubmissionRejected, *, run_id: str, device: Device, sandbox: str, isolated: bool) -> Self:
        """That of a run which ended with this error."""
        code, feedback = error.code, error.feedback
        return cls(run_id=run_id, device=device, sandbox=sandbox, isolated=isolated, code=code, feedback=feedback)


class Need(StrEnum):
    """A part of the evidence that a check looks at; a run collects only what its checks need."""

    DISCOVERY = "discovery"
    SCAN = "scan"
    CLEAN_ROOM = "clean_room"
    MEASUREMENT = "measurement"


class RunTask(Wire):
    """What a run has to collect. Made where checks may be loaded, used where they may not."""

    needs: tuple[Need, ...]
    steps: tuple[Identifier, ...] = ()
    """Step ids to grade; empty means all of the lab's."""
    threshold: Annotated[float, Field(gt=0)] = 1.1
    """Ratio at which the sequential test aims."""
    probes: Annotated[tuple[ProbeRef, ...], Field(max_length=64)] = ()
    attempt: Annotated[int, Field(ge=1)] = 1
    """Which measured attempt of the learner at the lab this is; known when the run is claimed."""
    enough_images: Annotated[int, Field(ge=1)] = ENOUGH_IMAGES
    """Distinct JPEGs of the learner's after which counting may end."""


class RunPlan(RunTask):
    """The task of a run that is stored, with the lab to grade it by."""

    lab: LabRef
