"""Counts over a cohort's verdicts, taken in one pass."""

import re
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from grader_service.model.verdict import Mode, Outcome, Status
from grader_service.model.verdict_summary import CheckSummary, CohortEntry, VerdictSummary
from grader_service.report.cohort.spread import Share, share

SCORE_BINS = 20


@dataclass
class CheckTally:
    """One check of one lab over all submissions that it judged."""

    lab: str
    step: str
    check: str
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    """As what they count: what was not reached is a failure."""
    versions: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """`step/check`, as the table's filters call it."""
        return f"{self.step}/{self.check}"

    @property
    def judged(self) -> int:
        """Submissions with any outcome of it."""
        return self.outcomes.total()

    @property
    def rate(self) -> Share:
        """Passed of those that passed or failed."""
        passed = self.outcomes[Outcome.PASSED]
        return share(passed, passed + self.outcomes[Outcome.FAILED])


@dataclass(frozen=True)
class Reason:
    """A code that kept somebody from passing; without a check it is the whole verdict's."""

    code: str
    result: str
    """As what the check's outcome counts, or the submission's status."""
    step: str | None = None
    check: str | None = None


@dataclass
class Tally:
    """What the plots and tables of a cohort are made of."""

    submissions: int = 0
    learners: set[str] = field(default_factory=set)
    labs: Counter[str] = field(default_factory=Counter)
    cohorts: Counter[str | None] = field(default_factory=Counter)
    statuses: Counter[Status] = field(default_factory=Counter)
    rehearsals: int = 0
    points: set[float] = field(default_factory=set)
    """Points that could be had, over all verdicts."""
    shares: "array[float]" = field(default_factory=lambda: array("d"))
    """Score over points, of each verdict with a score."""
    checks: dict[tuple[str, str, str], CheckTally] = field(default_factory=dict)
    reasons: Counter[Reason] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    """Submissions in which a code occurs."""
    ratios: list[tuple[float, float, float]] = field(default_factory=list)
    """Ratio and both ends of its interval."""
    rates: dict[str, "array[float]"] = field(default_factory=dict)
    """Median images/s by arm."""
    received_from: float | None = None
    received_to: float | None = None
    newest: float | None = None
    """When the youngest verdict was made."""

    def add(self, entry: CohortEntry) -> None:
        """Counts one submission."""
        summary = entry.summary
        self.submissions += 1
        if summary.learner is not None:
            self.learners.add(summary.learner)
        self.labs[summary.lab] += 1
        self.cohorts[summary.cohort] += 1
        self.statuses[summary.status] += 1
        self.rehearsals += summary.mode is Mode.REHEARSAL
        self._add_score(summary)
        for check in summary.checks:
            self._add_check(summary.lab, check)
        self._add_codes(summary)
        if (ratio := summary.ratio) is not None:
            self.ratios.append((ratio.ratio, ratio.low, ratio.high))
        for arm, rate in summary.rates.items():
            self.rates.setdefault(arm, array("d")).append(rate.median)
        self.received_from = _outer(min, self.received_from, entry.received_at)
        self.received_to = _outer(max, self.received_to, entry.received_at)
        self.newest = _outer(max, self.newest, summary.created_at)

    @property
    def top(self) -> float | None:
        """The points that can be had, where they are the same for all."""
        return next(iter(self.points)) if len(self.points) == 1 else None

    @property
    def passing(self) -> Share:
        """Passed of all submissions."""
        return share(self.statuses[Status.PASSED], self.submissions)

    def ordered_checks(self) -> list[CheckTally]:
        """By lab, in the order in which the checks were first met."""
        return sorted(self.checks.values(), key=lambda check: check.lab)

    def _add_score(self, summary: VerdictSummary) -> None:
        if summary.max_score is None:
            return
        self.points.add(summary.max_score)
        if summary.score is not None:
            self.shares.append(summary.score / summary.max_score)

    def _add_check(self, lab: str, check: CheckSummary) -> None:
        key = (lab, check.step, check.id)
        tally = self.checks.get(key) or self.checks.setdefault(key, CheckTally(*key))
        tally.outcomes[check.counted] += 1
        tally.versions.add(check.version)
        if check.counted is not Outcome.PASSED:
            self.reasons[Reason(check.code, check.counted.value, check.step, check.id)] += 1

    def _add_codes(self, summary: VerdictSummary) -> None:
        codes = {check.code for check in summary.checks}
        if summary.status is not Status.PASSED and summary.code not in codes:
            self.reasons[Reason(summary.code, summary.status.value)] += 1
        self.codes.update({summary.code, *codes})


def _outer(which: Callable[[float, float], float], so_far: float | None, at: float) -> float:
    return at if so_far is None else which(so_far, at)


def version_order(version: str) -> tuple[tuple[int, int | str], ...]:
    """Sorts 1.10.0 behind 1.9.0, whatever else a version holds."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"[.+-]", version))
