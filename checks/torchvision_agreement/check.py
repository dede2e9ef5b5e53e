"""The check `torchvision_agreement`: does a validation pipeline give what torchvision's transforms would give?"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict

from pydantic import Field

from checks.api import Advice, FromProbe, Result, check, failed, passed, unverified
from checks.observations.carried import Line
from checks.operator_names import fn_name, where
from checks.probing import no_such_graph
from checks.torchvision_agreement.mistakes import CROP, MISTAKES, RESIZE
from grader_service.model.base import ShortText, Wire

_MOST_CARRIED = 4
"""A run carries no more graphs than this, so with as many a deterministic one may have been left out."""
_MOST_NAMED = 3
_CLEARLY = 0.5
"""A mistake is named when its error is below this share of the error against what was wanted."""
_CLOSE = 3.0
"""Grey levels within which a mistake is taken for the cause."""
_CODES = {"half_pixel_back": "half_pixel", "bilinear": "interpolation", "bicubic": "interpolation",
          "nearest": "interpolation"}  # fmt: skip
_INTERPOLATIONS = {"bilinear": "LINEAR", "bicubic": "CUBIC", "nearest": "NN"}
_VALUES = Advice(
    code="advice.normalised_otherwise",
    text="The values are also normalised otherwise than wanted.",
    next="Check mean and std (times 255 in DALI), and normalise once.",
)
_FOR_VALIDATION = "val_pipe = val_pipeline()"

Level = Annotated[float, Field(ge=0, le=1e9)]
Share = Annotated[float, Field(ge=-1e3, le=1e3)]
Deviation = Annotated[float, Field(gt=1e-6, le=1e3)]


class Candidate(Wire):
    """A carried graph."""

    name: ShortText
    refused: Annotated[str, Field(max_length=300)]
    random: Annotated[tuple[ShortText, ...], Field(max_length=8)]


class Step(Line):
    """An operator of the compared graph that resizes or crops."""

    name: ShortText
    arguments: Annotated[Mapping[str, ShortText], Field(max_length=32)]


class Observation(Wire):
    """How far the graph's images are from those of each way of preparing them."""

    graph: ShortText | None
    """The one that was compared; null when none is without random operators."""
    carried: Annotated[int, Field(ge=0, le=64)]
    candidates: Annotated[tuple[Candidate, ...], Field(max_length=16)]
    shape: Annotated[tuple[Annotated[int, Field(ge=0, le=2**31)], ...], Field(max_length=16)] | None = None
    ragged: bool = False
    errors: Annotated[Mapping[ShortText, Level], Field(max_length=32)] = Field(default_factory=dict)
    """Mean absolute difference per way of preparing, in grey levels, of those that give images of this shape."""
    fitted: Annotated[Mapping[ShortText, Level], Field(max_length=32)] = Field(default_factory=dict)
    """The same with each channel scaled and shifted as a whole; only where no plain error is small."""
    operators: Annotated[tuple[Step, ...], Field(max_length=8)] = ()


class _Told(TypedDict):
    seen: str
    wanted: str
    numbers: Mapping[str, float]
    details: Mapping[str, object]


@check(
    version="1.1.0",
    title="Agreement with torchvision",
    word="agreement",
    codes={
        "size": "the images have another size than wanted",
        "no_antialias": "the resize lacks antialiasing",
        "antialias": "the resize has antialiasing, and the lab wants none",
        "squashed": "images are squashed to the final size",
        "squashed_then_cropped": "images are squashed to a square and then cropped",
        "resized_to_crop": "the shorter side is resized to the crop's size",
        "not_resized": "the crop is taken from the image as it is",
        "corner": "the crop is taken from the upper left corner",
        "longer_side": "the longer side is resized instead of the shorter",
        "half_pixel": "images are shifted by half a pixel",
        "interpolation": "another interpolation is used than wanted",
    },
)
def torchvision_agreement(
    seen: Annotated[Observation, FromProbe("torchvision_agreement")],
    *,
    resize: Annotated[int, Field(ge=8, le=2048)] = 256,
    crop: Annotated[int, Field(ge=8, le=2048)] = 224,
    interpolation: Literal["bilinear", "bicubic", "nearest"] = "bilinear",
    antialias: bool = True,  # noqa: ARG001 - the probe compares with it
    mean: tuple[Share, Share, Share] = (0.485, 0.456, 0.406),
    std: tuple[Deviation, Deviation, Deviation] = (0.229, 0.224, 0.225),
    tolerance: Annotated[float, Field(gt=0, le=64)] = 1.0,
    graph: ShortText | None = None,
) -> Result:
    """Judges whether a graph without random operators prepares images as torchvision's transforms do.

    Evidence:
        probe `torchvision_agreement`: mean absolute difference, in grey levels, between what the learner's graph and
            what torchvision makes of the same two JPEGs, in a pod of ours; where they differ, also against typical
            mistakes.
    Points: all or nothing.
    Errors: 0 false accepts on 13 failing and 0 false rejects on 9 passing controls in
        `tests/checks/graphs/test_torchvision_agreement.py`. Passing ones differ by at most 0.3 grey levels on the CPU
        backend, the nearest mistake (no antialiasing) by 1.3; a GPU's decoder adds up to about 0.5.
    Cannot detect: differences on images whose sides give no whole numbers after the resize, where both libraries round
        differently; several mistakes at once are told as one or as `agreement.differs`.

    Args:
        resize: Pixels of the shorter side.
        std: In the scale 0..1, as torchvision writes both.
        tolerance: Mean absolute difference in grey levels (of 255).
        graph: Variable of the pipeline or iterator; the first without random operators if absent, one for validation
            before others.
    """
    if seen.graph is None:
        return no_such_graph(graph) if graph is not None else _all_random(seen)
    name, lines = seen.graph, _lines(seen.operators)
    if seen.shape is None or 3 not in (seen.shape[:1] + seen.shape[2:3]):
        none = f"No output of `{name}` holds images with three channels."
        return failed("no_images", none, next="Return the images:", write="return images, labels")
    fill = {"resize": resize, "crop": crop, "interpolation": _INTERPOLATIONS[interpolation]}
    if seen.ragged or "wanted" not in seen.errors:
        came = "images of different sizes" if seen.ragged else f"{list(seen.shape)} per image"
        return failed(
            "size",
            f"`{name}` delivers {came}, not {crop} × {crop} pixels.",
            seen=f"See {lines}." if lines else "",
            next="Resize the shorter side, then crop the middle:",
            write=f"{RESIZE}\n{CROP}".format(**fill),
        )
    off = seen.errors["wanted"]
    up = math.ceil(100 * off) / 100
    shown = min(up, tolerance) if off <= tolerance else up  # rounded so that it stays on its side of what is allowed
    differ = f"The images differ by {shown:g} grey levels of 255 on average"
    told = _Told(
        seen=f"{differ}; see {lines}." if lines and off > tolerance else f"{differ}.",
        wanted=f"At most {tolerance:g} is allowed, against torchvision's Resize({resize}), CenterCrop({crop}), "
        "Normalize.",
        numbers={"grey_levels_off": shown, "allowed": tolerance},
        details={"graph": name, "errors": dict(seen.errors), "fitted": dict(seen.fitted)},
    )
    if off <= tolerance:
        return passed(f"`{name}` prepares images as torchvision's transforms do.", **told)
    if seen.fitted and seen.fitted.get("wanted", 1e9) <= min(tolerance, *seen.fitted.values()) + 1e-9:
        scaled = [[round(255 * value, 3) for value in values] for values in (mean, std)]
        return failed(
            "normalisation",
            f"Images of `{name}` fit in size and position, and not in their values.",
            next="Normalise once, by:",
            write=f"mean={scaled[0]}, std={scaled[1]}",
            **told,
        )
    mistake, advice = _mistake(seen)
    if not mistake:
        return failed(
            "differs",
            f"Images of `{name}` differ from torchvision's, by none of the usual mistakes.",
            next="Compare one image step by step: decode, resize, crop, normalise.",
            **told,
        )
    does, action, write = (text.format(**fill) for text in MISTAKES[mistake])
    code, seems = _CODES.get(mistake, mistake), f"`{name}` seems to {does}."
    return failed(code, seems, next=action, write=write, advice=advice, **told)


def _all_random(seen: Observation) -> Result:
    if seen.carried >= _MOST_CARRIED:
        return unverified(
            "no_validation_graph",
            f"All {seen.carried} pipelines that the grader looked at are random, and there may be more, so nothing is "
            "counted.",
            next="Keep fewer pipelines in variables, and name the one for validation with `val`:",
            write=_FOR_VALIDATION,
            numbers={"pipelines": seen.carried},
        )
    candidates = [one for one in seen.candidates if not one.refused]
    named = [f"`{one.name}` has {' and '.join(_kinds(one.random)[:2])}" for one in candidates[:_MOST_NAMED]]
    more = f" and {len(candidates) - len(named)} more" if len(candidates) > len(named) else ""
    return failed(
        "no_validation_graph",
        "Every pipeline has random operators.",
        seen=f"{', '.join(named)}{more}." if named else "",
        wanted="One for validation, without them, is wanted.",
        next="Build a second one that only resizes, crops the middle and normalises:",
        write=_FOR_VALIDATION,
    )


def _kinds(random: Sequence[str]) -> list[str]:
    return list(dict.fromkeys("a condition" if "conditional" in name else fn_name(name) for name in random))


def _mistake(seen: Observation) -> tuple[str, tuple[Advice, ...]]:
    """The way of preparing images that the graph comes near, empty if none; and whether its values differ as well."""
    for found, advice in ((seen.errors, ()), (seen.fitted, (_VALUES,))):
        known = {name: error for name, error in found.items() if name in MISTAKES}
        nearest = min(known, key=lambda name: (known[name], name), default="")
        if nearest and known[nearest] <= min(_CLOSE, _CLEARLY * found.get("wanted", 0.0)):
            return nearest, advice
    return "", ()


def _lines(operators: Sequence[Step]) -> str:
    """The lines of the first operators, such as `graph.py, lines 12 and 14`; empty where none is known."""
    known = [one for one in operators if one.line is not None]
    text = where(known[0].file, known[0].line).removeprefix(" in ") if known else ""
    numbers = list(dict.fromkeys(str(one.line) for one in known[:_MOST_NAMED]))
    if text and len(numbers) > 1:
        text = f"{text.rpartition('line ')[0]}lines {' and '.join(numbers)}"
    return text
