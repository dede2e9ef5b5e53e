"""The check `normalisation`: are mean and standard deviation taken off the images exactly once, in the right scale?"""

from typing import Annotated

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.normalisation import wording
from checks.normalisation.fit import Fit, Line, error, fit, measured, nearest, right, written
from checks.normalisation.wording import MISTAKES
from checks.output_contract.colours import ColouredGraph, Colours, channel_axis
from checks.output_contract.wording import stopped
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.verdict import Outcome, Tier

_WORD = "normalisation"
_VARIES = 4.0
"""Grey levels by which repeats of one colour may differ before the graph counts as changing colours at random."""
_BENT = 6.0
"""Grey levels that a value may lie off the straight line."""
_NEAR = 3.0
_FLAT = 1e-6


class Params(Wire):
    """What the lab wants; the scale of both is 0..1, as torchvision writes it."""

    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[Annotated[float, Field(gt=1e-6)], Annotated[float, Field(gt=1e-6)], Annotated[float, Field(gt=1e-6)]] = (
        0.229, 0.224, 0.225,
    )  # fmt: skip
    """Red, green, blue."""
    tolerance: Annotated[float, Field(gt=0, le=128)] = 2.5
    """Grey levels (of 255) by which the result may differ anywhere between black and white."""
    graph: ShortText | None = None
    """Variable of the pipeline or iterator; the one that is measured if absent."""


class NormalisationCheck(Check[Params, Colours]):
    """Judges mean and standard deviation per channel, from what the learner's graph makes of images of one colour.

    Evidence:
        probe `constant_colours`: middle values of nine greys and seven colours, three times each, from the learner's
            graph in a pod of ours. Per channel a straight line is fitted; its two numbers are mean and std.
    Points: all or nothing.
    Errors: 0 false accepts on 16 failing and 0 false rejects on 12 passing controls in
        `tests/builtin_graph/test_normalisation.py`; every failing control gets the name of its own mistake.
    Cannot detect: what is done to the values after the pipeline. Where the graph changes colours at random, the
        arguments of its own fn.crop_mirror_normalize or fn.normalize are read instead of its values, and a second
        normalisation somewhere else in it is not seen.
    """

    id = "normalisation"
    version = "1.1.0"
    title = "Normalisation of the images"
    needs = frozenset({Need.DISCOVERY})
    probes = ("constant_colours",)
    codes = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
        "normalisation.ok": "mean and std are those that the lab wants",
        "normalisation.no_images": "no output of the graph holds images with channels",
        "normalisation.not_finite": "values are not finite, or channels neither 1 nor 3",
        "normalisation.per_image": "each image is normalised by its own statistics",
        "normalisation.constant": "a channel is the same for different greys",
        "normalisation.colours_vary": "unverified: colours change at random, so nothing could be measured",
        "normalisation.raw": "values are 0 to 255, as in the file",
        "normalisation.unit_range": "values are scaled to 0..1 and not normalised further",
        "normalisation.minus_one_to_one": "values are scaled to -1..1, other statistics were wanted",
        "normalisation.scale_01": "mean and std are in the scale 0..1, images in 0..255",
        "normalisation.mean_scale_01": "mean is in the scale 0..1, images in 0..255",
        "normalisation.std_scale_01": "std is in the scale 0..1, images in 0..255",
        "normalisation.std_missing": "nothing is divided by std",
        "normalisation.mean_missing": "no mean is taken off",
        "normalisation.bgr_stats": "the statistics of red and blue are exchanged",
        "normalisation.twice": "the normalisation is applied twice",
        "normalisation.not_linear": "values are cut off, or changed otherwise than by a straight line",
        "normalisation.other": "mean or std are others than wanted",
    }
    params_model = Params
    observation_model = Colours

    def observe(self, evidence: Evidence) -> Colours | Result:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "constant_colours", Colours, ProbeSite.GRAPH)

    def judge(self, observation: Colours, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        graph = observation.chosen(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        if graph.problem:
            return undecided(Outcome.UNVERIFIED, f"{_WORD}.graph_failed", stopped(graph), tier=Tier.CLAIMS)
        image = next((image for image in graph.images if image.output < len(graph.outputs)), None)
        axes = image.axes if image is not None else ()
        if image is None or not axes:
            return failed(f"{_WORD}.no_images", wording.no_images(graph), tier=Tier.GRAPH)
        found = fit(channel_axis(image, observation.greys) or axes[0], observation)
        if found is None:
            return failed(f"{_WORD}.not_finite", wording.not_finite(graph), tier=Tier.GRAPH)
        return _judge(graph, found, params)


def _judge(graph: ColouredGraph, found: Fit, params: Params) -> Result:
    wanted = wording.Wanted(params.mean, params.std, params.tolerance)
    if any(abs(slope) < _FLAT for slope, _ in found.lines):
        if "Normalize" in graph.operators:
            return failed(f"{_WORD}.per_image", wording.per_image(graph, wanted), tier=Tier.GRAPH)
        return failed(f"{_WORD}.constant", wording.constant(graph), tier=Tier.GRAPH)
    if found.varies > _VARIES:
        return _from_arguments(graph, wanted)
    off = error(found.lines, right(wanted.mean, wanted.std))
    details = _details(graph, found.lines, off) | {"residual": round(min(found.residual, 1e9), 3)}
    if off <= wanted.tolerance and found.residual <= _BENT:
        return passed(wording.fits(graph, wanted, off), tier=Tier.GRAPH, details=details)
    if found.residual > _BENT:
        return failed(f"{_WORD}.not_linear", wording.not_linear(graph, wanted), tier=Tier.GRAPH, details=details)
    return _mistaken(graph, found.lines, off, wanted, details)


def _mistaken(
    graph: ColouredGraph, lines: tuple[Line, ...], off: float, wanted: wording.Wanted, details: dict[str, object]
) -> Result:
    code, distance = nearest(lines, wanted.mean, wanted.std)
    if distance <= max(_NEAR, wanted.tolerance):
        feedback = wording.mistake(MISTAKES[code], graph, lines, wanted)
        return failed(f"{_WORD}.{code}", feedback, tier=Tier.GRAPH, details=details)
    return failed(f"{_WORD}.other", wording.other(graph, lines, off, wanted), tier=Tier.GRAPH, details=details)


def _from_arguments(graph: ColouredGraph, wanted: wording.Wanted) -> Result:
    """For a graph that changes colours at random: what its normalising operator says."""
    lines = [(operator, written(operator)) for operator in graph.normalisers]
    stated = [(operator, own) for operator, own in lines if own is not None]
    if len(stated) != 1 or len(lines) != 1:
        feedback = wording.colours_vary(graph, wanted)
        return undecided(Outcome.UNVERIFIED, f"{_WORD}.colours_vary", feedback, tier=Tier.GRAPH)
    operator, own = stated[0]
    off = error(own, right(wanted.mean, wanted.std))
    details = _details(graph, own, off) | {"from": "arguments"}
    if off <= wanted.tolerance:
        feedback = wording.arguments_fit(graph, operator, wanted)
        return passed(feedback, tier=Tier.GRAPH, details=details)
    return _mistaken(graph, own, off, wanted, details)


def _details(graph: ColouredGraph, lines: tuple[Line, ...], off: float) -> dict[str, object]:
    means, deviations = measured(lines)
    return {"graph": graph.name, "mean": means, "std": deviations, "grey_levels_off": round(min(off, 1e9), 3)}


CHECK = NormalisationCheck()
