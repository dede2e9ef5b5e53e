"""Reads what a training loop left behind, and does one step with the learner's model on a batch of its own.

Observations:
    losses: name, values (at most 4,000, evenly thinned; null where not finite), number of all values.
    labels, outputs, images: name, shape, dtype and device of tensors in the namespace that have such a name.
    model: name, class, whether it is in train mode, device, number of parameters; `updates`, how often the parameter
        that changed most was written in place (about 2 before training); `optimizer_steps`, from an optimizer's state;
        `uncounted`, whether a fused optimizer may have written without its being counted.
    step: a forward and backward pass of a copy of the model on random images: shape of the outputs, loss, whether
        gradients came; or why not.

The learner's model, and nothing else of the learner's, is called, on a copy where it can be copied.
"""

import copy
import math
import sys
import types
from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 60.0

_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
_MOST = 4000
_LOSSES = (
    *("losses", "train_losses", "training_losses", "loss_history", "step_losses", "batch_losses", "epoch_losses"),
    *("loss_log", "loss_values", "all_losses", "history", "train_history", "log", "metrics", "results"),
)
_KEYS = ("loss", "losses", "train_loss", "train_losses", "step_loss", "training_loss", "train")
_LABELS = ("labels", "label", "targets", "target", "y", "yb")
_OUTPUTS = ("outputs", "output", "logits", "preds", "pred", "predictions", "out", "y_hat", "scores")
_IMAGES = ("images", "image", "inputs", "input", "imgs", "data", "x", "xb")
_SIDE = 64
_BATCH = 4
_MOST_PARAMETERS = 200_000_000


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    torch = sys.modules.get("torch")
    params = context.params.get("training_loop", {})
    names = [name for name in params.get("losses", ()) if type(name) is str] or list(_LOSSES)
    found = {
        "losses": _losses(context, names),
        "labels": _tensors(context, torch, _LABELS),
        "outputs": _tensors(context, torch, _OUTPUTS),
        "images": _tensors(context, torch, _IMAGES),
        "model": None,
        "step": None,
    }
    chosen = _model(context, torch)
    if chosen is not None:
        found["model"], module = chosen
        found["step"] = _step(context, torch, module)
    return found


def _losses(context: Any, names: Any) -> Any:
    for name in names:
        base, _, key = name.partition(".")
        if base not in context.names:
            continue
        value = context.names[base]
        try:
            read = _numbers(_inside(value, key), 4)
        except _ERRORS:
            read = None
        if read is not None and read:
            every = max(1, math.ceil(len(read) / _MOST))
            return {"name": name, "count": len(read), "values": [_finite(value) for value in read[::every]]}
    return None


def _inside(value: Any, key: Any) -> Any:
    """The list in a dict of lists or in an object such as a history."""
    if key and issubclass(type(value), dict):
        return dict.get(value, key)
    if issubclass(type(value), dict):
        for name in _KEYS:
            if dict.get(value, name) is not None:
                return dict.get(value, name)
        return None
    inner = getattr(value, "history", None) if type(value).__module__ == "__main__" else None
    return _inside(inner, key) if issubclass(type(inner), dict) else value


def _numbers(value: Any, depth: Any) -> Any:
    """Numbers of a list, an array or a tensor, in order, nested ones one after another; None where there are none."""
    if depth == 0:
        return None
    if issubclass(type(value), (list, tuple)) or type(value).__name__ == "deque":
        numbers = []
        for item in list(value)[:200_000]:
            if type(item) in (int, float):
                numbers.append(float(item))
                continue
            inner = _numbers(_inside(item, "") if issubclass(type(item), dict) else item, depth - 1)
            if inner is None:
                # A pair such as (step, loss) or (loss, accuracy) is not known to be one or the other.
                return None
            numbers += inner
        return numbers
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if callable(getattr(value, "tolist", None)) and not issubclass(type(value), type):
        plain = value.tolist()
        return [float(plain)] if type(plain) in (int, float) else _numbers(plain, depth - 1)
    if type(value) in (int, float):
        return [float(value)]
    return None


def _finite(value: Any) -> Any:
    return value if math.isfinite(value) else None


def _tensors(context: Any, torch: Any, names: Any) -> Any:
    if torch is None:
        return []
    found = []
    for name in names:
        value = context.names.get(name)
        if value is None or not issubclass(type(value), torch.Tensor):
            continue
        try:
            found.append(
                {
                    "name": name,
                    "shape": [int(side) for side in value.shape][:8],
                    "dtype": context.text(value.dtype, 40).removeprefix("torch."),
                    "device": context.text(value.device, 40),
                }
            )
        except _ERRORS:
            continue
    return found


def _model(context: Any, torch: Any) -> Any:
    """(facts, module) of one with parameters: trained ones first, then names that speak of a model, then later ones."""
    if torch is None:
        return None
    found = []
    for place, (name, value) in enumerate(list(context.names.items())):
        if not issubclass(type(value), torch.nn.Module) or name.startswith("_"):
            continue
        facts = _model_facts(context, torch, name, value)
        if facts["parameters"] and not type(value).__name__.endswith("Loss"):
            trained = (
                facts["updates"] > 3 or facts["optimizer_steps"] > 0
            )  # an initialisation writes three times at most
            hinted = any(hint in name.lower() for hint in ("model", "net", "classifier"))
            found.append((trained, hinted, place, facts, value))
    return max(found, key=lambda entry: entry[:3])[3:] if found else None


def _uses_fused(context: Any, torch: Any) -> bool:
    """Whether an optimizer is, or may be made, with fused=True: those write parameters without its being counted."""
    for value in list(context.names.values()):
        if issubclass(type(value), torch.optim.Optimizer) and value.__dict__.get("defaults", {}).get("fused"):
            return True
        constants = value.__code__.co_consts if type(value) is types.FunctionType else ()
        if any(type(constant) is tuple and "fused" in constant for constant in constants):
            return True
    return False


def _model_facts(context: Any, torch: Any, name: Any, model: Any) -> Any:
    facts = {"name": name[:100], "type": type(model).__name__[:100], "training": None, "device": "", "parameters": 0}
    facts |= {"updates": 0, "with_gradient": 0, "optimizer_steps": 0, "uncounted": False}
    try:
        parameters = list(model.parameters())
        facts["parameters"] = sum(parameter.numel() for parameter in parameters)
        facts["uncounted"] = _uses_fused(context, torch)
        facts["training"] = model.training is True
        facts["device"] = context.text(parameters[0].device, 40)
        own = {id(parameter) for parameter in parameters}
        facts["updates"] = max(int(parameter._version) for parameter in parameters)  # noqa: SLF001
        facts["with_gradient"] = sum(parameter.grad is not None for parameter in parameters)
        for value in list(context.names.values()):
            if issubclass(type(value), torch.optim.Optimizer):
                for parameter, state in list(value.state.items()):
                    if id(parameter) in own and "step" in state:
                        facts["optimizer_steps"] = max(facts["optimizer_steps"], int(state["step"]))
    except _ERRORS:
        return facts
    return facts


def _step(context: Any, torch: Any, model: Any) -> Any:
    """One step on random images and random classes; what came of it."""
    facts = {"done": False, "problem": "", "outputs": [], "loss": None, "gradients": False, "batch": _BATCH}
    try:
        if sum(parameter.numel() for parameter in model.parameters()) > _MOST_PARAMETERS:
            return facts | {"problem": "the model is too large for a step here"}
        try:
            own = copy.deepcopy(model)
        except _ERRORS:
            own = model
        first = next(own.parameters())
        with torch.random.fork_rng(devices=[]):
            outputs = None
            for shape in _shapes(context, torch, own):
                images = torch.randn(_BATCH, *shape).to(device=first.device, dtype=first.dtype)
                try:
                    outputs = own.train()(images)
                except _ERRORS as error:
                    facts["problem"] = context.text(error, 300)
                    continue
                facts["problem"] = ""
                break
            if outputs is None:
                return facts
            if not issubclass(type(outputs), torch.Tensor):
                inner = getattr(outputs, "logits", None)
                outputs = (
                    inner
                    if inner is not None
                    else next(iter(outputs.values() if isinstance(outputs, dict) else outputs))
                )
            facts["outputs"] = [int(side) for side in outputs.shape][:8]
            if outputs.ndim != 2 or outputs.shape[0] != _BATCH:
                return facts | {"done": True}
            labels = torch.randint(0, int(outputs.shape[1]), (_BATCH,)).to(outputs.device)
            loss = torch.nn.functional.cross_entropy(outputs.float(), labels)
            facts |= {"loss": _finite(float(loss.detach().cpu())), "done": True}
            if facts["loss"] is None or not loss.requires_grad:
                return facts
            loss.backward()
            gradients = [parameter.grad for parameter in own.parameters() if parameter.grad is not None]
            facts["gradients"] = bool(gradients) and all(bool(torch.isfinite(grad).all()) for grad in gradients)
            if own is model:
                own.zero_grad(set_to_none=True)
    except _ERRORS as error:
        facts["problem"] = context.text(error, 300)
    return facts


def _shapes(context: Any, torch: Any, model: Any) -> Any:
    """Shapes of an image to try: that of the learner's own batches, then usual ones."""
    shapes = []
    for name in (*_IMAGES, "first_batch"):
        value = context.names.get(name)
        if issubclass(type(value), torch.Tensor) and value.ndim == 4:
            shapes.append([int(side) for side in value.shape[1:]])
    convolutions = (layer for layer in model.modules() if issubclass(type(layer), torch.nn.Conv2d))
    channels = next((int(layer.in_channels) for layer in convolutions), 3)
    shapes += [[channels, side, side] for side in (_SIDE, 224, 32)]
    seen = []
    for shape in shapes:
        if shape not in seen and math.prod(shape) <= 3 * 512 * 512:
            seen.append(shape)
    return seen[:5]
