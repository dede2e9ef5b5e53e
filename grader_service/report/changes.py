"""What changed from one attempt of a learner to the next; pure."""

from dataclasses import dataclass

from grader_service.model.verdict import Verdict
from grader_service.report import formats, words


@dataclass(frozen=True)
class Attempt:
    """Which attempt a verdict is on, and what came of the one before."""

    number: int
    earlier: Verdict | None = None


def since(earlier: Verdict, now: Verdict) -> list[str]:
    """Steps that came out otherwise, then points and ratio, a line each; empty where nothing changed."""
    before = {step.id: step for step in earlier.steps}
    lines = [
        f"{step.title or words.title(step.id)}: {before[step.id].outcome.value} → {step.outcome.value}"
        for step in now.steps
        if step.id in before and before[step.id].outcome is not step.outcome
    ]
    if earlier.score is not None and now.score is not None and earlier.score != now.score:
        lines.append(f"Points: {formats.points(earlier.score)} → {formats.points(now.score)}")
    first, second = _ratio(earlier), _ratio(now)
    if first is not None and second is not None and f"{first:.2f}" != f"{second:.2f}":
        lines.append(f"Ratio: {first:.2f} → {second:.2f}")
    return lines


def _ratio(verdict: Verdict) -> float | None:
    measured = verdict.measurement
    return measured.decision.ratio if measured is not None and measured.decision is not None else None
