"""The check `torchvision_agreement`: does a validation pipeline give what torchvision's transforms would give?"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.probing import no_such_graph, read_probe
from checks.torchvision_agreement import wording
from checks.torchvision_agreement.wording import MISTAKES
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome, Tier

_WORD = "agreement"
_MOST_CARRIED = 4
"""A run carries no more graphs than this, so with as many a deterministic one may have been left out."""
_CLEARLY = 0.5
"""A mistake is named when its error is below this share of the error against what was wanted."""
_CLOSE = 3.0
"""Grey levels within which a mistake is taken for the cause."""
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


class TorchvisionAgreementCheck(Check[Params, Observation]):
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

    id = "torchvision_agreement"
    version = "1.1.0"
    title = "Agreement with torchvision"
    word = _WORD
    needs = frozenset({Need.DISCOVERY})
    probes = ("torchvision_agreement",)
    codes = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
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
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "torchvision_agreement", Observation, ProbeSite.GRAPH)

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        if observation.graph is None:
            return _none(observation, params)
        if observation.shape is None or 3 not in (observation.shape[:1] + observation.shape[2:3]):
            return failed(f"{_WORD}.no_images", wording.no_images(observation.graph), tier=Tier.GRAPH)
        if observation.ragged or "wanted" not in observation.errors:
            shape = None if observation.ragged else observation.shape
            feedback = wording.wrong_size(observation.graph, shape, _places(observation), _wanted(params))
            return failed(f"{_WORD}.size", feedback, tier=Tier.GRAPH)
        return _judge(observation.graph, observation, params)


def _none(observation: Observation, params: Params) -> Result:
    if params.graph is not None:
        return no_such_graph(_WORD, params.graph)
    code = f"{_WORD}.no_validation_graph"
    if observation.carried >= _MOST_CARRIED:
        feedback = wording.perhaps_others(observation.carried)
        return undecided(Outcome.UNVERIFIED, code, feedback, tier=Tier.GRAPH)
    shown = [(one.name, one.random) for one in observation.candidates if not one.refused]
    return failed(code, wording.all_random(shown), tier=Tier.GRAPH)


def _judge(graph: str, observation: Observation, params: Params) -> Result:
    errors = observation.errors
    off = errors["wanted"]
    details = {"graph": graph, "errors": dict(errors), "fitted": dict(observation.fitted)}
    compared = wording.Compared(graph, off, _places(observation), _wanted(params))
    if off <= params.tolerance:
        return passed(wording.fits(compared), tier=Tier.GRAPH, details=details)
    code, feedback = _cause(observation, params, compared)
    return failed(f"{_WORD}.{code}", feedback, tier=Tier.GRAPH, details=details)


def _cause(observation: Observation, params: Params, compared: wording.Compared) -> tuple[str, Feedback]:
    errors, fitted = observation.errors, observation.fitted
    if fitted and fitted.get("wanted", 1e9) <= min(params.tolerance, *fitted.values()) + 1e-9:
        return "normalisation", wording.normalisation(compared)
    for found, without in ((errors, errors["wanted"]), (fitted, fitted.get("wanted", 0.0))):
        known = {name: error for name, error in found.items() if name in MISTAKES}
        nearest = min(known, key=lambda name: (known[name], name), default=None)
        if nearest is not None and known[nearest] <= min(_CLOSE, _CLEARLY * without):
            feedback = wording.mistake(compared, MISTAKES[nearest], values_too=found is fitted)
            return _CODES.get(nearest, nearest), feedback
    return "differs", wording.differs(compared)


def _wanted(params: Params) -> wording.Transforms:
    return wording.Transforms(
        params.resize, params.crop, _INTERPOLATIONS[params.interpolation], params.mean, params.std, params.tolerance
    )


def _places(observation: Observation) -> str:
    """The learner's lines that resize and crop."""
    return wording.lines_of([(place.file, place.line) for place in observation.operators if place.line is not None])


CHECK = TorchvisionAgreementCheck()
