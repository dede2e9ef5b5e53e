"""Words for what a training loop left behind."""

from collections.abc import Sequence

from checks.training_loop.trend import Trend
from grader_service.model.feedback import Advice, Feedback, NextStep

_STEP = "optimizer.zero_grad()\nloss.backward()\noptimizer.step()"


def no_losses(names: Sequence[str]) -> Feedback:
    """Feedback where no list of losses is there; `names` are those that the lab asks for, if it asks for some."""
    return Feedback(
        outcome=f"No list of losses was found under the name `{names[0]}`."
        if names
        else "No list of losses was found.",
        wanted="One number for each step or epoch is wanted.",
        next=NextStep(
            text="Keep the loss in each step:", code=f"{_list(names[0] if names else 'losses')}.append(loss.item())"
        ),
    )


def too_few(name: str, count: int, needed: int) -> Feedback:
    """Feedback for a loop that was too short."""
    return Feedback(
        outcome=f"`{name}` holds {count} losses.",
        wanted=f"At least {needed} are wanted.",
        next=NextStep(text="Train for more steps."),
        numbers={"losses": count, "needed": needed},
    )


def not_finite(name: str, lost: int, count: int) -> Feedback:
    """Feedback for losses that left the numbers."""
    return Feedback(
        outcome=f"`{name}` holds losses that are not finite.",
        seen=f"{lost} of {count} are NaN, infinite, or as good as that.",
        next=NextStep(
            text="Check that mean and std of the normalisation are in the units of the pixels (0 to 255), then lower "
            "the learning rate."
        ),
        numbers={"not_finite": lost, "losses": count},
    )


def not_falling(name: str, trend: Trend, margin: float, untrained: str) -> Feedback:
    """Feedback for losses that do not fall as wanted; `untrained` is a model that was never updated, if one is."""
    share = _share(trend)
    if untrained:
        what = f"`{name}` does not fall as wanted, and `{untrained}` was never updated"
    elif share <= 0:
        what = f"`{name}` does not fall"
    elif share <= margin:
        what = f"`{name}` falls by {100 * share:.2f} % only"
    else:
        what = f"`{name}` goes up and down, and does not clearly fall"
    action = NextStep(text="Step for each batch:", code=_STEP)
    if not untrained:
        action = NextStep(
            text="Check that optimizer.step() runs for each batch, that labels belong to their images, and the "
            "learning rate; or train longer."
        )
    return Feedback(
        outcome=f"{what}.",
        seen=_medians(trend),
        wanted=f"A clear fall by more than {100 * margin:g} % is wanted.",
        next=action,
        numbers={"first": trend.first, "last": trend.last},
    )


def too_noisy(name: str, trend: Trend) -> Feedback:
    """Feedback for losses of which nobody can tell whether they fall."""
    return Feedback(
        outcome=f"`{name}` is too noisy to tell whether it falls, so nothing is counted.",
        seen=f"Over the whole run it changes by something between {trend.low:+.3g} and {trend.high:+.3g} (90 % "
        f"confidence), from {trend.first:.4g} at its beginning.",
        next=NextStep(
            text="Train for more steps, use larger batches, or keep the mean of each epoch:",
            code=f"{_list(name)}.append(sum(epoch) / len(epoch))",
        ),
        numbers={"first": trend.first, "low": trend.low, "high": trend.high},
    )


def labels_shape(name: str, shape: Sequence[int]) -> Feedback:
    """Feedback for labels that are no vector."""
    return Feedback(
        outcome=f"`{name}` has the shape {list(shape[:6])}.",
        wanted="A loss over classes wants [N]; DALI gives [N, 1].",
        next=NextStep(text="Take the last dimension off:", code=f'{name} = batch[0]["label"].squeeze(-1).long()'),
    )


def labels_dtype(name: str, dtype: str) -> Feedback:
    """Feedback for labels of another type than int64."""
    return Feedback(
        outcome=f"`{name}` is {dtype}.",
        wanted="A loss over classes wants int64.",
        next=NextStep(text="Convert it:", code=f"{name} = {name}.long()"),
    )


def two_devices(images: str, there: str, model: str, here: str) -> Feedback:
    """Feedback for images beside a model on another device."""
    return Feedback(
        outcome=f"`{images}` lies on {there}, and `{model}` on {here}.",
        next=NextStep(text="Move the model to the images:", code=f"{model} = {model}.to({images}.device)"),
    )


def outputs_shape(what: str, shape: Sequence[int]) -> Feedback:
    """Feedback for outputs that are no classes; `what` gives them, such as `` `outputs` has the shape``."""
    return Feedback(
        outcome=f"{what} {list(shape[:6])}.",
        wanted="A classifier gives [N, classes].",
        next=NextStep(
            text="End the model with one value for each class:",
            code="nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)",
        ),
    )


NO_MODEL = Feedback(
    outcome="No torch.nn.Module was found.",
    next=NextStep(text="Keep the model that you trained in a variable, such as `model`."),
)


def not_trained(name: str) -> Feedback:
    """Feedback for parameters that are as they were made."""
    return Feedback(
        outcome=f"`{name}` was never updated: its parameters are as they were made.",
        next=NextStep(
            text="Give its parameters to the optimizer, and step for each batch:",
            code=f"optimizer = torch.optim.SGD({name}.parameters(), lr=0.01)\n{_STEP}",
        ),
    )


def eval_mode(name: str) -> Feedback:
    """Feedback for a model in eval mode where the lab wants train mode."""
    return Feedback(
        outcome=f"`{name}` is in eval mode.",
        wanted="The lab wants it in train mode at the end.",
        next=NextStep(text="Switch it:", code=f"{name}.train()"),
    )


def eval_advice(name: str) -> Advice:
    """The same as advice."""
    return Advice(
        code="advice.eval_mode",
        text=f"`{name}` is in eval mode now.",
        next=f"Call {name}.train() before you train again.",
    )


def step_not_finite(name: str) -> Feedback:
    """Feedback for a step with a loss that is not finite."""
    return Feedback(
        outcome=f"One step of `{name}` on random images gives a loss that is not finite.",
        next=NextStep(
            text="Look in its layers for a division by 0, a logarithm of 0, or weights that grew very large."
        ),
    )


def no_gradients(name: str) -> Feedback:
    """Feedback for a step after which nothing can be learned."""
    return Feedback(
        outcome=f"One step of `{name}` on random images gives no finite gradients, so it cannot learn.",
        next=NextStep(text="Look for .detach(), torch.no_grad() or .item() between its parameters and its outputs."),
    )


def tensor_advice(reason: str, found: Feedback) -> Advice:
    """A problem of a tensor as advice: its name may have been used again later."""
    action = found.next
    return Advice(
        code=f"advice.{reason}",
        text=f"{found.outcome} {found.wanted}".strip(),
        next=f"{action.text} {action.code}, unless you used the name for something else later." if action else "",
    )


def learned(
    name: str, count: int, trend: Trend | None, model: str, advice: Sequence[Advice], *, fell: bool, stepped: bool
) -> Feedback:
    """Feedback for a pass; `model` is empty where there is none, `stepped` says that the grader's own step worked."""
    if not model:
        looked = "No model was found, so only the losses were looked at."
    elif stepped:
        looked = f"`{model}` was updated, and one step on the grader's random images worked."
    else:
        looked = f"`{model}` was updated; a step of the grader's own was not possible."
    medians = f"{_medians(trend)} " if trend is not None else ""
    return Feedback(
        outcome=f"`{name}` holds {count} losses{', and they fall' if fell else ''}.",
        seen=f"{medians}{looked} This is what your own code says.",
        advice=tuple(advice),
        numbers={"losses": count} | ({"first": trend.first, "last": trend.last} if trend is not None else {}),
    )


def _list(name: str) -> str:
    """How the learner writes a list of losses: `history.loss` is a key of a dict."""
    name, _, key = name.partition(".")
    return f'{name}["{key}"]' if key else name


def _share(trend: Trend) -> float:
    """By which share of the first losses the last ones are lower."""
    return (trend.first - trend.last) / abs(trend.first) if trend.first else float(trend.first > trend.last)


def _medians(trend: Trend) -> str:
    return f"The median of the first third is {trend.first:.4g}, of the last third {trend.last:.4g}."
