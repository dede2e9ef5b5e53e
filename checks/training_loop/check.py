"""The check `training_loop`: batches from DALI drive a PyTorch training loop that learns."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, StringConstraints

from checks.api import API_VERSION, CheckResult, failed, passed
from checks.codes import LEARNER_PROBE, NEEDS_GPU, common
from checks.probing import read_probe
from checks.stopped import absent, missing, not_reached
from checks.training_loop.trend import Trend, trend_of
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Tier

_HOLDS = "the loss of each step (or epoch) of your training loop, as a list of numbers: losses.append(loss.item())"
_SAYS = "The losses are what your code says (tier D)"
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


class _Problem(NamedTuple):
    code: str
    text: str


class TrainingLoopCheck:
    """Judges whether a training loop ran, on labels of the right form, with a model that learned.

    Evidence:
        losses: numbers in the learner's namespace (claims). No single one decides: only whether they are enough,
            finite, and fall, by the medians of the first and the last third and the Mann-Kendall test.
        labels, outputs, images: shape, dtype and device of tensors of such names, where there are some. A later cell
            may have used the names again, so they are only told unless the lab requires them.
        model: whether its parameters were written in place more often than their initialisation takes.
        step: one step of (a copy of) the model on the grader's random batch, which has to give [N, classes], a finite
            loss and gradients.
    Points: all or nothing, at tier D: a list that was typed in passes, as long as a model that works lies beside it.
    Errors: 0 false accepts on 15 failing and 0 false rejects on 15 passing loops in
        `tests/builtin_claims/test_training_loop.py`. Of 2,000 series of pure noise 4.2 % pass as falling; of
        2,000 noisy falling ones 0.6 % do not.
    Cannot detect: losses that were invented, training on other data than the lab's, a loop inside a function that
        leaves nothing but its losses (its labels are not looked at then).
    """

    id: ClassVar[str] = "training_loop"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "DALI in a training loop"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("training_loop",)
    codes: ClassVar[Mapping[str, str]] = common("training", LEARNER_PROBE, NEEDS_GPU) | {
        "training.ok": "losses are there and fall as wanted; the model works",
        "training.no_losses": "no losses were found",
        "training.too_few_steps": "there are fewer losses than wanted",
        "training.not_finite": "losses are not finite",
        "training.not_falling": "the losses do not fall",
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

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "training", "training_loop", Observation)
        if isinstance(seen, Observation) and seen.losses is None:
            return missing(absent(discovery, "losses"), "training", _HOLDS, code="training.no_losses")
        return seen

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        losses = observation.losses
        if losses is None:
            return failed("training.no_losses", f"No losses were found. Expected: {_HOLDS}.", tier=Tier.CLAIMS)
        values = [value for value in losses.values if value is not None]
        trend = trend_of(values) if len(values) >= 3 else None
        details = {
            "losses": {"name": losses.name, "count": losses.count, "trend": trend._asdict() if trend else None},
            "model": observation.model.model_dump(mode="json") if observation.model else None,
            "step": observation.step.model_dump(mode="json") if observation.step else None,
        }
        tensors = _of_tensors(observation)
        problem = _of_losses(losses, values, trend, params) or _of_model(observation, params)
        if problem is None and params.tensors == "required":
            problem = tensors
        if problem is not None:
            return failed(f"training.{problem.code}", f"{problem.text} {_SAYS}.", tier=Tier.CLAIMS, details=details)
        told = f"`{losses.name}` holds {losses.count} losses"
        if trend is not None:
            told += f", from {trend.first:.4g} (median of the first third) to {trend.last:.4g} (last third)"
        aside = f"Look at this, unless the names were used again later: {tensors.text} " if tensors is not None else ""
        text = f"{told}. {_of_step(observation)}{_advice(observation, params)}{aside}{_SAYS}."
        return passed("training.ok", text, tier=Tier.CLAIMS, details=details)


def _of_losses(losses: Losses, values: list[float], trend: Trend | None, params: Params) -> _Problem | None:
    if losses.count < params.min_steps:
        text = f"`{losses.name}` holds {losses.count} losses; at least {params.min_steps} are wanted. Train for longer."
        return _Problem("too_few_steps", text)
    lost = len(losses.values) - len(values)
    if lost or trend is None:
        text = (
            f"`{losses.name}` holds values that are not finite ({lost} of {len(losses.values)}). Check the "
            "normalisation (mean and std in the units of the pixels) and the learning rate."
        )
        return _Problem("not_finite", text)
    if params.falling and not trend.falls(params.margin, params.significance):
        text = (
            f"`{losses.name}` does not fall: the median of its first third is {trend.first:.4g}, of its last third "
            f"{trend.last:.4g}. Check that optimizer.step() and zero_grad() run for each batch, that "
            f"labels belong to "
            "their images, and the learning rate; or train for more steps."
        )
        return _Problem("not_falling", text)
    return None


def _of_tensors(observation: Observation) -> _Problem | None:
    """What is wrong with the tensors that are there; one good one under any name is enough."""
    labels = observation.labels
    if labels and not any(len(label.shape) == 1 for label in labels):
        label = labels[0]
        text = (
            f"`{label.name}` has the shape {list(label.shape)}; a loss over classes wants [N]. DALI gives [N, 1]: take "
            "batch[0]['label'].squeeze(-1)."
        )
        return _Problem("labels_shape", text)
    if labels and not any(label.dtype == "int64" and len(label.shape) == 1 for label in labels):
        label = next(label for label in labels if len(label.shape) == 1)
        text = f"`{label.name}` is {label.dtype}; a loss over classes wants int64. Add .long()."
        return _Problem("labels_dtype", text)
    model = observation.model
    images = [image for image in observation.images if len(image.shape) == 4]
    if model and model.device and images and all(_kind(image.device) != _kind(model.device) for image in images):
        text = f"`{images[0].name}` lies on {images[0].device}, `{model.name}` on {model.device}; move one of them."
        return _Problem("two_devices", text)
    outputs = observation.outputs
    if outputs and all(len(output.shape) > 2 for output in outputs):
        output = outputs[0]
        text = f"`{output.name}` has the shape {list(output.shape)}; a classifier gives [N, classes]."
        return _Problem("outputs_shape", text)
    return None


def _of_model(observation: Observation, params: Params) -> _Problem | None:
    model, step = observation.model, observation.step
    if model is None:
        if params.model == "required":
            return _Problem("no_model", "No torch.nn.Module was found. Leave your model in the namespace.")
        return None
    if model.updates <= _UNTRAINED and not model.optimizer_steps and not (model.uncounted and model.with_gradient):
        text = (
            f"`{model.name}` ({model.type}) was never updated: its parameters are as they were made. Give "
            f"{model.name}.parameters() to the optimizer and call optimizer.step()."
        )
        return _Problem("not_trained", text)
    if params.train_mode == "required" and model.training is False:
        return _Problem("eval_mode", f"`{model.name}` is in eval mode; call {model.name}.train() before training.")
    if step is not None and step.done:
        if len(step.outputs) != 2 or step.outputs[0] != step.batch:
            text = f"On {step.batch} images `{model.name}` gives {list(step.outputs)}; a classifier gives [N, classes]."
            return _Problem("outputs_shape", text)
        if step.loss is None:
            text = f"One step of `{model.name}` on random images gives a loss that is not finite."
            return _Problem("step_not_finite", text)
        if not step.gradients:
            text = f"One step of `{model.name}` on random images gives no finite gradients; nothing can be learned."
            return _Problem("no_gradients", text)
    return None


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _of_step(observation: Observation) -> str:
    model, step = observation.model, observation.step
    if model is None:
        return "No model was left in the namespace, so only they were looked at. "
    if step is None or not step.done:
        return f"`{model.name}` was updated; a step of the grader's own was not possible. "
    return f"`{model.name}` was updated, and one step on the grader's random images worked. "


def _advice(observation: Observation, params: Params) -> str:
    model = observation.model
    if model is None or model.training is not False or params.train_mode == "required":
        return ""
    return f"`{model.name}` is in eval mode now; call {model.name}.train() before you train again. "


CHECK = TrainingLoopCheck()
