"""Words for how a graph's images differ from those of torchvision's transforms, and what to write."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from checks.operator_names import fn_name, where
from grader_service.model.feedback import Advice, Feedback, NextStep

_MOST_NAMED = 3
_RESIZE = "images = fn.resize(images, resize_shorter={resize})"
_CROP = "images = fn.crop(images, crop=({crop}, {crop}))"
_INTERPOLATION = "Set the wanted one in fn.resize:"
_TYPE = "interp_type=types.INTERP_{interpolation}"
_BY_HALF = (
    "shift images by half a pixel",
    "Look for a warp, or for coordinates that count from a pixel's middle here and from its corner there.",
    "",
)
MISTAKES: Mapping[str, tuple[str, str, str]] = {
    "no_antialias": (
        "resize without antialiasing",
        "Turn it on, as torchvision does:",
        "images = fn.resize(images, resize_shorter={resize}, antialias=True)",
    ),
    "antialias": (
        "resize with antialiasing, and the lab wants none",
        "Turn it off:",
        "images = fn.resize(images, resize_shorter={resize}, antialias=False)",
    ),
    "squashed": (
        "squash images to the final size, whatever their shape",
        "Resize the shorter side, then crop the middle:",
        f"{_RESIZE}\n{_CROP}",
    ),
    "squashed_then_cropped": (
        "squash images to {resize} × {resize} and then crop them",
        "Keep their shape in the resize:",
        _RESIZE,
    ),
    "resized_to_crop": ("resize the shorter side to {crop}, not to {resize}", "Resize to {resize} first:", _RESIZE),
    "not_resized": ("crop images as they are", "Resize the shorter side first:", _RESIZE),
    "corner": (
        "crop the upper left corner",
        "Crop the middle:",
        "images = fn.crop(images, crop=({crop}, {crop}), crop_pos_x=0.5, crop_pos_y=0.5)",
    ),
    "longer_side": ("resize the longer side to {resize}", "Resize the shorter side:", _RESIZE),
    "half_pixel": _BY_HALF,
    "half_pixel_back": _BY_HALF,
    "bilinear": ("use bilinear interpolation", _INTERPOLATION, _TYPE),
    "bicubic": ("use bicubic interpolation", _INTERPOLATION, _TYPE),
    "nearest": ("take the nearest pixel in the resize", _INTERPOLATION, _TYPE),
}
"""Way of preparing images → what the graph seems to do, what to do about it, and what to write."""
_VALUES = Advice(
    code="advice.normalised_otherwise",
    text="The values are also normalised otherwise than wanted.",
    next="Check mean and std (times 255 in DALI), and normalise once.",
)
_ONE_FOR_VALIDATION = "val_pipe = val_pipeline()"


class Transforms(NamedTuple):
    """What the lab compares with."""

    resize: int
    crop: int
    interpolation: str
    """As DALI names it."""
    mean: Sequence[float]
    std: Sequence[float]
    tolerance: float

    @property
    def text(self) -> str:
        """The transforms, as a sentence."""
        return (
            f"At most {self.tolerance:g} is allowed, against torchvision's Resize({self.resize}), "
            f"CenterCrop({self.crop}), Normalize."
        )


class Compared(NamedTuple):
    """A graph beside the transforms."""

    graph: str
    off: float
    """Grey levels of 255, on average."""
    lines: str
    """The learner's lines that resize and crop, such as `graph.py, lines 12 and 14`."""
    wanted: Transforms


def fits(compared: Compared) -> Feedback:
    """Feedback for a pass."""
    return Feedback(
        outcome=f"`{compared.graph}` prepares images as torchvision's transforms do.",
        seen=_differ(compared._replace(lines="")),
        wanted=compared.wanted.text,
        numbers=_numbers(compared),
    )


def mistake(compared: Compared, found: tuple[str, str, str], *, values_too: bool = False) -> Feedback:
    """Feedback for one of `MISTAKES`; `values_too` where mean and std are others as well."""
    fill = {name: getattr(compared.wanted, name) for name in ("resize", "crop", "interpolation")}
    what, action, line = (text.format(**fill) for text in found)
    outcome = f"`{compared.graph}` seems to {what}."
    return _differing(compared, outcome, action, line, (_VALUES,) if values_too else ())


def normalisation(compared: Compared) -> Feedback:
    """Feedback for images whose values alone differ."""
    mean, std = ([round(255 * value, 3) for value in values] for values in (compared.wanted.mean, compared.wanted.std))
    return _differing(
        compared,
        f"Images of `{compared.graph}` fit in size and position, and not in their values.",
        "Normalise once, by:",
        f"{mean=}, {std=}",
    )


def differs(compared: Compared) -> Feedback:
    """Feedback where no mistake is known."""
    return _differing(
        compared,
        f"Images of `{compared.graph}` differ from torchvision's, by none of the usual mistakes.",
        "Compare one image step by step: decode, resize, crop, normalise.",
    )


def wrong_size(graph: str, shape: Sequence[int] | None, lines: str, wanted: Transforms) -> Feedback:
    """Feedback for images of another size; `shape` is None where sizes differ."""
    came = "images of different sizes" if shape is None else f"{list(shape)} per image"
    return Feedback(
        outcome=f"`{graph}` delivers {came}, not {wanted.crop} × {wanted.crop} pixels.",
        seen=f"See {lines}." if lines else "",
        next=NextStep(
            text="Resize the shorter side, then crop the middle:",
            code=f"{_RESIZE}\n{_CROP}".format(resize=wanted.resize, crop=wanted.crop),
        ),
    )


def no_images(graph: str) -> Feedback:
    """Feedback where nothing can be compared."""
    return Feedback(
        outcome=f"No output of `{graph}` holds images with three channels.",
        next=NextStep(text="Return the images:", code="return images, labels"),
    )


def perhaps_others(count: int) -> Feedback:
    """Feedback where every graph that was looked at is random, and there may be more."""
    return Feedback(
        outcome=f"All {count} pipelines that the grader looked at are random, and there may be more, so nothing is "
        "counted.",
        next=NextStep(
            text="Keep fewer pipelines in variables, and name the one for validation with `val`:",
            code=_ONE_FOR_VALIDATION,
        ),
        numbers={"pipelines": count},
    )


def all_random(candidates: Sequence[tuple[str, Sequence[str]]]) -> Feedback:
    """Feedback where every graph is random; each with its name and its random operators."""
    named = [f"`{name}` has {' and '.join(_random(random)[:2])}" for name, random in candidates[:_MOST_NAMED]]
    more = f" and {len(candidates) - len(named)} more" if len(candidates) > len(named) else ""
    return Feedback(
        outcome="Every pipeline has random operators.",
        seen=f"{', '.join(named)}{more}." if named else "",
        wanted="One for validation, without them, is wanted.",
        next=NextStep(
            text="Build a second one that only resizes, crops the middle and normalises:", code=_ONE_FOR_VALIDATION
        ),
    )


def _random(operators: Sequence[str]) -> list[str]:
    return list(dict.fromkeys("a condition" if "conditional" in name else fn_name(name) for name in operators))


def lines_of(operators: Sequence[tuple[str, int]]) -> str:
    """The lines (file and number) of the first operators, such as `graph.py, lines 12 and 14`; empty for none."""
    text = where(*operators[0]).removeprefix(" in ") if operators else ""
    numbers = list(dict.fromkeys(str(line) for _, line in operators[:_MOST_NAMED]))
    if text and len(numbers) > 1:
        text = f"{text.rpartition('line ')[0]}lines {' and '.join(numbers)}"
    return text


def _differing(
    compared: Compared, outcome: str, action: str, line: str = "", advice: Sequence[Advice] = ()
) -> Feedback:
    return Feedback(
        outcome=outcome,
        seen=_differ(compared),
        wanted=compared.wanted.text,
        next=NextStep(text=action, code=line),
        advice=tuple(advice),
        numbers=_numbers(compared),
    )


def _differ(compared: Compared) -> str:
    see = f"; see {compared.lines}" if compared.lines else ""
    return f"The images differ by {_shown(compared):g} grey levels of 255 on average{see}."


def _numbers(compared: Compared) -> dict[str, float]:
    return {"grey_levels_off": _shown(compared), "allowed": compared.wanted.tolerance}


def _shown(compared: Compared) -> float:
    """Rounded so that it stays on its side of what is allowed."""
    up, allowed = math.ceil(100 * compared.off) / 100, compared.wanted.tolerance
    return min(up, allowed) if compared.off <= allowed else up
