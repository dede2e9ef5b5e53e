"""The results of checks that could not look, because the learner's code did not get that far, or lacks a name."""

from typing import Literal

from checks.api import CheckResult, failed
from checks.near_misses import nearest, said
from grader_service.model.base import ShortText, Wire
from grader_service.model.discovery import Discovery, NameFacts
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import NOT_REACHED, Outcome

"""Code of a check that could not look because the run ended before; what ended it stands in the verdict's `run`."""


class Absent(Wire):
    """A name that is missing, and why that may be."""

    name: ShortText
    run: Literal["completed", "ended", "needs_gpu"] = "completed"
    """`ended`: the code stopped before its last line. `needs_gpu`: it did because a rehearsal has no GPU."""
    near: NameFacts | None = None
    """The variable that was probably meant."""


def absent(discovery: Discovery, name: str) -> Absent:
    """What is known about a name that is missing."""
    run: Literal["completed", "ended", "needs_gpu"] = "completed"
    if discovery.ran != "completed":
        run = "needs_gpu" if discovery.needs_gpu else "ended"
    return Absent(name=name, run=run, near=nearest(discovery, name))


def not_reached(*, needs_gpu: bool = False) -> CheckResult:
    """The result of a check that could not look because of how the run ended.

    It earns nothing where the code stopped by its own fault, and is left open where only a GPU was missing.
    """
    return CheckResult(
        outcome=Outcome.SKIPPED,
        code=NOT_REACHED,
        score=None if needs_gpu else 0.0,
        parts=Feedback(outcome="Not reached."),
        details={},
    )


def missing(found: Absent, check: str, wanted: str, *, code: str | None = None) -> CheckResult:
    """The result when a name that the check needs is not there: not reached, or a failure if the code ran to its end.

    Args:
        found: the name, and what else is known.
        check: first word of the check's codes.
        wanted: what the name should hold.
        code: of the failure, if it is not `<check>.<name>_missing`.
    """
    if found.run != "completed":
        return not_reached(needs_gpu=found.run == "needs_gpu")
    seen, action, line = "", f"Set `{found.name}` in your code.", ""
    if found.near is not None:
        seen = f"There is `{found.near.name}`, {said(found.near)}: you may mean that."
        action, line = "Add this line:", f"{found.name} = {found.near.name}"
    return failed(
        code or f"{check}.{found.name}_missing",
        Feedback(
            outcome=f"`{found.name}` is not defined.",
            seen=seen,
            wanted=f"It should hold {wanted}.",
            next=NextStep(text=action, code=line),
        ),
    )
