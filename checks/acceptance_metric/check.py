"""The check `acceptance_metric`: the learner says beforehand how it will be told whether DALI paid off."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from checks.acceptance_metric.wording import Condition, cleaned, conditions_in, lacks_unit, metrics_in, threshold_in
from checks.api import Discovery, FromProbe, Result, absent, check, failed, missing, passed
from checks.not_carried import first_words
from checks.prose.copied import is_copied
from checks.prose.form import is_for_machines, is_question, is_unfilled
from checks.prose.text import words
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import ProbeSite

_LONGEST = 6000
_HOLDS = (
    "a text or dict that says what you measure, the value from which on you accept the change, and how it is measured"
)
_WANTED = "It should say what you measure, how, and from which value on you accept the change."
_LIKE_THIS = "Write it for your own workload, like this:"
_EXAMPLE = "images/s at batch size …, on the files …, after …: at least … times the DataLoader"
_ASKS = {
    "batch_size": "the batch size",
    "data": "which images",
    "warm_up": "what is left out as warm-up",
    "hardware": "which GPU and cores",
}


class Told(Wire):
    """The metric as the learner's namespace held it."""

    status: Literal["present", "missing", "unreadable"]
    shown: ShortText = ""
    parts: Annotated[
        tuple[tuple[ShortText, Annotated[str, StringConstraints(max_length=4000)]], ...], Field(max_length=64)
    ] = ()
    """(key, text); the key is empty where there is none."""


@check(
    version="1.2.0",
    title="An acceptance metric",
    word="metric",
    tier=None,  # a text is judged, which is what it is
    codes={"unreadable": "failed or unverified: what the variable holds could not be read"},
)
def acceptance_metric(
    discovery: Discovery,
    told: Annotated[Told, FromProbe("acceptance_metric", ProbeSite.LEARNER)],
    *,
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")] = "acceptance_metric",
    conditions: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=4)] = ("batch_size", "data", "warm_up"),
    min_conditions: Annotated[int, Field(ge=0, le=4)] = 2,
) -> Result:
    """Judges whether an acceptance metric is one that could be measured and could fail.

    Question: does it name a metric, a threshold with a unit (or a factor), and enough of the conditions under which it
    is measured?
    Evidence: the learner's own text, its answer as a reflection is; nothing in it is executed or obeyed.
    Points: a third each for metric, threshold and conditions; a pass needs all three.
    Errors: 0 false accepts on 24 failing and 1 false reject on 28 passing texts in
        `tests/checks/claims/test_acceptance_metric.py`.
    Cannot detect: whether the threshold is sensible, or was chosen after measuring; texts in other languages than
        English, German, French, Spanish, Portuguese and Italian, of which few words are known; copies from elsewhere
        than the lab's pages.

    Args:
        name: Variable that holds it.
        conditions: Measuring conditions that count.
        min_conditions: How many of them have to be fixed.
    """
    if told.status == "missing":
        return missing(absent(discovery, name), _HOLDS, code="missing")
    example = f'{name} = "{_EXAMPLE}"'
    if told.status == "unreadable":
        shown = first_words(told.shown, 5)
        return failed(
            "unreadable",
            f"`{name}` holds no text and no dict.",
            seen=f"It shows as `{shown}`." if shown else "",
            wanted=_WANTED,
            next=_LIKE_THIS,
            write=example,
        )
    raw = ". ".join(f"{key}: {text}" if key else text for key, text in told.parts)[:_LONGEST]
    if _is_empty(raw):
        nothing = f"`{name}` says nothing that could be measured."
        return failed("no_substance", nothing, wanted=_WANTED, next=_LIKE_THIS, write=example)
    if is_copied(raw):
        own = "Say in your own words what you would accept for your own workload."
        return failed("copied", f"`{name}` repeats the lab's own page.", next=own)
    parts = [(cleaned(key.replace("_", " ")), cleaned(text.replace("_", " "))) for key, text in told.parts]
    whole = " . ".join(f"{key} {text}" for key, text in parts)[: 2 * _LONGEST]
    metrics, threshold = metrics_in(whole), threshold_in(parts)
    fixed = [condition for condition in conditions_in(whole) if condition in conditions]
    needed = min(min_conditions, len(set(conditions)))
    share = min(1.0, len(fixed) / needed) if needed else 1.0
    score = (bool(metrics) + bool(threshold) + share) / 3
    seen = _found(metrics, threshold, fixed)
    details = {"metrics": metrics, "threshold": threshold, "conditions": fixed}
    if not metrics:
        return failed(
            "no_metric",
            f"`{name}` names no metric.",
            seen=seen,
            next="Name what you will measure: images per second, the time of an epoch or step, the GPU's "
            "utilisation, or a speed-up.",
            score=score,
            details=details,
        )
    if not threshold and lacks_unit(parts):
        bare, unit = f"`{name}` gives a number without its unit.", "Say of what it is: images/s, seconds, %, or times."
        return failed("no_unit", bare, seen=seen, next=unit, score=score, details=details)
    if not threshold:
        open_ended = f"`{name}` does not say from which value on you accept the change."
        number = "Add a number with its unit, such as 'at least 1.3 times' or 'below 90 s per epoch'."
        return failed("no_threshold", open_ended, seen=seen, next=number, score=score, details=details)
    numbers = {"conditions": len(fixed), "needed": needed}
    if len(fixed) < needed:
        left = "; ".join(_ASKS[condition] for condition in dict.fromkeys(conditions) if condition not in fixed)
        return failed(
            "no_conditions",
            f"`{name}` fixes {len(fixed)} condition{'' if len(fixed) == 1 else 's'} of measuring, and the lab asks for "
            f"{needed}.",
            seen=seen,
            next=f"Also say at least {needed - len(fixed)} of these: {left}.",
            numbers=numbers,
            score=min(score, 0.99),
            details=details,
        )
    return passed(f"`{name}` can be measured, and can fail.", seen=seen, numbers=numbers, details=details)


def _is_empty(raw: str) -> bool:
    """Whether the text is no statement at all."""
    template = is_unfilled(raw) and not any(map(str.isdigit, raw))
    return not words(raw) or template or is_question(raw) or is_for_machines(raw)


def _found(metrics: list[str], threshold: str, conditions: list[Condition]) -> str:
    found = {
        "a metric": ", ".join(metrics),
        "a threshold": threshold and f"`{first_words(threshold[:60], 6)}`",
        "conditions": ", ".join(conditions).replace("_", " "),
    }
    told = ", ".join(f"{what} ({which})" for what, which in found.items() if which)
    return f"Found: {told}." if told else ""
