"""The check `normalisation`: are mean and standard deviation taken off the images exactly once, in the right scale?"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.normalisation.fit import Fit, Line, error, fit, measured, nearest, right, written
from checks.output_contract.colours import ColouredGraph, Colours, Normaliser, channel_axis
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_WORD = "normalisation"
_VARIES = 4.0
"""Grey levels by which repeats of one colour may differ before the graph counts as changing colours at random."""
_BENT = 6.0
"""Grey levels that a value may lie off the straight line."""
_NEAR = 3.0
_FLAT = 1e-6
_TEXTS = {
    "raw": "the values are those of the file, 0 to 255: nothing was taken off or divided. Give "
    "fn.crop_mirror_normalize mean and std.",
    "unit_range": "the values are scaled to 0..1 and not normalised further. Give fn.crop_mirror_normalize mean and "
    "std.",
    "minus_one_to_one": "the values are scaled to -1..1, which is mean 0.5 and std 0.5 for every channel; other "
    "statistics were wanted.",
    "scale_01": "mean and std are in the scale 0..1, but DALI's images are 0 to 255, so the values are 255 times too "
    "large and hardly shifted. Multiply both by 255.",
    "mean_scale_01": "std has the right scale, but mean is in the scale 0..1 (or left out) while the images are 0 to "
    "255. Multiply mean by 255.",
    "std_scale_01": "mean has the right scale, but std is in the scale 0..1 while the images are 0 to 255, so the "
    "values are 255 times too large. Multiply std by 255.",
    "std_missing": "the mean is taken off, and nothing is divided by std. Give fn.crop_mirror_normalize std.",
    "mean_missing": "the values are divided by std, and no mean is taken off. Give fn.crop_mirror_normalize mean.",
    "bgr_stats": "the statistics of red and blue are exchanged: those of red are applied to blue. Use the same order "
    "of channels for the images, mean and std.",
    "twice": "the normalisation is applied twice. Keep one of both places.",
}


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


class NormalisationCheck:
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

    id: ClassVar[str] = "normalisation"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Normalisation of the images"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("constant_colours",)
    codes: ClassVar[Mapping[str, str]] = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
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
    params_model: ClassVar[type[BaseModel]] = Params
    observation_model: ClassVar[type[BaseModel]] = Colours

    def observe(self, evidence: Evidence) -> Colours | CheckResult:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "constant_colours", Colours)

    def judge(self, observation: Colours, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        graph = observation.chosen(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        if graph.problem:
            text = f"`{graph.name}` stopped on the grader's images: {graph.problem}"
            return undecided(Outcome.UNVERIFIED, f"{_WORD}.graph_failed", text, tier=Tier.CLAIMS)
        image = next((image for image in graph.images if image.output < len(graph.outputs)), None)
        axes = image.axes if image is not None else ()
        if image is None or not axes:
            return failed(
                f"{_WORD}.no_images",
                f"No output of `{graph.name}` holds images with channels, so there is nothing to normalise. Return the "
                "images from the pipeline.",
                tier=Tier.GRAPH,
            )
        found = fit(channel_axis(image, observation.greys) or axes[0], observation)
        if found is None:
            return failed(
                f"{_WORD}.not_finite",
                f"The images of `{graph.name}` hold NaN or infinite values, or neither 1 nor 3 channels, when the "
                "picture has a single colour. Check std and scale of the normalisation.",
                tier=Tier.GRAPH,
            )
        return _judge(graph, found, params)


def _judge(graph: ColouredGraph, found: Fit, params: Params) -> CheckResult:
    if any(abs(slope) < _FLAT for slope, _ in found.lines):
        return _flat(graph)
    if found.varies > _VARIES:
        return _from_arguments(graph, params)
    wanted = right(params.mean, params.std)
    off = error(found.lines, wanted)
    details = _details(graph, found.lines, off) | {"residual": round(min(found.residual, 1e9), 3)}
    if off <= params.tolerance and found.residual <= _BENT:
        return passed(
            f"{_WORD}.ok",
            f"Images of one colour came out of `{graph.name}` as mean {_shown(params.mean)} and std "
            f"{_shown(params.std)} make them, to within {off:.2f} of 255 grey levels "
            f"(at most {params.tolerance:g} were allowed).",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    return _mistaken(graph, found.lines, off, params, details, bent=found.residual > _BENT)


def _mistaken(
    graph: ColouredGraph, lines: tuple[Line, ...], off: float, params: Params, details: dict[str, object], *, bent: bool
) -> CheckResult:
    code, distance = nearest(lines, params.mean, params.std)
    means, deviations = measured(lines)
    where = _where(graph)
    seen = (
        f"Measured on images of one colour, `{graph.name}`{where} applies mean {means} and std {deviations} "
        "(scale 0..1)"
    )
    wanted = f"wanted were mean {_shown(params.mean)} and std {_shown(params.std)}"
    if distance <= max(_NEAR, params.tolerance) and not bent:
        return failed(f"{_WORD}.{code}", f"{seen}; {wanted}: {_TEXTS[code]}", tier=Tier.GRAPH, details=details)
    if bent:
        return failed(
            f"{_WORD}.not_linear",
            f"The images of `{graph.name}`{where} are not a straight-line function of the colours that went in: dark "
            f"or bright values are cut off, or changed otherwise; {wanted}. Normalise to a floating type "
            "(dtype=types.FLOAT), after every change of colours.",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    return failed(
        f"{_WORD}.other",
        f"{seen}; {wanted}. That is up to {min(off, 1e6):.1f} of 255 grey levels apart; at most "
        f"{params.tolerance:g} were "
        "allowed.",
        tier=Tier.GRAPH, details=details,
    )  # fmt: skip


def _flat(graph: ColouredGraph) -> CheckResult:
    own = "Normalize" in graph.operators
    return failed(
        f"{_WORD}.{'per_image' if own else 'constant'}",
        f"A channel of `{graph.name}`{_where(graph)} has the same values for pictures of different greys. "
        + (
            "fn.normalize without mean and stddev uses each image's own statistics, so brightness is lost. Give it the "
            "data set's mean and std, or use fn.crop_mirror_normalize."
            if own
            else "What the pipeline returns should depend on the decoded images."
        ),
        tier=Tier.GRAPH,
    )


def _from_arguments(graph: ColouredGraph, params: Params) -> CheckResult:
    """For a graph that changes colours at random: what its normalising operator says."""
    lines = [(operator, written(operator)) for operator in graph.normalisers]
    stated = [(operator, own) for operator, own in lines if own is not None]
    if len(stated) != 1 or len(lines) != 1:
        return undecided(
            Outcome.UNVERIFIED,
            f"{_WORD}.colours_vary",
            f"`{graph.name}` changes colours at random, so its mean and std cannot be measured, and it has no single "
            "fn.crop_mirror_normalize with numbers that could be read instead. Normalise in one place with "
            "fn.crop_mirror_normalize(mean=..., std=...).",
            tier=Tier.GRAPH,
        )
    operator, own = stated[0]
    off = error(own, right(params.mean, params.std))
    details = _details(graph, own, off) | {"from": "arguments"}
    if off <= params.tolerance:
        return passed(
            f"{_WORD}.ok",
            f"`{graph.name}` changes colours at random, so the arguments of {_named(operator)} were read: mean and std "
            "are as wanted.",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    return _mistaken(graph, own, off, params, details, bent=False)


def _details(graph: ColouredGraph, lines: tuple[Line, ...], off: float) -> dict[str, object]:
    means, deviations = measured(lines)
    return {"graph": graph.name, "mean": means, "std": deviations, "grey_levels_off": round(min(off, 1e9), 3)}


def _where(graph: ColouredGraph) -> str:
    """The learner's line of the last normalising operator, where the graph names one."""
    placed = [operator for operator in graph.normalisers if operator.line is not None and operator.file]
    return f" ({_named(placed[-1])})" if placed else ""


def _named(operator: Normaliser) -> str:
    name = {"CropMirrorNormalize": "fn.crop_mirror_normalize", "Normalize": "fn.normalize"}.get(operator.name, "it")
    return f"{name} in {operator.file}, line {operator.line}" if operator.line is not None and operator.file else name


def _shown(values: tuple[float, ...]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"


CHECK = NormalisationCheck()
