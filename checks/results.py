"""What a check answers, and the functions that make it."""

from collections.abc import Mapping
from typing import Annotated, TypedDict, Unpack

from pydantic import Field, StringConstraints

from grader_service.model.base import MAX_LONG, Details, Fraction, Frozen
from grader_service.model.feedback import MAX_SENTENCE, Advice, Feedback, NextStep, Number
from grader_service.model.near import instead
from grader_service.model.place import Place
from grader_service.model.verdict import Outcome, Tier

MAX_FEEDBACK = 8192
"""Characters; what a learner's own text makes longer is cut."""
Reason = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$", max_length=80)]
"""A code; one without a dot is the last word of one, before which the check's own first word is put."""


class Result(Frozen):
    """What a check answers."""

    outcome: Outcome
    code: Reason
    """Stable reason, such as `batch.too_small`, or its last word alone; `ok` for a pass."""
    score: Fraction | None
    """Share of the points in [0, 1]; null where nothing was decided."""
    parts: Feedback
    """For the learner: what was found, seen and wanted, and what to do next."""
    details: Annotated[Mapping[str, object], Field(default_factory=dict)]
    tier: Tier | None = None

    @property
    def feedback(self) -> str:
        """The parts as plain text, at most 8192 characters."""
        return self.parts.text[:MAX_FEEDBACK]


class Parts(TypedDict, total=False):
    """What feedback holds beside its outcome; see `grader_service.model.feedback.Feedback`."""

    seen: str
    """What was found, with its figures."""
    wanted: str
    """What is asked for."""
    next: str
    """An action: begins with a verb. Everything but a pass has one."""
    write: str
    """The code to write there."""
    place: Place | None
    """The learner's line that the action is about."""
    advice: tuple[Advice, ...]
    """Mistakes beside the outcome; they decide nothing."""
    numbers: Mapping[str, Number]
    """The figures that the texts name, units in their names."""


class Rest(Parts, total=False):
    """What results hold beside their outcome, code, score and first sentence."""

    tier: Tier | None
    """How strong the evidence is; by default what the evidence says of itself."""
    details: Details
    """For staff: plain JSON, small."""


def passed(feedback: Feedback | str, *, code: str = "ok", **rest: Unpack[Rest]) -> Result:
    """A full pass.

    Args:
        feedback: one sentence on what is so; or a whole `Feedback`, to which no parts are added.
        code: last word of the code, or the whole code.
        **rest: parts of the feedback, tier and details.
    """
    return _result(Outcome.PASSED, code, 1.0, feedback, rest)


def failed(code: str, feedback: Feedback | str, *, score: float = 0.0, **rest: Unpack[Rest]) -> Result:
    """A failure that is certain and that the learner can mend; `score` is the share earned all the same.

    The other arguments are those of `passed`.
    """
    return _result(Outcome.FAILED, code, score, feedback, rest)


def unverified(code: str, feedback: Feedback | str, **rest: Unpack[Rest]) -> Result:
    """It could not be looked at, which accuses nobody: no score, which is not the same as 0."""
    return _result(Outcome.UNVERIFIED, code, None, feedback, rest)


def inconclusive(code: str, feedback: Feedback | str, **rest: Unpack[Rest]) -> Result:
    """It was looked at, and nothing can be decided: noise forbids it, or a person has to; no score."""
    return _result(Outcome.INCONCLUSIVE, code, None, feedback, rest)


def undecided(outcome: Outcome, code: str, feedback: Feedback | str, **rest: Unpack[Rest]) -> Result:
    """`inconclusive`, `unverified`, `skipped` or `error`, where the outcome is computed; no score."""
    if outcome in (Outcome.PASSED, Outcome.FAILED):
        raise ValueError(f"undecided() is for outcomes without a score, got {outcome.value}")
    return _result(outcome, code, None, feedback, rest)


def our_fault(outcome: str) -> Feedback:
    """Feedback for an error of ours, after one sentence on what it is."""
    return Feedback(
        outcome=outcome, seen="This is our fault; nothing is counted.", next=NextStep(text="Hand it in again.")
    )


def _result(outcome: Outcome, code: str, score: float | None, feedback: Feedback | str, rest: Rest) -> Result:
    tier, details = rest.pop("tier", None), rest.pop("details", None)
    known = tuple(Parts.__annotations__)
    for name in rest.keys() - known:
        raise TypeError(f"{outcome.value}() got {name!r}, which is no part of feedback{instead(name, known, 'parts')}")
    told = _feedback(feedback, rest)
    return Result(outcome=outcome, code=code, score=score, parts=told, details=details or {}, tier=tier)


def _feedback(feedback: Feedback | str, parts: Parts) -> Feedback:
    if isinstance(feedback, Feedback):
        if parts:
            raise TypeError(f"{', '.join(parts)} beside a Feedback; give all parts in one place")
        return feedback
    if not parts:
        return Feedback.of(feedback[:MAX_FEEDBACK])
    action, line, place = parts.get("next", ""), parts.get("write", ""), parts.get("place")
    if (line or place) and not action:
        raise TypeError('`write` and `place` belong to `next`, an action; expected next="Write this line:" or so')
    return Feedback(
        outcome=_cut(feedback, MAX_SENTENCE),
        seen=_cut(parts.get("seen", ""), MAX_LONG),
        wanted=_cut(parts.get("wanted", ""), MAX_SENTENCE),
        next=NextStep(text=_cut(action, MAX_SENTENCE), code=_cut(line, MAX_LONG), place=place) if action else None,
        advice=parts.get("advice", ()),
        numbers=parts.get("numbers", {}),
    )


def _cut(text: str, most: int) -> str:
    """A learner's own names and texts may make it longer than it is read."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
