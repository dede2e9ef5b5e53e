"""The check `acceptance_metric`: the learner says beforehand how it will be told whether DALI paid off."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from checks.acceptance_metric.wording import cleaned, conditions_in, has_bare_threshold, metrics_in, threshold_in
from checks.api import Check, Result, failed, passed
from checks.codes import LEARNER_PROBE, common
from checks.not_carried import first_words
from checks.probing import read_probe
from checks.reflections.form.copied import is_copied
from checks.reflections.form.injection import is_for_machines
from checks.reflections.form.question import is_question
from checks.reflections.form.unfilled import is_unfilled
from checks.reflections.text import words
from checks.stopped import Absent, absent, missing, not_reached
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep

_LONGEST = 6000
_HOLDS = (
    "a text or dict that says what you measure, the value from which on you accept the change, and how it is measured"
)
_LIKE_THIS = "Write it for your own workload, like this:"
_EXAMPLE = "images/s at batch size …, on the files …, after …: at least … times the DataLoader"
_ASKS = {
    "batch_size": "the batch size",
    "data": "which images",
    "warm_up": "what is left out as warm-up",
    "hardware": "which GPU and cores",
}

Condition = Literal["batch_size", "data", "warm_up", "hardware"]


class Params(Wire):
    """What the lab asks for."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")] = "acceptance_metric"
    """Variable that holds it."""
    conditions: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=4)] = ("batch_size", "data", "warm_up")
    """Measuring conditions that count."""
    min_conditions: Annotated[int, Field(ge=0, le=4)] = 2
    """How many of them have to be fixed."""


class Observation(Wire):
    """The metric as the learner's namespace held it."""

    status: Literal["present", "missing", "unreadable"]
    shown: ShortText = ""
    parts: Annotated[
        tuple[tuple[ShortText, Annotated[str, StringConstraints(max_length=4000)]], ...], Field(max_length=64)
    ] = ()
    """(key, text); the key is empty where there is none."""
    absent: Absent = Absent(name="acceptance_metric")
    """How the run ended; filled in by the check."""


class AcceptanceMetricCheck(Check[Params, Observation]):
    """Judges whether an acceptance metric is one that could be measured and could fail.

    Question: does it name a metric, a threshold with a unit (or a factor), and enough of the conditions under which it
    is measured?
    Evidence: the learner's own text, its answer as a reflection is; nothing in it is executed or obeyed.
    Points: a third each for metric, threshold and conditions; a pass needs all three.
    Errors: 0 false accepts on 24 failing and 1 false reject on 28 passing texts in
        `tests/builtin_claims/test_acceptance_metric.py`.
    Cannot detect: whether the threshold is sensible, or was chosen after measuring; texts in other languages than
        English, German, French, Spanish, Portuguese and Italian, of which few words are known; copies from elsewhere
        than the lab's pages.
    """

    id = "acceptance_metric"
    version = "1.2.0"
    title = "An acceptance metric"
    word = "metric"
    needs = frozenset({Need.DISCOVERY})
    probes = ("acceptance_metric",)
    codes = common("metric", LEARNER_PROBE) | {
        "metric.ok": "metric, threshold and enough conditions are named",
        "metric.missing": "the variable is not defined",
        "metric.unreadable": "failed or unverified: what the variable holds could not be read",
        "metric.no_substance": "it says nothing that could be measured",
        "metric.copied": "it repeats the lab's own page",
        "metric.no_metric": "it names no metric",
        "metric.no_unit": "its number has no unit",
        "metric.no_threshold": "it does not say from which value on the change is accepted",
        "metric.no_conditions": "it fixes too few conditions of the measurement",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "metric", "acceptance_metric", Observation, ProbeSite.LEARNER)
        if isinstance(seen, Observation):
            return seen.model_copy(update={"absent": absent(discovery, "acceptance_metric")})
        return seen

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        if observation.status == "missing":
            found = observation.absent.model_copy(update={"name": params.name})
            return missing(found, _HOLDS, code="missing")
        if observation.status != "present":
            shown = first_words(observation.shown, 5)
            return failed("metric.unreadable", _unlike(params, f"`{params.name}` holds no text and no dict", shown))
        raw = ". ".join(f"{key}: {text}" if key else text for key, text in observation.parts)[:_LONGEST]
        if _is_empty(raw):
            return failed(
                "metric.no_substance", _unlike(params, f"`{params.name}` says nothing that could be measured")
            )
        if is_copied(raw):
            feedback = Feedback(
                outcome=f"`{params.name}` repeats the lab's own page.",
                next=NextStep(text="Say in your own words what you would accept for your own workload."),
            )
            return failed("metric.copied", feedback)
        return _judge(observation, params)


def _unlike(params: Params, what: str, shown: str = "") -> Feedback:
    """Feedback for something that is no metric at all."""
    return Feedback(
        outcome=f"{what}.",
        seen=f"It shows as `{shown}`." if shown else "",
        wanted="It should say what you measure, how, and from which value on you accept the change.",
        next=NextStep(text=_LIKE_THIS, code=f'{params.name} = "{_EXAMPLE}"'),
    )


def _is_empty(raw: str) -> bool:
    """Whether the text is no statement at all."""
    template = is_unfilled(raw) and not any(map(str.isdigit, raw))
    return not words(raw) or template or is_question(raw) or is_for_machines(raw)


def _judge(observation: Observation, params: Params) -> Result:
    parts = [
        (cleaned(key.replace("_", " ")), cleaned(text[:_LONGEST].replace("_", " "))) for key, text in observation.parts
    ]
    whole = " . ".join(f"{key} {text}" for key, text in parts)[: 2 * _LONGEST]
    metrics, threshold = metrics_in(whole), threshold_in(parts)
    conditions = [condition for condition in conditions_in(whole) if condition in params.conditions]
    wanted = min(params.min_conditions, len(set(params.conditions)))
    enough = len(conditions) >= wanted
    details = {"metrics": metrics, "threshold": threshold, "conditions": conditions}
    score = (bool(metrics) + bool(threshold) + (min(1.0, len(conditions) / wanted) if wanted else 1.0)) / 3
    seen = _seen(metrics, threshold, conditions)
    if not metrics:
        feedback = Feedback(
            outcome=f"`{params.name}` names no metric.",
            seen=seen,
            next=NextStep(
                text="Name what you will measure: images per second, the time of an epoch or step, the GPU's "
                "utilisation, or a speed-up."
            ),
        )
        return failed("metric.no_metric", feedback, score=score, details=details)
    if not threshold and has_bare_threshold(parts):
        feedback = Feedback(
            outcome=f"`{params.name}` gives a number without its unit.",
            seen=seen,
            next=NextStep(text="Say of what it is: images/s, seconds, %, or times."),
        )
        return failed("metric.no_unit", feedback, score=score, details=details)
    if not threshold:
        feedback = Feedback(
            outcome=f"`{params.name}` does not say from which value on you accept the change.",
            seen=seen,
            next=NextStep(text="Add a number with its unit, such as 'at least 1.3 times' or 'below 90 s per epoch'."),
        )
        return failed("metric.no_threshold", feedback, score=score, details=details)
    numbers = {"conditions": len(conditions), "needed": wanted}
    if not enough:
        left = [_ASKS[condition] for condition in dict.fromkeys(params.conditions) if condition not in conditions]
        feedback = Feedback(
            outcome=f"`{params.name}` fixes {len(conditions)} condition{'' if len(conditions) == 1 else 's'} of "
            f"measuring, and the lab asks for {wanted}.",
            seen=seen,
            next=NextStep(text=f"Also say at least {wanted - len(conditions)} of these: {'; '.join(left)}."),
            numbers=numbers,
        )
        return failed("metric.no_conditions", feedback, score=min(score, 0.99), details=details)
    feedback = Feedback(outcome=f"`{params.name}` can be measured, and can fail.", seen=seen, numbers=numbers)
    return passed(feedback, details=details)


def _seen(metrics: list[str], threshold: str, conditions: list[Condition]) -> str:
    found = []
    if metrics:
        found.append(f"a metric ({', '.join(metrics)})")
    if threshold:
        found.append(f"a threshold (`{first_words(threshold[:60], 6)}`)")
    if conditions:
        found.append(f"conditions ({', '.join(name.replace('_', ' ') for name in conditions)})")
    return f"Found: {', '.join(found)}." if found else ""


CHECK = AcceptanceMetricCheck()
