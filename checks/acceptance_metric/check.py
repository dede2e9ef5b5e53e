"""The check `acceptance_metric`: the learner says beforehand how it will be told whether DALI paid off."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from checks.acceptance_metric.wording import cleaned, conditions_in, has_bare_threshold, metrics_in, threshold_in
from checks.api import API_VERSION, CheckResult, failed, passed
from checks.codes import LEARNER_PROBE, NEEDS_GPU, common
from checks.probing import read_probe
from checks.reflections.form.copied import is_copied
from checks.reflections.form.injection import is_for_machines
from checks.reflections.form.question import is_question
from checks.reflections.form.unfilled import is_unfilled
from checks.reflections.text import words
from checks.stopped import absent, missing, not_reached
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need

_LONGEST = 6000
_HOLDS = (
    "a text or dict that names a metric, the value from which on you accept the change, and how it is "
    "measured, such as "
    "'images/s at batch size 256 on the same JPEGs, after a warm-up epoch: at least 1.3 times the DataLoader'"
)
_EXAMPLES = {
    "batch_size": "the batch size",
    "data": "the data (which images, which size)",
    "warm_up": "warm-up or steady state (what is left out, how many batches or epochs are timed)",
    "hardware": "the host (GPU, cores, workers)",
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


class AcceptanceMetricCheck:
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

    id: ClassVar[str] = "acceptance_metric"
    version: ClassVar[str] = "1.1.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "An acceptance metric"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("acceptance_metric",)
    codes: ClassVar[Mapping[str, str]] = common("metric", LEARNER_PROBE, NEEDS_GPU) | {
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

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "metric", "acceptance_metric", Observation)
        if isinstance(seen, Observation) and seen.status == "missing":
            return missing(absent(discovery, "acceptance_metric"), "metric", _HOLDS, code="metric.missing")
        return seen

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        if observation.status != "present":
            text = f"`{params.name}` could not be read (it shows as `{observation.shown}`). Expected: {_HOLDS}."
            return failed("metric.unreadable", text)
        raw = ". ".join(f"{key}: {text}" if key else text for key, text in observation.parts)[:_LONGEST]
        if _is_empty(raw):
            return failed("metric.no_substance", f"`{params.name}` says nothing that could be measured: {_HOLDS}.")
        if is_copied(raw):
            text = f"`{params.name}` repeats the lab's own page. Say what you would accept for your own workload."
            return failed("metric.copied", text)
        return _judge(observation, params)


def _is_empty(raw: str) -> bool:
    """Whether the text is no statement at all."""
    template = is_unfilled(raw) and not any(map(str.isdigit, raw))
    return not words(raw) or template or is_question(raw) or is_for_machines(raw)


def _judge(observation: Observation, params: Params) -> CheckResult:
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
        text = (
            f"`{params.name}` names no metric. {seen}Name what you will measure: images per second, the "
            f"time of an epoch "
            "or step, the GPU's utilisation, or a speed-up of one of these."
        )
        return failed("metric.no_metric", text, score=score, details=details)
    if not threshold:
        bare = has_bare_threshold(parts)
        text = (
            f"`{params.name}` gives a number without its unit. {seen}Say of what it is: images/s, seconds, %, or times."
            if bare
            else f"`{params.name}` does not say from which value on you accept the change. {seen}Give a number with "
            "its unit, such as 'at least 1.3 times' or 'below 90 s per epoch'."
        )
        return failed(f"metric.{'no_unit' if bare else 'no_threshold'}", text, score=score, details=details)
    if not enough:
        left = [_EXAMPLES[condition] for condition in params.conditions if condition not in conditions]
        text = (
            f"`{params.name}` fixes {len(conditions)} of the conditions of the measurement, {wanted} are "
            f"needed. {seen}"
            f"Also say: {'; '.join(left)}. Without them nobody can measure the same again."
        )
        return failed("metric.no_conditions", text, score=min(score, 0.99), details=details)
    return passed("metric.ok", f"`{params.name}` can be measured. {seen}".strip(), details=details)


def _seen(metrics: list[str], threshold: str, conditions: list[Condition]) -> str:
    found = []
    if metrics:
        found.append(f"a metric ({', '.join(metrics)})")
    if threshold:
        found.append(f"a threshold (`{threshold[:60]}`)")
    if conditions:
        found.append(f"conditions ({', '.join(name.replace('_', ' ') for name in conditions)})")
    return f"Found: {', '.join(found)}. " if found else ""


CHECK = AcceptanceMetricCheck()
