"""The verdict that leaves the service: schema `grader.verdict/v1`."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, ValidationError

from grader_service.model.base import Code, Frozen, Identifier, LongText, Sha256, ShortText
from grader_service.model.feedback import Feedback
from grader_service.model.lab import Visibility
from grader_service.model.measurement import Decision, Measurement
from grader_service.model.preflight import Preflight
from grader_service.model.run_report import RunReport

VERDICT_SCHEMA = "grader.verdict/v1"
STAFF_FEEDBACK = "staff_feedback"
"""Where a check's details hold the whole feedback that the lab keeps from learners."""


class Outcome(StrEnum):
    """How one check, or one step, came out."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    """Measured, but noise or the host does not allow a decision."""
    UNVERIFIED = "unverified"
    """Could not be re-measured; the feedback says what to change."""
    SKIPPED = "skipped"
    """Not judged: the run ended before there was anything to look at (`run.not_reached`)."""
    ERROR = "error"
    """Our fault."""

    def counted(self, score: float | None) -> "Outcome":
        """As what a check's outcome counts for its step and the submission, and wherever outcomes are counted.

        What was not reached because the learner's code stopped is a failure; where only a GPU was missing, it is open.

        Args:
            score: what the check earned; null where it could not decide.
        """
        if self is not Outcome.SKIPPED:
            return self
        return Outcome.UNVERIFIED if score is None else Outcome.FAILED


class Status(StrEnum):
    """The whole submission's outcome."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    UNVERIFIED = "unverified"
    REJECTED = "rejected"
    ERROR = "error"


class Tier(StrEnum):
    """How strong the evidence of a measured check is."""

    GRAPH = "A"
    """The learner's DALI graph, run in our clean room without any learner code."""
    PROOF = "B"
    """Learner code, counted by the content that it delivered."""
    COLD_PROOF = "C"
    CLAIMS = "D"
    """Nothing could be measured again: what the code says of itself. Never a pass of a check that measures."""


class Mode(StrEnum):
    """Whether the verdict may be recorded as a grade."""

    OFFICIAL = "official"
    REHEARSAL = "rehearsal"
    PREFLIGHT = "preflight"
    """Only looked at: no check judged it, the status is `unverified`, and `preflight` has what was found."""


class CheckReview(Frozen):
    """What a person has to decide about a check's answer, or has decided."""

    subject: Sha256
    """Digest of the check, its parameters and what it saw: a decision is about nothing else."""
    decision: Literal["accepted", "rejected"] | None = None
    """Null while it waits for a person."""
    decided_by: ShortText | None = None
    decided_at: AwareDatetime | None = None
    reason: LongText | None = None


NOT_REACHED = "run.not_reached"
"""Code of a check that could not look because the run had ended."""


class CheckVerdict(Frozen):
    """One check's part of the verdict."""

    id: Identifier
    version: ShortText
    step: Identifier
    outcome: Outcome
    code: Code
    """Stable reason, such as `jpeg.too_few`."""
    score: Annotated[float, Field(ge=0)] | None
    """Points earned; null where the check could not decide, never 0 in its place. What was not reached earned 0."""
    max_score: Annotated[float, Field(ge=0)]
    feedback: LongText
    """For the learner: `parts` as plain text."""
    parts: Feedback | None = None
    """What was found, seen and wanted, and what to do next; null in verdicts from before there were parts."""
    details: Mapping[str, object] = Field(default_factory=dict)
    """For staff: JSON values only."""
    tier: Tier | None = None
    review: CheckReview | None = None
    """Null for what needs no person."""
    visibility: Visibility = "full"
    """What the lab shows its learners of it."""
    optional: bool = False
    """Whether it is advice, which does not decide on its step."""

    @property
    def counted(self) -> Outcome:
        """As what its outcome counts: what was not reached is a failure."""
        return self.outcome.counted(self.score)

    @property
    def unreached(self) -> bool:
        """Whether it could not look because of how the run ended; a check may be skipped for a reason of its own."""
        return self.outcome is Outcome.SKIPPED and self.code == NOT_REACHED

    @property
    def told(self) -> Feedback:
        """The feedback in parts, whenever it was made."""
        return self.parts or Feedback.of(self.feedback)

    @property
    def decision(self) -> Decision | None:
        """The decision on the ratio by which it graded, which may be by a threshold of its own; None where it did not.

        A stored verdict may hold one of another form, which counts as none.
        """
        try:
            return Decision.model_validate(self.details.get("decision"))
        except ValidationError:
            return None


class StepVerdict(Frozen):
    """One step's part of the verdict."""

    id: Identifier
    title: ShortText | None = None
    """As the lab gives it."""
    outcome: Outcome
    score: Annotated[float, Field(ge=0)] | None
    max_score: Annotated[float, Field(gt=0)]


class Provenance(Frozen):
    """What the verdict was made from; enough to make it again."""

    submission_sha256: Sha256 | None = None
    """Null when nothing that could be hashed came."""
    filename: ShortText | None = None
    entry_point: ShortText | None = None
    """The file that was run, inside the submission."""
    lab_version: ShortText | None = None
    grader_version: ShortText
    check_versions: Mapping[str, str] = Field(default_factory=dict)
    """Check id to `version (distribution distribution-version)`."""
    sandbox: ShortText | None = None
    isolated: bool | None = None
    """False for the `process` sandbox, which runs trusted code only."""
    image: ShortText | None = None
    image_digest: ShortText | None = None
    engine: ShortText | None = None
    oci_runtime: ShortText | None = None
    """What the engine started pods with, as it names it; on Kubernetes the RuntimeClass. Null where it is not known."""
    host: Mapping[str, object] = Field(default_factory=dict)
    gpu: Mapping[str, object] | None = None
    """Model, UUID and driver version; null in a rehearsal."""
    versions: Mapping[str, str] = Field(default_factory=dict)
    """torch, torchvision and DALI as found inside the pods."""
    seed: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    """Seed of the held-out images, hexadecimal."""
    timings_s: Mapping[str, float] = Field(default_factory=dict)
    """Wall-clock seconds of each stage, by the host's clock."""
    gpu_held_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds for which the run had its GPU, from the learner's first line on; null in a rehearsal."""
    reused_from: Identifier | None = None
    """The run of the same bytes whose findings were judged, where this run was deduplicated; null otherwise."""


class Signature(Frozen):
    """Ed25519 over the canonical JSON of the verdict without this field."""

    algorithm: Literal["ed25519"] = "ed25519"
    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """First 16 hexadecimal digits of the SHA-256 of the raw public key."""
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class Verdict(Frozen):
    """The grader's whole answer for one run of one submission."""

    schema_id: Literal["grader.verdict/v1"] = Field(default="grader.verdict/v1", alias="schema")
    verdict_id: Identifier
    submission_id: Identifier
    run_id: Identifier
    lab: Identifier
    lab_title: ShortText | None = None
    """As the lab gives it; null where that is not known."""
    learner: ShortText | None
    cohort: ShortText | None
    mode: Mode
    status: Status
    code: Code
    """The reason of the status: that of the first check that kept the submission from passing."""
    feedback: LongText
    score: Annotated[float, Field(ge=0)] | None
    max_score: Annotated[float, Field(gt=0)] | None
    """Null only where the lab, or a step that was asked for, is not known."""
    created_at: datetime
    steps: tuple[StepVerdict, ...] = ()
    run: RunReport | None = None
    """What happened while the code ran; null where nothing was run, and in a preflight, which says it itself."""
    checks: tuple[CheckVerdict, ...] = ()
    measurement: Measurement | None = None
    preflight: Preflight | None = None
    """In a verdict of mode `preflight`, which has no score: what is there and what is missing."""
    provenance: Provenance
    signature: Signature | None = None

    @property
    def stopped(self) -> RunReport | None:
        """The run, where the learner's code did not come to its end."""
        return self.run if self.run is not None and self.run.stopped else None

    @property
    def passed_all_the_same(self) -> bool:
        """Whether every step passed although the code did not come to its end."""
        return self.stopped is not None and self.status is Status.PASSED
