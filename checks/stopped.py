"""The results of checks that could not look, because the learner's code did not get that far."""

from checks.api import CheckResult, failed
from checks.near_misses import nearest, said
from grader_service.model.evidence import Discovery, Evidence
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome

NOT_REACHED = "run.not_reached"
"""Code of a check that could not look because the run ended before; what ended it is said once, in the verdict's `run`."""


def not_reached(discovery: Discovery | None) -> CheckResult:
    """The result of a check that could not look because of how the run ended.

    It earns nothing where the code stopped by its own fault, and is left open where only a GPU was missing.
    """
    open_still = discovery is not None and bool(discovery.needs_gpu)
    return CheckResult(
        outcome=Outcome.SKIPPED,
        code=NOT_REACHED,
        score=None if open_still else 0.0,
        parts=Feedback(outcome="Not reached: your code ended before it could be looked at."),
    )


def no_evidence(evidence: Evidence) -> CheckResult:
    """The result of a check when a run left nothing of what it looks at."""
    return not_reached(evidence.discovery)


def missing(discovery: Discovery, check: str, name: str, wanted: str, *, code: str | None = None) -> CheckResult:
    """The result when a name that the check needs is not there: not reached, or a failure if the code ran to its end.

    The failure's code is `<check>.<name>_missing` unless another is given.
    """
    if discovery.ran != "completed":
        return not_reached(discovery)
    found = nearest(discovery, name)
    seen, action, line = "", f"Set `{name}` in your code.", ""
    if found is not None:
        seen = f"There is `{found.name}`, {said(found)}: you may mean that."
        action, line = "Add this line:", f"{name} = {found.name}"
    return failed(
        code or f"{check}.{name}_missing",
        Feedback(
            outcome=f"`{name}` is not defined.",
            seen=seen,
            wanted=f"It should hold {wanted}.",
            next=NextStep(text=action, code=line),
        ),
    )
