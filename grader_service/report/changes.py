"""What changed from one attempt of a learner to the next; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader_service.model.verdict import CheckVerdict, Verdict
from grader_service.report import formats, words

NOT_REACHED = "not reached"


@dataclass(frozen=True)
class Attempt:
    """Which attempt of its learner at its lab a verdict is on, and what came before."""

    number: int | None = None
    """From 1 on; null for what was never measured, which counts as none."""
    earlier: Verdict | None = None
    """On what the learner handed in before, measured or not."""


def reached(checks: Sequence[CheckVerdict]) -> bool:
    """Whether the run got far enough for any of a step's checks to look."""
    return not checks or any(not check.unreached for check in checks)


def since(earlier: Verdict, now: Verdict) -> list[str]:
    """Steps that came out otherwise, then points and ratio, a line each; empty where nothing changed."""
    before, after = results(earlier), results(now)
    lines = [
        f"{step.title or words.title(step.id)}: {before[step.id]} → {after[step.id]}"
        for step in now.steps
        if step.id in before and before[step.id] != after[step.id]
    ]
    if earlier.score is not None and now.score is not None and earlier.score != now.score:
        lines.append(f"Points: {formats.points(earlier.score)} → {formats.points(now.score)}")
    first, second = _ratio(earlier), _ratio(now)
    if first is not None and second is not None and f"{first:.2f}" != f"{second:.2f}":
        lines.append(f"Ratio: {first:.2f} → {second:.2f}")
    return lines


def results(verdict: Verdict) -> dict[str, str]:
    """How each step came out, in the words of the page."""
    return {
        step.id: step.outcome.value
        if reached([check for check in verdict.checks if check.step == step.id])
        else NOT_REACHED
        for step in verdict.steps
    }


def _ratio(verdict: Verdict) -> float | None:
    measured = verdict.measurement
    return measured.decision.ratio if measured is not None and measured.decision is not None else None
