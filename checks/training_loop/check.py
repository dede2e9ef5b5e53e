"""The check `training_loop`: batches from DALI drive a PyTorch training loop that learns."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from checks.api import Advice, Discovery, FromProbe, Result, check, failed, inconclusive, passed
from checks.stopped import cut_short, run_end
from checks.training_loop.trend import Trend, trend_of
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import ProbeSite

_LARGEST = 1e300
"""Losses beyond it count as not finite: sums of them would not be."""
_UNTRAINED = 3
"""In-place writes that initialising a parameter takes at most; see the probe."""
_STEP = "optimizer.zero_grad()\nloss.backward()\noptimizer.step()"

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}(\.[A-Za-z0-9_]{1,60})?$")]
Shape = Annotated[tuple[Count, ...], Field(max_length=16)]


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

    @property
    def untrained(self) -> bool:
        """Whether no parameter was written more often than its initialisation takes."""
        counted = self.updates > _UNTRAINED or self.optimizer_steps
        return not counted and not (self.uncounted and self.with_gradient)


class Step(Wire):
    """What one step on the grader's random batch came to."""

    done: bool
    problem: Annotated[str, StringConstraints(max_length=1000)] = ""
    outputs: Shape = ()
    loss: float | None = None
    gradients: bool = False
    batch: Count


Tensors = Annotated[tuple[TensorFacts, ...], Field(max_length=16)]


class Left(Wire):
    """What the training loop left behind."""

    losses: Losses | None = None
    labels: Tensors = ()
    outputs: Tensors = ()
    images: Tensors = ()
    model: ModelFacts | None = None
    step: Step | None = None


@check(
    version="1.1.0",
    title="DALI in a training loop",
    word="training",
    codes={
        "ok": "losses are there and fall as wanted; the model works",
        "too_few_steps": "there are fewer losses than wanted",
        "not_falling": "the losses do not fall",
        "labels_shape": "labels have another shape than [N]",
        "labels_dtype": "labels are not int64",
        "outputs_shape": "the model's outputs are not [N, classes]",
    },
)
def training_loop(
    discovery: Discovery,
    left: Annotated[Left, FromProbe("training_loop", ProbeSite.LEARNER)],
    *,
    losses: Annotated[tuple[Name, ...], Field(max_length=16)] = (),
    min_steps: Annotated[int, Field(ge=3, le=100_000)] = 10,
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.02,
    significance: Annotated[float, Field(gt=0, lt=0.5)] = 0.05,
    falling: bool = True,
    model: Literal["required", "if_there"] = "if_there",
    tensors: Literal["required", "advised"] = "advised",
    train_mode: Literal["required", "advised"] = "advised",
) -> Result:
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
        `tests/checks/claims/test_training_loop.py`. Of 2,000 series of pure noise (of 3 to 71 % of the
        losses) 4.2 % pass as falling and 45.0 % are too noisy to tell; of 2,000 noisy falling ones 0.6 % do not pass,
        and 0.6 % are too noisy to tell.
    Cannot detect: losses that were invented, training on other data than the lab's, a loop inside a function that
        leaves nothing but its losses (its labels are not looked at then).

    Args:
        losses: Variables to look for, `history.loss` for a key of a dict; the usual names if empty.
        min_steps: Fewest losses.
        margin: Share by which the median of the last third has to lie below that of the first.
        significance: Highest p-value of the Mann-Kendall test.
        falling: Whether the losses have to fall.
        model: Whether a torch.nn.Module has to be in the namespace.
        tensors: Whether tensors named labels, outputs and images have to be right; a later cell may have used the names
            again.
        train_mode: Whether the model has to be in train mode at the end; many evaluate it last.
    """
    kept = left.losses
    if (kept is None or kept.count < min_steps) and (not_reached := cut_short(run_end(discovery))) is not None:
        return not_reached
    if kept is None:
        return _no_losses(losses[0] if losses else "")
    values = [value for value in kept.values if value is not None and abs(value) <= _LARGEST]
    trend = trend_of(values) if len(values) >= 3 else None
    fell = trend is not None and trend.falls(margin, significance)
    count = kept.count if len(kept.values) >= 3 else len(kept.values)
    if count < min_steps:
        result = failed(
            "too_few_steps",
            f"`{kept.name}` holds {count} losses.",
            wanted=f"At least {min_steps} are wanted.",
            next="Train for more steps.",
            numbers={"losses": count, "needed": min_steps},
        )
    elif trend is None or len(values) < len(kept.values):
        lost, of = len(kept.values) - len(values), len(kept.values)
        result = failed(
            "not_finite",
            f"`{kept.name}` holds losses that are not finite.",
            seen=f"{lost} of {of} are NaN, infinite, or as good as that.",
            next="Check that mean and std of the normalisation are in the units of the pixels (0 to 255), then lower "
            "the learning rate.",
            numbers={"not_finite": lost, "losses": of},
        )
    else:
        doubted, of_tensors = falling and not fell, _of_tensors(left)
        result = (
            (_not_falling(kept.name, trend, margin, left.model) if doubted else None)
            or _of_model(left, required=model == "required", train_mode=train_mode == "required")
            or (of_tensors if tensors == "required" else None)
            or (_too_noisy(kept.name, trend) if doubted else None)
            or _learned(left, kept, trend, of_tensors, fell=fell)
        )
    details = {
        "losses": {"name": kept.name, "count": kept.count, "trend": trend._asdict() if trend else None},
        "model": left.model.model_dump(mode="json") if left.model else None,
        "step": left.step.model_dump(mode="json") if left.step else None,
    }
    return result.model_copy(update={"details": details})


def _no_losses(name: str) -> Result:
    """`name` is what the lab asks for first, if it asks for some."""
    return failed(
        "no_losses",
        f"No list of losses was found{f' under the name `{name}`' if name else ''}.",
        wanted="One number for each step or epoch is wanted.",
        next="Keep the loss in each step:",
        write=f"{_list(name or 'losses')}.append(loss.item())",
    )


def _not_falling(name: str, trend: Trend, margin: float, model: ModelFacts | None) -> Result | None:
    """For losses that do not fall as wanted; None where noise may hide that they do."""
    seen, wanted = _medians(trend), f"A clear fall by more than {100 * margin:g} % is wanted."
    numbers = {"first": trend.first, "last": trend.last}
    if model is not None and model.untrained:
        what, action = f"does not fall as wanted, and `{model.name}` was never updated", "Step for each batch:"
        said = f"`{name}` {what}."
        return failed("not_falling", said, seen=seen, wanted=wanted, next=action, write=_STEP, numbers=numbers)
    if trend.is_hidden(margin):
        return None
    share = (trend.first - trend.last) / abs(trend.first) if trend.first else float(trend.first > trend.last)
    what = "goes up and down, and does not clearly fall" if share > margin else f"falls by {100 * share:.2f} % only"
    return failed(
        "not_falling",
        f"`{name}` {what if share > 0 else 'does not fall'}.",
        seen=seen,
        wanted=wanted,
        next="Check that optimizer.step() runs for each batch, that labels belong to their images, and the learning "
        "rate; or train longer.",
        numbers=numbers,
    )


def _too_noisy(name: str, trend: Trend) -> Result:
    return inconclusive(
        "too_noisy",
        f"`{name}` is too noisy to tell whether it falls, so nothing is counted.",
        seen=f"Over the whole run it changes by something between {trend.low:+.3g} and {trend.high:+.3g} (90 % "
        f"confidence), from {trend.first:.4g} at its beginning.",
        next="Train for more steps, use larger batches, or keep the mean of each epoch:",
        write=f"{_list(name)}.append(sum(epoch) / len(epoch))",
        numbers={"first": trend.first, "low": trend.low, "high": trend.high},
    )


def _of_model(left: Left, *, required: bool, train_mode: bool) -> Result | None:
    """What is wrong with the model, and with the step that the grader made with it."""
    model, step = left.model, left.step
    if model is None and required:
        action = "Keep the model that you trained in a variable, such as `model`."
        return failed("no_model", "No torch.nn.Module was found.", next=action)
    if model is None:
        return None
    if model.untrained:
        return failed(
            "not_trained",
            f"`{model.name}` was never updated: its parameters are as they were made.",
            next="Give its parameters to the optimizer, and step for each batch:",
            write=f"optimizer = torch.optim.SGD({model.name}.parameters(), lr=0.01)\n{_STEP}",
        )
    if train_mode and model.training is False:
        wanted = "The lab wants it in train mode at the end."
        said, line = f"`{model.name}` is in eval mode.", f"{model.name}.train()"
        return failed("eval_mode", said, wanted=wanted, next="Switch it:", write=line)
    if step is None or not step.done:
        return None
    if len(step.outputs) != 2 or step.outputs[0] != step.batch:
        return _no_classes(f"On {step.batch} images `{model.name}` gives", step.outputs)
    if step.loss is None:
        return failed(
            "step_not_finite",
            f"One step of `{model.name}` on random images gives a loss that is not finite.",
            next="Look in its layers for a division by 0, a logarithm of 0, or weights that grew very large.",
        )
    if not step.gradients:
        return failed(
            "no_gradients",
            f"One step of `{model.name}` on random images gives no finite gradients, so it cannot learn.",
            next="Look for .detach(), torch.no_grad() or .item() between its parameters and its outputs.",
        )
    return None


def _of_tensors(left: Left) -> Result | None:
    """What is wrong with the tensors that are there; one good one under any name is enough."""
    vectors = [label for label in left.labels if len(label.shape) == 1]
    if left.labels and not vectors:
        name, shape = left.labels[0].name, left.labels[0].shape
        return failed(
            "labels_shape",
            f"`{name}` has the shape {list(shape[:6])}.",
            wanted="A loss over classes wants [N]; DALI gives [N, 1].",
            next="Take the last dimension off:",
            write=f'{name} = batch[0]["label"].squeeze(-1).long()',
        )
    if vectors and all(label.dtype != "int64" for label in vectors):
        name, dtype = vectors[0].name, vectors[0].dtype
        wanted, line = "A loss over classes wants int64.", f"{name} = {name}.long()"
        return failed("labels_dtype", f"`{name}` is {dtype}.", wanted=wanted, next="Convert it:", write=line)
    model, images = left.model, [image for image in left.images if len(image.shape) == 4]
    here = model.device.partition(":")[0] if model is not None else ""
    if model is not None and here and images and all(image.device.partition(":")[0] != here for image in images):
        return failed(
            "two_devices",
            f"`{images[0].name}` lies on {images[0].device}, and `{model.name}` on {model.device}.",
            next="Move the model to the images:",
            write=f"{model.name} = {model.name}.to({images[0].name}.device)",
        )
    if left.outputs and all(len(output.shape) > 2 for output in left.outputs):
        return _no_classes(f"`{left.outputs[0].name}` has the shape", left.outputs[0].shape)
    return None


def _no_classes(what: str, shape: Sequence[int]) -> Result:
    """For outputs that are no classes; `what` gives them, such as `` `outputs` has the shape``."""
    return failed(
        "outputs_shape",
        f"{what} {list(shape[:6])}.",
        wanted="A classifier gives [N, classes].",
        next="End the model with one value for each class:",
        write="nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)",
    )


def _learned(left: Left, losses: Losses, trend: Trend, of_tensors: Result | None, *, fell: bool) -> Result:
    """A pass, with what is wrong with the tensors as advice: their names may have been used again later."""
    model, advice = left.model, []
    if of_tensors is not None and (action := of_tensors.parts.next) is not None:
        text = f"{of_tensors.parts.outcome} {of_tensors.parts.wanted}".strip()
        to_do = f"{action.text} {action.code}, unless you used the name for something else later."
        advice.append(Advice(code=f"advice.{of_tensors.code}", text=text, next=to_do))
    if model is not None and model.training is False:
        text, to_do = f"`{model.name}` is in eval mode now.", f"Call {model.name}.train() before you train again."
        advice.append(Advice(code="advice.eval_mode", text=text, next=to_do))
    looked = "No model was found, so only the losses were looked at."
    if model is not None:
        looked = f"`{model.name}` was updated; a step of the grader's own was not possible."
        if left.step is not None and left.step.done:
            looked = f"`{model.name}` was updated, and one step on the grader's random images worked."
    return passed(
        f"`{losses.name}` holds {losses.count} losses{', and they fall' if fell else ''}.",
        seen=f"{_medians(trend)} {looked} This is what your own code says.",
        advice=tuple(advice),
        numbers={"losses": losses.count, "first": trend.first, "last": trend.last},
    )


def _list(name: str) -> str:
    """How the learner writes a list of losses: `history.loss` is a key of a dict."""
    name, _, key = name.partition(".")
    return f'{name}["{key}"]' if key else name


def _medians(trend: Trend) -> str:
    return f"The median of the first third is {trend.first:.4g}, of the last third {trend.last:.4g}."
