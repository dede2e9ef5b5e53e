"""What the filters of a page offer: only what occurs."""

from collections.abc import Iterable, Sized
from dataclasses import dataclass, field

from grader_service.model.regrade import Change
from grader_service.model.verdict_summary import VerdictSummary
from grader_service.report import words
from grader_service.report.cohort import wording
from grader_service.report.cohort.columns import check_name
from grader_service.report.cohort.embedded_data import safe

Option = tuple[str, str]
"""A filter's value and what is shown for it."""
Column = tuple[str, str, str]
"""Key, heading and kind of a column of the table."""


@dataclass
class Choices:
    """Values that occur in the changes of a batch."""

    statuses: set[str] = field(default_factory=set)
    checks: dict[str, None] = field(default_factory=dict)
    """By name, in the order in which they were met."""
    outcomes: set[str] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    """Of new verdicts."""
    labs: set[str] = field(default_factory=set)
    cohorts: set[str] = field(default_factory=set)

    def add(self, change: Change) -> None:
        """Takes in what one submission has."""
        self.labs.add(change.old.lab)
        if change.old.cohort is not None:
            self.cohorts.add(str(safe(change.old.cohort)))
        self._add_verdict(change.old)
        if change.new is not None:
            self._add_verdict(change.new)
            self.codes.update([change.new.code, *(check.code for check in change.new.checks)])
            if {check_name(check) for check in change.old.checks} != {check_name(check) for check in change.new.checks}:
                self.outcomes.add("absent")

    def offered(self) -> dict[str, list[Option]]:
        """By filter."""
        return {
            "statuses": plain(sorted(self.statuses, key=wording.status_order)),
            "checks": of_checks(self.checks),
            "outcomes": plain(sorted(self.outcomes, key=wording.outcome_order)),
            "codes": plain(sorted(self.codes)),
            "labs": plain(sorted(self.labs)),
            "cohorts": plain(sorted(self.cohorts)),
        }

    def _add_verdict(self, summary: VerdictSummary) -> None:
        self.statuses.add(summary.status.value)
        for check in summary.checks:
            self.checks[check_name(check)] = None
            self.outcomes.add(check.counted.value)


def columns(labs: Sized, cohorts: Sized, *others: Column) -> list[Column]:
    """Those of the table; lab and cohort only where they differ."""
    return [
        ("id", "Submission", "text"),
        ("learner", "Learner", "text"),
        *([("lab", "Lab", "text")] if len(labs) > 1 else []),
        *([("cohort", "Cohort", "text")] if len(cohorts) > 1 else []),
        *others,
    ]


def plain(values: Iterable[str]) -> list[Option]:
    """Options that show their values."""
    return [(value, value) for value in values]


def of_checks(names: Iterable[str]) -> list[Option]:
    """Checks by their names on a page; with the step where several steps have a check of the same id."""
    names = list(dict.fromkeys(names))
    ids = [name.rpartition("/")[2] for name in names]
    return [
        (name, words.title(check) if ids.count(check) == 1 else f"{words.title(check)} ({name.rpartition('/')[0]})")
        for name, check in zip(names, ids, strict=True)
    ]
