"""Batches of re-grades: what was selected, how it is judged again, how far it is, and what would change."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer

from grader_service.model.base import Code, Count, Identifier, LongText, Seconds, ShortText, Wire
from grader_service.model.lab import LabRef
from grader_service.model.verdict import Outcome, Status
from grader_service.model.verdict_summary import VerdictSummary

MOST_REPEATS = 20
T = TypeVar("T")


class Level(StrEnum):
    """How a submission is graded again."""

    JUDGE = "judge"
    """From the evidence that is stored: no GPU, no code of a learner."""
    RUN = "run"
    """Executed again."""


class BatchState(StrEnum):
    """Where a batch is."""

    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    """No work is left: items have new verdicts or need attention; the old ones are in force until it is applied."""
    CANCELLED = "cancelled"
    """Stopped for good; what was done can be looked at."""
    APPLIED = "applied"
    REVERTED = "reverted"
    """Was applied and undone: the verdicts from before are in force again."""
    DISCARDED = "discarded"


class ItemState(StrEnum):
    """Where one submission of a batch is."""

    WAITING = "waiting"
    WORKING = "working"
    """In the hands of a worker, or a run of it waits for a GPU."""
    DONE = "done"
    NEEDS_ATTENTION = "needs_attention"
    """Our failures used up its tries."""
    CANCELLED = "cancelled"


def _several(value: object) -> object:
    """One value may stand alone, and null means any."""
    return () if value is None else (value,) if isinstance(value, str) else value


def _outcomes(values: tuple[Outcome, ...]) -> Outcome | tuple[Outcome, ...] | None:
    """Written in the shortest form that `_several` reads."""
    return None if not values else values[0] if len(values) == 1 else values


def _versions(values: tuple[str, ...]) -> str | tuple[str, ...]:
    return values[0] if len(values) == 1 else values


Outcomes = Annotated[tuple[Outcome, ...], BeforeValidator(_several), PlainSerializer(_outcomes)]
Versions = Annotated[tuple[ShortText, ...], Field(min_length=1), BeforeValidator(_several), PlainSerializer(_versions)]


class Selection(Wire):
    """Which submissions: all conditions must hold; those left empty hold always. Only graded ones are selected."""

    cohorts: tuple[ShortText, ...] = ()
    labs: tuple[Identifier, ...] = ()
    learners: tuple[ShortText, ...] = ()
    submissions: tuple[Identifier, ...] = ()
    statuses: tuple[Status, ...] = ()
    """Of the verdict in force."""
    checks: Mapping[Identifier, Outcomes] = Field(default_factory=dict)
    """Check id to the outcomes of which it must have one in the verdict in force; any when empty."""
    codes: tuple[Code, ...] = ()
    """The verdict's code, or that of one of its checks."""
    received_from: float | None = None
    """Seconds since 1970."""
    received_before: float | None = None
    image_digests: tuple[ShortText, ...] = ()
    check_versions: Mapping[Identifier, Versions] = Field(default_factory=dict)
    """Check id to the versions of which one must have judged."""
    latest_only: bool = False
    """Of each learner and lab only the submission that came last."""


def alternatives(pairs: Iterable[tuple[str, T | None]]) -> dict[str, tuple[T, ...]]:
    """Names with the values of which one will do, in the order given; none where any will do, which None says."""
    found: dict[str, dict[T | None, None]] = {}
    for name, value in pairs:
        found.setdefault(name, {})[value] = None
    return {
        name: () if None in values else tuple(value for value in values if value is not None)
        for name, values in found.items()
    }


class LevelCount(Wire):
    """So many submissions at this level for this reason."""

    level: Level | None
    """Null for submissions that are left out."""
    reason: Code
    text: LongText
    submissions: Count


class Estimate(Wire):
    """What a batch would do, before anything is done."""

    counts: tuple[LevelCount, ...]
    selected: Count
    """Submissions that the selection found, those left out included."""
    items: Count
    """Verdicts to make: submissions times repetitions."""
    gpu_s: Seconds
    """Of one GPU; 0 when every item is judged from stored evidence."""
    eta_s: Seconds | None
    """Wall clock; null when no device is ready for what has to run."""


class BatchLab(LabRef):
    """The lab that a batch grades with."""

    lab: Identifier
    version: ShortText
    origin: ShortText
    """The installed distribution, or the name of the file that was given."""
    check_versions: Mapping[Identifier, ShortText]


class Batch(Wire):
    """One batch."""

    batch_id: Identifier
    state: BatchState
    reason: LongText
    author: ShortText
    created_at: float
    selection: Selection
    level: Literal["auto", "judge", "run"]
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 1
    labs: tuple[BatchLab, ...]
    estimate: Estimate
    gpu_budget_s: Seconds | None = None
    """Seconds of GPU time after which it pauses; null: no limit."""
    note: LongText = ""
    """Why it is paused, such as a spent budget, or what somebody said; empty when nothing was said."""
    started_at: float | None = None
    finished_at: float | None = None
    applied_at: float | None = None


class Progress(Wire):
    """How far a batch is."""

    batch_id: Identifier
    state: BatchState
    counts: Mapping[ItemState, Count]
    gpu_used_s: Seconds = 0.0
    rate: Annotated[float, Field(ge=0)] | None = None
    """Items per second, lately; null before there is anything to tell from."""
    eta_s: Seconds | None = None
    note: LongText = ""

    @property
    def total(self) -> int:
        """All items."""
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        """Items that have their new verdict."""
        return self.counts.get(ItemState.DONE, 0)


class Change(Wire):
    """One submission of a batch: the verdict in force when it was planned, and what the batch made of it."""

    submission_id: Identifier
    level: Level
    reason: Code
    """Why at this level."""
    old: VerdictSummary
    new: VerdictSummary | None
    """Of the first repetition, which is the one that `apply` puts in force; null until it is done."""
    repeats: tuple[VerdictSummary, ...] = ()
    """All repetitions that are done, the first one included, where a batch has several."""
    state: ItemState = ItemState.DONE
    """Of the first repetition."""
    error: LongText = ""
    """Our failure, when there was one."""
    outdated: bool = False
    """Another verdict came in force since the batch was planned (or since it was applied); `apply` leaves it alone."""
    newer: Count = 0
    """Submissions of the same learner to the same lab that came after this one."""

    @property
    def changed(self) -> bool:
        """Whether a learner would see a difference: mode, status, score, or a check's outcome or points."""
        return self.new is not None and comparable(self.old) != comparable(self.new)


def comparable(summary: VerdictSummary) -> tuple[object, ...]:
    """What has to be equal for two verdicts to say the same; in which order a lab has its checks says nothing."""
    ordered = sorted(summary.checks, key=lambda check: (check.step, check.id))
    checks = tuple((check.step, check.id, check.counted, check.score, check.max_score) for check in ordered)
    return (summary.mode, summary.status, summary.score, summary.max_score, checks)
