"""The check `torchvision_agreement`: does a validation pipeline give what torchvision's transforms would give?"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_WORD = "agreement"
_MOST_CARRIED = 4
"""A run carries no more graphs than this, so with as many a deterministic one may have been left out."""
_CLEARLY = 0.5
"""A mistake is named when its error is below this share of the error against what was wanted."""
_CLOSE = 3.0
"""Grey levels within which a mistake is taken for the cause."""
_MISTAKES: Mapping[str, str] = {
    "no_antialias": "It fits a resize without antialiasing: give fn.resize antialias=True, as torchvision does.",
    "antialias": "It fits a resize with antialiasing, and the lab wants none: give fn.resize antialias=False.",
    "squashed": "It fits images squashed to the final size, whatever their shape: resize the shorter side "
    "(resize_shorter={resize}) and crop {crop} x {crop} from the middle.",
    "squashed_then_cropped": "It fits images squashed to {resize} x {resize} and then cropped: give fn.resize "
    "resize_shorter={resize}, which keeps the shape, instead of resize_x and resize_y or size.",
    "resized_to_crop": "It fits a resize of the shorter side to {crop}, not to {resize}: the crop takes too much of "
    "the image. Resize to {resize} first.",
    "not_resized": "It fits a crop from the image as it is: resize the shorter side to {resize} first.",
    "corner": "It fits a crop from the upper left corner: take the middle (crop_pos_x=0.5 and crop_pos_y=0.5, the "
    "default).",
    "longer_side": "It fits a resize of the longer side to {resize}: use resize_shorter, or mode='not_smaller'.",
    "half_pixel": "It fits images that are shifted by half a pixel: look for a warp, or for coordinates that count "
    "from the middle of a pixel in one place and from its corner in another.",
    "half_pixel_back": "It fits images that are shifted by half a pixel: look for a warp, or for coordinates that "
    "count from the middle of a pixel in one place and from its corner in another.",
    "bilinear": "It fits bilinear interpolation: set interp_type=types.INTERP_{interpolation}.",
    "bicubic": "It fits bicubic interpolation: set interp_type=types.INTERP_{interpolation}.",
    "nearest": "It fits interpolation by the nearest pixel: set interp_type=types.INTERP_{interpolation}.",
}
_CODES = {"half_pixel_back": "half_pixel", "bilinear": "interpolation", "bicubic": "interpolation",
          "nearest": "interpolation"}  # fmt: skip
_INTERPOLATIONS = {"bilinear": "LINEAR", "bicubic": "CUBIC", "nearest": "NN"}

Level = Annotated[float, Field(ge=0, le=1e9)]
Share = Annotated[float, Field(ge=-1e3, le=1e3)]
Deviation = Annotated[float, Field(gt=1e-6, le=1e3)]


class Params(Wire):
    """The transforms that the lab compares with: Resize(resize), CenterCrop(crop), ToTensor, Normalize(mean, std)."""

    resize: Annotated[int, Field(ge=8, le=2048)] = 256
    """Pixels of the shorter side."""
    crop: Annotated[int, Field(ge=8, le=2048)] = 224
    interpolation: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    antialias: bool = True
    mean: tuple[Share, Share, Share] = (0.485, 0.456, 0.406)
    std: tuple[Deviation, Deviation, Deviation] = (0.229, 0.224, 0.225)
    """In the scale 0..1, as torchvision writes both."""
    tolerance: Annotated[float, Field(gt=0, le=64)] = 1.0
    """Mean absolute difference in grey levels (of 255)."""
    graph: ShortText | None = None
    """Variable of the pipeline or iterator; the first without random operators if absent, one for validation before
    others."""


class Candidate(Wire):
    """A carried graph."""

    name: ShortText
    refused: Annotated[str, Field(max_length=300)]
    random: Annotated[tuple[ShortText, ...], Field(max_length=8)]


class Place(Wire):
    """An operator of the compared graph that resizes or crops."""

    name: ShortText
    file: ShortText
    line: int | None
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
    operators: Annotated[tuple[Place, ...], Field(max_length=8)] = ()


class TorchvisionAgreementCheck:
    """Judges whether a graph without random operators prepares images as torchvision's transforms do.

    Evidence:
        probe `torchvision_agreement`: mean absolute difference, in grey levels, between what the learner's graph and
            what torchvision makes of the same two JPEGs, in a pod of ours; where they differ, also against typical
            mistakes.
    Points: all or nothing.
    Errors: 0 false accepts on 13 failing and 0 false rejects on 9 passing controls in
        `tests/builtin_graph/test_torchvision_agreement.py`. Passing ones differ by at most 0.3 grey levels on the CPU
        backend, the nearest mistake (no antialiasing) by 1.3; a GPU's decoder adds up to about 0.5.
    Cannot detect: differences on images whose sides give no whole numbers after the resize, where both libraries round
        differently; several mistakes at once are told as one or as `agreement.differs`.
    """

    id: ClassVar[str] = "torchvision_agreement"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Agreement with torchvision"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("torchvision_agreement",)
    codes: ClassVar[Mapping[str, str]] = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
        "agreement.ok": "the images are those of torchvision's transforms",
        "agreement.no_images": "no output of the graph holds images with three channels",
        "agreement.no_validation_graph": "failed or unverified: every pipeline that came has random operators",
        "agreement.size": "the images have another size than wanted",
        "agreement.normalisation": "the images fit, their mean and std do not",
        "agreement.no_antialias": "the resize lacks antialiasing",
        "agreement.antialias": "the resize has antialiasing, and the lab wants none",
        "agreement.squashed": "images are squashed to the final size",
        "agreement.squashed_then_cropped": "images are squashed to a square and then cropped",
        "agreement.resized_to_crop": "the shorter side is resized to the crop's size",
        "agreement.not_resized": "the crop is taken from the image as it is",
        "agreement.corner": "the crop is taken from the upper left corner",
        "agreement.longer_side": "the longer side is resized instead of the shorter",
        "agreement.half_pixel": "images are shifted by half a pixel",
        "agreement.interpolation": "another interpolation is used than wanted",
        "agreement.differs": "images differ, by none of the usual mistakes",
    }
    params_model: ClassVar[type[BaseModel]] = Params
    observation_model: ClassVar[type[BaseModel]] = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "torchvision_agreement", Observation)

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        if observation.graph is None:
            return _none(observation, params)
        if observation.shape is None or 3 not in (observation.shape[:1] + observation.shape[2:3]):
            return failed(
                f"{_WORD}.no_images",
                f"No output of `{observation.graph}` holds images with three channels. Return the images.",
                tier=Tier.GRAPH,
            )
        if observation.ragged or "wanted" not in observation.errors:
            return _wrong_size(observation, params)
        return _judge(observation, params)


def _none(observation: Observation, params: Params) -> CheckResult:
    if params.graph is not None:
        return no_such_graph(_WORD, params.graph)
    shown = [one for one in observation.candidates if not one.refused]
    if observation.carried >= _MOST_CARRIED:
        return undecided(
            Outcome.UNVERIFIED,
            f"{_WORD}.no_validation_graph",
            f"All {observation.carried} pipelines that came are random, and there may be more of them. Keep fewer "
            "pipelines in your variables, and name the one for validation so that `val` is in its name.",
            tier=Tier.GRAPH,
        )
    listed = "; ".join(f"`{one.name}`: {', '.join(one.random[:3])}" for one in shown[:4])
    return failed(
        f"{_WORD}.no_validation_graph",
        f"Every pipeline has random operators ({listed}). Build a second one for validation that only resizes, crops "
        "from the middle and normalises.",
        tier=Tier.GRAPH,
    )


def _wrong_size(observation: Observation, params: Params) -> CheckResult:
    came = "images of different sizes" if observation.ragged else f"{list(observation.shape or ())} per sample"
    return failed(
        f"{_WORD}.size",
        f"`{observation.graph}` delivers {came}; {params.crop} x {params.crop} pixels were wanted"
        f"{_places(observation)}. Resize the shorter side to {params.resize} and crop {params.crop} x {params.crop}.",
        tier=Tier.GRAPH,
    )


def _judge(observation: Observation, params: Params) -> CheckResult:
    errors = observation.errors
    off = errors["wanted"]
    details = {"graph": observation.graph, "errors": dict(errors), "fitted": dict(observation.fitted)}
    seen = (
        f"`{observation.graph}` differs from torchvision's Resize({params.resize}), CenterCrop({params.crop}), "
        "ToTensor, "
        f"Normalize by {off:.2f} grey levels of 255 on average"
    )
    if off <= params.tolerance:
        return passed(
            f"{_WORD}.ok", f"{seen}; at most {params.tolerance:g} were allowed.", tier=Tier.GRAPH, details=details
        )
    seen += f"; at most {params.tolerance:g} are allowed{_places(observation)}."
    code, text = _cause(observation, params)
    return failed(f"{_WORD}.{code}", f"{seen} {text}", tier=Tier.GRAPH, details=details)


def _cause(observation: Observation, params: Params) -> tuple[str, str]:
    fitted = observation.fitted
    if fitted and fitted.get("wanted", 1e9) <= min(params.tolerance, *fitted.values()) + 1e-9:
        return "normalisation", (
            "Size and position fit, the values do not: check mean and std (times 255 in DALI) and that the images are "
            "normalised once."
        )
    known = {name: error for name, error in observation.errors.items() if name in _MISTAKES}
    nearest = min(known, key=lambda name: (known[name], name), default=None)
    if nearest is not None and known[nearest] <= min(_CLOSE, _CLEARLY * observation.errors["wanted"]):
        text = _MISTAKES[nearest].format(
            resize=params.resize, crop=params.crop, interpolation=_INTERPOLATIONS[params.interpolation]
        )
        return _CODES.get(nearest, nearest), text
    geometry = {name: error for name, error in fitted.items() if name in _MISTAKES}
    nearest = min(geometry, key=lambda name: (geometry[name], name), default=None)
    if nearest is not None and geometry[nearest] <= min(_CLOSE, _CLEARLY * fitted.get("wanted", 0.0)):
        text = _MISTAKES[nearest].format(
            resize=params.resize, crop=params.crop, interpolation=_INTERPOLATIONS[params.interpolation]
        )
        return _CODES.get(nearest, nearest), f"{text} Its values are also normalised otherwise than wanted."
    return "differs", (
        "It fits none of the usual mistakes. Compare one image with torchvision's, step by step: decode, resize, crop, "
        "normalise."
    )


def _places(observation: Observation) -> str:
    """The learner's lines that resize and crop."""
    placed = [place for place in observation.operators if place.line is not None]
    lines = list(dict.fromkeys(str(place.line) for place in placed[:4]))
    file = f"{placed[0].file}, " if placed and placed[0].file else ""
    return f" ({file}line{'s' if len(lines) > 1 else ''} {' and '.join(lines)})" if lines else ""


CHECK = TorchvisionAgreementCheck()
