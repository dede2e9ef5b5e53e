"""What a batch of re-grades changes: kinds, transitions, checks, movers, versions and the flake ledger."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from grader_service.model.base import Code, Count, Fraction, Identifier, LongText, ShortText, Wire
from grader_service.model.regrade import Batch, Progress
from grader_service.model.verdict_summary import RatioSummary

SCORE_BINS = 20
"""Bars of a histogram of scores, each of 5 % of all points; the last one holds 95 % to 100 % and what is above."""

Result = Literal["passed", "failed", "inconclusive", "unverified", "rejected", "skipped", "error", "absent"]
"""A status of a submission, or an outcome of a step or check; `absent` where the verdict holds no such part."""

Share = Annotated[float, Field(ge=0)]
"""Points over all points: 0.5 for half of them. More than 1 where more were earned than there are."""


class Kind(StrEnum):
    """What a batch means for one submission; every submission of a batch is of one kind."""

    NEWLY_FAILING = "newly_failing"
    """Fails or is rejected, and did neither before."""
    NEWLY_PASSING = "newly_passing"
    """Passes, and did not before."""
    NEWLY_UNDECIDED = "newly_undecided"
    """Passed, failed or was rejected before; now it is inconclusive, unverified or an error."""
    OTHERWISE_CHANGED = "otherwise_changed"
    """None of these, yet the status, the score or a check's outcome or points differ."""
    UNCHANGED = "unchanged"
    OUTDATED = "outdated"
    """Another verdict came in force meanwhile; `apply` leaves it alone, so it is in no figure of a diff."""
    PENDING = "pending"
    """Has no new verdict yet."""
    NEEDS_ATTENTION = "needs_attention"
    """Has no new verdict: our failures used up its tries."""
    CANCELLED = "cancelled"
    """Has no new verdict and will get none: the batch was cancelled."""


CHANGED = (Kind.NEWLY_FAILING, Kind.NEWLY_PASSING, Kind.NEWLY_UNDECIDED, Kind.OTHERWISE_CHANGED)
"""Kinds of which a learner would see a difference."""
COMPARED = (*CHANGED, Kind.UNCHANGED)
"""Kinds that `apply` would put in force: those with two verdicts to compare."""
OPEN = (Kind.PENDING, Kind.NEEDS_ATTENTION, Kind.CANCELLED)
"""Kinds without a new verdict."""


class Filter(Wire):
    """Which submissions of a batch: all conditions must hold; those left empty hold always."""

    learner: ShortText | None = None
    text: ShortText = ""
    """Part of the submission's id or the learner's, whatever its case."""
    step: Identifier | None = None
    """With `check`: the check in that step. Without: what `old`, `new` and `differs` are asked of."""
    check: Identifier | None = None
    """What `old`, `new` and `differs` are asked of; without check and step it is the whole verdict."""
    old: Result | None = None
    """The check's or step's outcome, or the status."""
    new: Result | None = None
    differs: bool = False
    """Outcome, status or points are not what they were."""
    code: Code | None = None
    """Of the new verdict: its own, or that of one of its checks."""
    kinds: tuple[Kind, ...] = ()


class Transition(Wire):
    """So many submissions went from one result to another; the same on both sides for those that stayed."""

    old: Result
    new: Result
    submissions: Count


class Scores(Wire):
    """Scores of one side, as shares of all points."""

    scored: Count
    """Submissions with a score."""
    without: Count
    """Submissions without one, which is not 0."""
    mean: Share | None
    """Null where nobody has a score; so is the median."""
    median: Share | None
    histogram: Annotated[tuple[Count, ...], Field(min_length=SCORE_BINS, max_length=SCORE_BINS)]


class StepDiff(Wire):
    """One step over all submissions that were compared."""

    lab: Identifier
    step: Identifier
    transitions: tuple[Transition, ...]
    changed: Count
    """Submissions of which its outcome or points differ."""
    passed_before: Count
    passed_after: Count
    decided_before: Count
    """Submissions that passed or failed it: those that a pass rate is of."""
    decided_after: Count


class VersionSeen(Wire):
    """A version of a check, and how many verdicts of either side it made."""

    version: ShortText
    before: Count
    after: Count


class CheckDiff(StepDiff):
    """One check over all submissions that were compared."""

    check: Identifier
    versions: tuple[VersionSeen, ...]

    @property
    def mixed(self) -> bool:
        """Whether several versions judged on one side, so that its figures are not of one rule."""
        return sum(seen.before > 0 for seen in self.versions) > 1 or sum(seen.after > 0 for seen in self.versions) > 1


class CodeDiff(Wire):
    """A check's reason, and how many verdicts gave it."""

    lab: Identifier
    step: Identifier
    check: Identifier
    code: Code
    before: Count
    after: Count


class Reason(Wire):
    """A check that came out differently for one submission."""

    step: Identifier
    check: Identifier
    old: Result
    new: Result
    old_code: Code | None
    """Null where the check is absent; so are its points."""
    new_code: Code | None
    old_score: Share | None
    """Points; null where the check could not decide."""
    new_score: Share | None


class Mover(Wire):
    """A submission whose verdict differs, and why."""

    submission_id: Identifier
    learner: ShortText | None
    cohort: ShortText | None
    kind: Kind
    old_status: Result
    new_status: Result
    old_score: Share | None
    """Points; null where something could not be decided."""
    new_score: Share | None
    old_max_score: Share | None
    new_max_score: Share | None
    moved: float | None
    """Change of the share of all points, below 0 for a loss; null where a score came or went."""
    reasons: tuple[Reason, ...]
    """In the order of the checks; empty where the score alone differs."""
    old_ratio: RatioSummary | None = None
    new_ratio: RatioSummary | None = None


class ResultCount(Wire):
    """A result and how often it was seen."""

    result: Result
    submissions: Count


class FlakeRow(Wire):
    """How often one check, or the status, came out differently over repetitions of the same submission."""

    lab: Identifier | None
    """Null for the status of submissions, over all labs; so are step and check."""
    step: Identifier | None
    check: Identifier | None
    submissions: Count
    """Those with two repetitions or more."""
    varying: Count
    """Those whose outcome was not the same every time."""
    rate: Fraction
    """Varying over all of them."""
    low: Fraction
    """Wilson's interval for the rate, 95 %; so is `high`."""
    high: Fraction
    rescored: Count
    """Those of the same outcome every time whose points were not."""
    results: tuple[ResultCount, ...]
    """Which outcomes came up among the varying ones; a submission counts under each of its own."""


class Unsteady(Wire):
    """One submission with a check whose outcome varies."""

    submission_id: Identifier
    learner: ShortText | None
    step: Identifier | None
    check: Identifier | None
    """Null, as the step is, for the status."""
    outcomes: tuple[Result, ...]
    """Of each repetition, in their order."""


class Spread(Wire):
    """Coefficients of variation of one measured value over repetitions: sample SD over mean, a number a submission."""

    value: ShortText
    """`ratio`, or the arm whose images per second these are."""
    submissions: Count
    median: Share
    p95: Share
    highest: Share


class Flakes(Wire):
    """The flake ledger: what varied although nothing but the repetition did."""

    repeats: Count
    """Repetitions that the batch asked for."""
    submissions: Count
    """Those with two repetitions or more, by which everything here is counted."""
    varying: Count
    """Those with any check or status that varies."""
    rows: tuple[FlakeRow, ...]
    """The status, then each check; the most varying first."""
    unsteady: tuple[Unsteady, ...]
    """Ordered by submission; bounded."""
    unsteady_beyond: Count = 0
    """How many more there are."""
    spreads: tuple[Spread, ...] = ()


class Diff(Wire):
    """What a batch changes, in figures. Those of transitions, scores, steps, checks and codes are of `COMPARED`."""

    batch: Batch
    progress: Progress
    chosen: Filter | None = None
    """What these figures were narrowed to."""
    kinds: Mapping[Kind, Count]
    """Every kind, those with nobody too; they add up to all chosen submissions."""
    undecided_by_evidence: Count
    """Judged from stored evidence, and a check that was decided, or absent, is undecided now: a run could tell."""
    newer: Count
    """Of those that change: submissions after which their learner handed in another one to the same lab."""
    statuses: tuple[Transition, ...]
    before: Scores
    after: Scores
    mean_moved: float | None
    """Mean change of the share of all points, of those with a score on both sides; null where nobody has."""
    steps: tuple[StepDiff, ...]
    checks: tuple[CheckDiff, ...]
    codes: tuple[CodeDiff, ...]
    """Those that came up most first, by how many more verdicts give them."""
    newly_failing: tuple[Mover, ...]
    """Ordered by submission; bounded."""
    newly_failing_beyond: Count = 0
    """How many more there are."""
    movers: tuple[Mover, ...]
    """By the share of points that they gain or lose, the most first; one that came or went counts whole."""
    flakes: Flakes | None = None
    """Null where the batch has no repetitions."""
    warnings: tuple[LongText, ...] = ()
    """What makes these figures doubtful, such as several versions of one check on one side."""

    def count(self, *kinds: Kind) -> int:
        """Submissions of these kinds together; of all kinds where none is given."""
        return sum(self.kinds.get(kind, 0) for kind in kinds or tuple(Kind))

    @property
    def changed(self) -> int:
        """Submissions of which a learner would see a difference."""
        return self.count(*CHANGED)

    @property
    def compared(self) -> int:
        """Submissions with two verdicts that `apply` would act on."""
        return self.count(*COMPARED)

    @property
    def open(self) -> int:
        """Submissions without a new verdict."""
        return self.count(*OPEN)
