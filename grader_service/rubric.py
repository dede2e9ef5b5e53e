"""Combines check results into steps, a score and a status; pure."""

from collections.abc import Sequence
from typing import Any

from grader_service.judging import Judged
from grader_service.model.lab import LabStep
from grader_service.model.verdict import CheckVerdict, Outcome, Status, StepVerdict

# What a step or a submission is called when its parts differ: the first of these that any part has.
_WORST_FIRST = (
    Outcome.ERROR,
    Outcome.FAILED,
    Outcome.UNVERIFIED,
    Outcome.INCONCLUSIVE,
    Outcome.SKIPPED,
    Outcome.PASSED,
)
_STATUS = {
    Outcome.ERROR: Status.ERROR,
    Outcome.FAILED: Status.FAILED,
    Outcome.UNVERIFIED: Status.UNVERIFIED,
    Outcome.INCONCLUSIVE: Status.INCONCLUSIVE,
    Outcome.SKIPPED: Status.UNVERIFIED,
    Outcome.PASSED: Status.PASSED,
}


def check_verdict(judged: Judged) -> CheckVerdict:
    """A check's answer scaled to its points in the lab."""
    result, points = judged.result, judged.check.points
    return CheckVerdict(
        id=judged.check.id,
        version=judged.version,
        step=judged.step.id,
        outcome=result.outcome,
        code=result.code,
        score=None if result.score is None else result.score * points,
        max_score=points,
        feedback=result.feedback,
        details=plain(result.details),
        tier=result.tier,
    )


def step_verdict(step: LabStep, checks: Sequence[CheckVerdict]) -> StepVerdict:
    """A step passes when all of its checks do; its score is unknown as soon as one of theirs is."""
    mine = [check for check in checks if check.step == step.id]
    return StepVerdict(
        id=step.id,
        outcome=worst(check.outcome for check in mine),
        score=total([check.score for check in mine]),
        max_score=sum(check.max_score for check in mine),
    )


def worst(outcomes: Any) -> Outcome:
    """The outcome that stands for several; no outcome at all is an error, never a pass."""
    present = set(outcomes)
    return next((outcome for outcome in _WORST_FIRST if outcome in present), Outcome.ERROR)


def status_of(outcome: Outcome) -> Status:
    """The submission's status for the worst outcome of its steps."""
    return _STATUS[outcome]


def total(scores: Sequence[float | None]) -> float | None:
    """The sum, or None when any part is unknown: an absent score is never 0."""
    known = [score for score in scores if score is not None]
    return sum(known) if len(known) == len(scores) else None


def plain(value: Any) -> Any:
    """Details as JSON values: tuples become lists, mappings dicts; anything else is shown as text."""
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
