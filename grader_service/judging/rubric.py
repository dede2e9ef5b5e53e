"""Combines check results into steps, a score and a status; pure."""

from collections.abc import Sequence
from typing import Any

from checks.api import MAX_FEEDBACK
from grader_service.judging.checks import Judged
from grader_service.model.base import neutralise
from grader_service.model.feedback import Feedback
from grader_service.model.lab import LabStep
from grader_service.model.verdict import (
    STAFF_FEEDBACK,
    CheckVerdict,
    Outcome,
    StepVerdict,
)

# What a step or a submission is called when its parts differ: the first of these that any part has.
_WORST_FIRST = (
    Outcome.ERROR,
    Outcome.FAILED,
    Outcome.UNVERIFIED,
    Outcome.INCONCLUSIVE,
    Outcome.SKIPPED,
    Outcome.PASSED,
)

_BARE = {
    Outcome.PASSED: "This check passed.",
    Outcome.FAILED: "This check did not pass.",
    Outcome.INCONCLUSIVE: "This check could not be decided.",
    Outcome.UNVERIFIED: "This check could not be verified.",
    Outcome.SKIPPED: "Not reached.",
    Outcome.ERROR: "This check failed for a reason of ours.",
}
HIDDEN_FEEDBACK = "This check was graded; the lab does not show its result."


def check_verdict(judged: Judged) -> CheckVerdict:
    """A check's answer scaled to its points in the lab, in the words that the lab lets its learners read."""
    result, points, shown = judged.result, judged.check.points, _shown(judged)
    details = plain(result.details)
    if judged.check.feedback != "full":
        details[STAFF_FEEDBACK] = result.feedback
    return CheckVerdict(
        id=judged.check.id,
        version=judged.version,
        step=judged.step.id,
        outcome=result.outcome,
        code=result.code,
        score=None if result.score is None else round(result.score * points, 4),
        max_score=points,
        feedback=shown.text[:MAX_FEEDBACK],
        parts=shown,
        details=details,
        tier=result.tier,
        review=judged.review,
        visibility=judged.check.feedback,
        optional=judged.check.optional,
    )


def _shown(judged: Judged) -> Feedback:
    if judged.check.feedback == "hidden":
        return Feedback(outcome=HIDDEN_FEEDBACK)
    if judged.check.feedback == "outcome":
        bare = _BARE[judged.result.outcome]
        reached = judged.result.outcome is not Outcome.SKIPPED
        return Feedback(outcome=f"{bare} Its code is {judged.result.code}." if reached else bare)
    return judged.result.parts


def step_verdict(step: LabStep, checks: Sequence[CheckVerdict]) -> StepVerdict:
    """A step passes when all of its checks do that are not optional; its score is unknown as soon as one of theirs is.

    Points of an optional check count like others. One that could not be decided is left out of both sums, so that
    advice never costs a learner the score of the step.
    """
    mine = [check for check in checks if check.step == step.id]
    needed = needed_of([step], mine)
    counted = [check for check in mine if check in needed or check.score is not None]
    return StepVerdict(
        id=step.id,
        title=step.title,
        outcome=worst(check.counted for check in needed),
        score=total([check.score for check in counted]),
        max_score=sum(check.max_score for check in counted),
    )


def needed_of(steps: Sequence[LabStep], checks: Sequence[CheckVerdict]) -> list[CheckVerdict]:
    """Those checks that decide on their step, which are all but the optional ones."""
    advice = {(step.id, check.id) for step in steps for check in step.checks if check.optional}
    return [check for check in checks if (check.step, check.id) not in advice]


def hidden_ids(steps: Sequence[LabStep]) -> frozenset[str]:
    """Ids of the checks of which learners read only that they were graded."""
    return frozenset(check.id for step in steps for check in step.checks if check.feedback == "hidden")


def worst(outcomes: Any) -> Outcome:
    """The outcome that stands for several; no outcome at all is an error, never a pass."""
    present = set(outcomes)
    return next((outcome for outcome in _WORST_FIRST if outcome in present), Outcome.ERROR)


def total(scores: Sequence[float | None]) -> float | None:
    """The sum, or None when any part is unknown: an absent score is never 0."""
    known = [score for score in scores if score is not None]
    return sum(known) if len(known) == len(scores) else None


def plain(value: Any) -> Any:
    """Details as JSON values: tuples become lists, mappings dicts; anything else is shown as text."""
    if isinstance(value, dict) or hasattr(value, "items"):
        return {neutralise(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return neutralise(str(value))
