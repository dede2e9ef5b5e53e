"""The check `training_loop`: batches from DALI drive a PyTorch training loop that learns."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import LEARNER_PROBE, common
from checks.probing import read_probe
from checks.stopped import Absent, absent, cut_short, not_reached
from checks.training_loop import wording
from checks.training_loop.trend import Trend, trend_of
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome, Tier

_LARGEST = 1e300
"""Losses beyond it count as not finite: sums of them would not be."""
_UNTRAINED = 3
"""In-place writes that initialising a parameter takes at most; see the probe."""

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}(\.[A-Za-z0-9_]{1,60})?$")]
Shape = Annotated[tuple[Count, ...], Field(max_length=16)]


class Params(Wire):
    """What the lab asks for."""

    losses: Annotated[tuple[Name, ...], Field(max_length=16)] = ()
    """Variables to look for, `history.loss` for a key of a dict; the usual names if empty."""
    min_steps: Annotated[int, Field(ge=3, le=100_000)] = 10
    """Fewest losses."""
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """Share by which the median of the last third has to lie below that of the first."""
    significance: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Highest p-value of the Mann-Kendall test."""
    falling: bool = True
    """Whether the losses have to fall."""
    model: Literal["required", "if_there"] = "if_there"
    """Whether a torch.nn.Module has to be in the namespace."""
    tensors: Literal["required", "advised"] = "advised"
    """Whether tensors named labels, outputs and images have to be right; a later cell may have used the names again."""
    train_mode: Literal["required", "advised"] = "advised"
    """Whether the model has to be in train mode at the end; many evaluate it last."""


class Losses(Wire):
    """The learner's losses."""

    name: ShortText
    count: Count
    values: Annotated[tuple[float | None, ...], Field(max_length=8000)]
    """Evenly thinned; null where one is not finite."""


class TensorFacts(Wire):
    """A tensor in the namespace."""

    name: ShortText
    shape: Shape
    dtype: ShortText
    device: ShortText


class ModelFacts(Wire):
    """The learner's model."""

    name: ShortText
    type: ShortText
    training: bool | None
    device: ShortText
    parameters: Count
    updates: Count
    with_gradient: Count
    optimizer_steps: Count
    uncounted: bool = False
    """A fused optimizer may have written the parameters without its being counted."""


class Step(Wire):
    """What one step on the grader's random batch came to."""

    done: bool
    problem: Annotated[str, StringConstraints(max_length=1000)] = ""
    outputs: Shape = ()
    loss: float | None = None
    gradients: bool = False
    batch: Count


Tensors = Annotated[tuple[TensorFacts, ...], Field(max_length=16)]


class Observation(Wire):
    """What the training loop left behind."""

    losses: Losses | None = None
    labels: Tensors = ()
    outputs: Tensors = ()
    images: Tensors = ()
    model: ModelFacts | None = None
    step: Step | None = None
    absent: Absent = Absent(name="losses")
    """How the run ended; filled in by the check."""


class TrainingLoopCheck(Check[Params, Observation]):
    """Judges whether a training loop ran, on labels of the right form, with a model that learned.

    Evidence:
        losses: numbers in the learner's namespace (claims). No single one decides: only whether they are enough,
            finite, and fall, by the medians of the first and the last third and the Mann-Kendall test. Where they do
            not, and the 90 % interval of Sen's slope has room for both no fall and one by a quarter, nothing is decided
            (`training.too_noisy`), unless the model was never updated.
        labels, outputs, images: shape, dtype and device of tensors of such names, where there are some. A later cell
            may have used the names again, so they are only told unless the lab requires them.
        model: whether its parameters were written in place more often than their initialisation takes.
        step: one step of (a copy of) the model on the grader's random batch, which has to give [N, classes], a finite
            loss and gradients.
    Points: all or nothing, at tier D: a list that was typed in passes, as long as a model that works lies beside it.
    Errors: 0 false accepts on 16 failing and 0 false rejects on 15 passing loops in
        `tests/builtin_claims/test_training_loop.py`. Of 2,000 series of pure noise (of 3 to 71 % of the
        losses) 4.2 % pass as falling and 45.0 % are too noisy to tell; of 2,000 noisy falling ones 0.6 % do not pass,
        and 0.6 % are too noisy to tell.
    Cannot detect: losses that were invented, training on other data than the lab's, a loop inside a function that
        leaves nothing but its losses (its labels are not looked at then).
    """

    id = "training_loop"
    version = "1.1.0"
    title = "DALI in a training loop"
    word = "training"
    needs = frozenset({Need.DISCOVERY})
    probes = ("training_loop",)
    codes = common("training", LEARNER_PROBE) | {
        "training.ok": "losses are there and fall as wanted; the model works",
        "training.no_losses": "no losses were found",
        "training.too_few_steps": "there are fewer losses than wanted",
        "training.not_finite": "losses are not finite",
        "training.not_falling": "the losses do not fall",
        "training.too_noisy": "inconclusive: the losses are too noisy to tell whether they fall",
        "training.labels_shape": "labels have another shape than [N]",
        "training.labels_dtype": "labels are not int64",
        "training.two_devices": "images and model lie on different devices",
        "training.outputs_shape": "the model's outputs are not [N, classes]",
        "training.no_model": "no model was found",
        "training.not_trained": "the model's parameters were never updated",
        "training.eval_mode": "the model is in eval mode",
        "training.step_not_finite": "one step gives a loss that is not finite",
        "training.no_gradients": "one step gives no finite gradients",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "training", "training_loop", Observation, ProbeSite.LEARNER)
        if isinstance(seen, Observation):
            return seen.model_copy(update={"absent": absent(discovery, "losses")})
        return seen

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        losses, model, step = observation.losses, observation.model, observation.step
        too_few = losses is None or losses.count < params.min_steps
        if too_few and (result := cut_short(observation.absent.run)) is not None:
            return result
        if losses is None:
            return failed("training.no_losses", wording.no_losses(params.losses), tier=Tier.CLAIMS)
        values = [value for value in losses.values if value is not None and abs(value) <= _LARGEST]
        trend = trend_of(values) if len(values) >= 3 else None
        details = {
            "losses": {"name": losses.name, "count": losses.count, "trend": trend._asdict() if trend else None},
            "model": model.model_dump(mode="json") if model else None,
            "step": step.model_dump(mode="json") if step else None,
        }
        fell = trend is not None and trend.falls(params.margin, params.significance)
        tensors = _of_tensors(observation)
        problem = _of_losses(observation, losses, values, trend, params) or _of_model(observation, params)
        if problem is None and params.tensors == "required":
            problem = tensors
        if problem is not None:
            code, feedback = problem
            return failed(f"training.{code}", feedback, tier=Tier.CLAIMS, details=details)
        if params.falling and not fell and trend is not None:
            feedback = wording.too_noisy(losses.name, trend)
            return undecided(Outcome.INCONCLUSIVE, "training.too_noisy", feedback, tier=Tier.CLAIMS, details=details)
        advice = [wording.tensor_advice(*tensors)] if tensors is not None else []
        if model is not None and model.training is False:
            advice.append(wording.eval_advice(model.name))
        feedback = wording.learned(
            losses.name,
            losses.count,
            trend,
            model.name if model is not None else "",
            advice,
            fell=fell,
            stepped=step is not None and step.done,
        )
        return passed(feedback, tier=Tier.CLAIMS, details=details)


def _of_losses(
    observation: Observation, losses: Losses, values: list[float], trend: Trend | None, params: Params
) -> tuple[str, Feedback] | None:
    count = losses.count if len(losses.values) >= 3 else len(losses.values)
    if count < params.min_steps:
        return "too_few_steps", wording.too_few(losses.name, count, params.min_steps)
    lost = len(losses.values) - len(values)
    if lost or trend is None:
        return "not_finite", wording.not_finite(losses.name, lost, len(losses.values))
    if params.falling and not trend.falls(params.margin, params.significance):
        model = observation.model
        untrained = model.name if model is not None and _is_untrained(model) else ""
        if untrained or not trend.is_hidden(params.margin):
            return "not_falling", wording.not_falling(losses.name, trend, params.margin, untrained)
    return None


def _of_tensors(observation: Observation) -> tuple[str, Feedback] | None:
    """What is wrong with the tensors that are there; one good one under any name is enough."""
    labels = observation.labels
    if labels and not any(len(label.shape) == 1 for label in labels):
        return "labels_shape", wording.labels_shape(labels[0].name, labels[0].shape)
    if labels and not any(label.dtype == "int64" and len(label.shape) == 1 for label in labels):
        label = next(label for label in labels if len(label.shape) == 1)
        return "labels_dtype", wording.labels_dtype(label.name, label.dtype)
    model = observation.model
    images = [image for image in observation.images if len(image.shape) == 4]
    if model and model.device and images and all(_kind(image.device) != _kind(model.device) for image in images):
        return "two_devices", wording.two_devices(images[0].name, images[0].device, model.name, model.device)
    outputs = observation.outputs
    if outputs and all(len(output.shape) > 2 for output in outputs):
        return "outputs_shape", wording.outputs_shape(f"`{outputs[0].name}` has the shape", outputs[0].shape)
    return None


def _of_model(observation: Observation, params: Params) -> tuple[str, Feedback] | None:
    model, step = observation.model, observation.step
    if model is None:
        return ("no_model", wording.NO_MODEL) if params.model == "required" else None
    if _is_untrained(model):
        return "not_trained", wording.not_trained(model.name)
    if params.train_mode == "required" and model.training is False:
        return "eval_mode", wording.eval_mode(model.name)
    if step is not None and step.done:
        if len(step.outputs) != 2 or step.outputs[0] != step.batch:
            return "outputs_shape", wording.outputs_shape(f"On {step.batch} images `{model.name}` gives", step.outputs)
        if step.loss is None:
            return "step_not_finite", wording.step_not_finite(model.name)
        if not step.gradients:
            return "no_gradients", wording.no_gradients(model.name)
    return None


def _is_untrained(model: ModelFacts) -> bool:
    """Whether no parameter was written more often than its initialisation takes."""
    counted = model.updates > _UNTRAINED or model.optimizer_steps
    return not counted and not (model.uncounted and model.with_gradient)


def _kind(device: str) -> str:
    return device.partition(":")[0]


CHECK = TrainingLoopCheck()
