"""The check `normalisation`: are mean and standard deviation taken off the images exactly once, in the right scale?"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from checks.api import FromProbe, Result, check, failed, passed, unverified
from checks.dali_operators import row_of
from checks.normalisation.fit import Line, error, fit, measured, nearest, right, written
from checks.observations.colours import ColouredGraph, Colours, Normaliser, channel_axis, decoded, stopped
from checks.operator_names import fn_name, where
from checks.probing import no_such_graph
from grader_service.model.base import ShortText

_VARIES = 4.0
"""Grey levels by which repeats of one colour may differ before the graph counts as changing colours at random."""
_BENT = 6.0
"""Grey levels that a value may lie off the straight line."""
_NEAR = 3.0
_FLAT = 1e-6
_OF_FILES = "for images of 0 to 255:"
_MISTAKES: Mapping[str, tuple[str, str]] = {
    "raw": (
        "does not normalise: its values are those of the files, 0 to 255",
        "Give fn.crop_mirror_normalize mean and std:",
    ),
    "unit_range": (
        "only scales its values to 0..1, and does not normalise them",
        "Give mean and std in place of the division by 255:",
    ),
    "minus_one_to_one": (
        "scales its values to -1..1, which is another mean and std than wanted",
        f"Write the wanted ones, {_OF_FILES}",
    ),
    "scale_01": ("takes mean and std in the scale 0..1, and its images are 0 to 255", "Multiply both by 255:"),
    "mean_scale_01": ("subtracts no mean, or one in the scale 0..1, from images of 0 to 255", "Multiply mean by 255:"),
    "std_scale_01": ("divides images of 0 to 255 by a std in the scale 0..1", "Multiply std by 255:"),
    "std_missing": ("subtracts the mean and does not divide by std", f"Give std too, {_OF_FILES}"),
    "mean_missing": ("divides by std and does not subtract the mean", f"Give mean too, {_OF_FILES}"),
    "bgr_stats": (
        "applies the statistics of red to blue, and those of blue to red",
        "Write both in the channel order of the images; for RGB:",
    ),
    "twice": ("normalises its images twice", f"Keep one place, {_OF_FILES}"),
}
"""Last word of the code → what the graph does, and what to do about it."""
_Std = Annotated[float, Field(gt=1e-6)]


class _Wanted(NamedTuple):
    """What the lab asks for, in the scale 0..1."""

    mean: Sequence[float]
    std: Sequence[float]
    tolerance: float
    """Grey levels of 255."""

    @property
    def text(self) -> str:
        """Both as a sentence."""
        return f"Wanted (scale 0..1): mean {_shown(self.mean)}, std {_shown(self.std)}."

    @property
    def arguments(self) -> str:
        """Both as arguments for images of 0 to 255."""
        mean, std = ([255 * value for value in values] for values in (self.mean, self.std))
        return f"mean={_shown(mean)}, std={_shown(std)}"

    @property
    def step(self) -> str:
        """The whole operator."""
        return f"images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, {self.arguments})"


@check(
    version="1.1.0",
    title="Normalisation of the images",
    codes={code: f"the graph {does.replace(':', ',')}" for code, (does, _) in _MISTAKES.items()},
)
def normalisation(
    seen: Annotated[Colours, FromProbe("constant_colours")],
    *,
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406),
    std: tuple[_Std, _Std, _Std] = (0.229, 0.224, 0.225),
    tolerance: Annotated[float, Field(gt=0, le=128)] = 2.5,
    graph: ShortText | None = None,
) -> Result:
    """Judges mean and standard deviation per channel, from what the learner's graph makes of images of one colour.

    Evidence:
        probe `constant_colours`: middle values of nine greys and seven colours, three times each, from the learner's
            graph in a pod of ours. Per channel a straight line is fitted; its two numbers are mean and std.
    Points: all or nothing.
    Errors: 0 false accepts on 16 failing and 0 false rejects on 12 passing controls in
        `tests/checks/graphs/test_normalisation.py`; every failing control gets the name of its own mistake.
    Cannot detect: what is done to the values after the pipeline. Where the graph changes colours at random, the
        arguments of its own fn.crop_mirror_normalize or fn.normalize are read instead of its values, and a second
        normalisation somewhere else in it is not seen.

    Args:
        mean: What the lab wants; the scale of both is 0..1, as torchvision writes it.
        std: Red, green, blue.
        tolerance: Grey levels (of 255) by which the result may differ anywhere between black and white.
        graph: Variable of the pipeline or iterator; the one that is measured if absent.
    """
    found = seen.chosen(graph)
    if found is None:
        return no_such_graph(graph)
    if found.problem:
        return stopped(found)
    image = found.image
    if image is None or not image.axes:
        return failed(
            "no_images",
            f"No output of `{found.name}` holds images with channels.",
            next="Return the decoded images, normalised:",
            write="return images, labels",
        )
    fitted = fit(channel_axis(image, seen.greys) or image.axes[0], seen)
    if fitted is None:
        return failed(
            "not_finite",
            f"`{found.name}` gives NaN, infinite values, or neither 1 nor 3 channels, for pictures of one colour.",
            next="Check that no std is 0, and decode to three channels:",
            write=decoded("RGB"),
        )
    wanted = _Wanted(mean, std, tolerance)
    if any(abs(slope) < _FLAT for slope, _ in fitted.lines):
        return _flat(found, wanted)
    if fitted.varies > _VARIES:
        return _from_arguments(found, wanted)
    off = error(fitted.lines, right(mean, std))
    details = _details(found, fitted.lines, off) | {"residual": round(min(fitted.residual, 1e9), 3)}
    if fitted.residual > _BENT:
        return failed(
            "not_linear",
            f"`{found.name}` cuts off dark or bright values, or changes them otherwise than by mean and "
            f"std{_where(found)}.",
            wanted=wanted.text,
            next="Normalise last, to a floating type:",
            write=wanted.step,
            details=details,
        )
    if off <= tolerance:
        shown = min(math.ceil(100 * off) / 100, tolerance)
        return passed(
            f"`{found.name}` normalises its images by the wanted mean and std.",
            seen=f"Images of one colour came out within {shown:g} of 255 grey levels; {tolerance:g} are allowed.",
            wanted=wanted.text,
            numbers={"grey_levels_off": shown, "allowed": tolerance},
            details=details,
        )
    return _mistaken(found, fitted.lines, off, wanted, details)


def _flat(graph: ColouredGraph, wanted: _Wanted) -> Result:
    """A channel has one value, however bright a picture is."""
    if any(row_of(name).normalises == "by_content" for name in graph.operators):  # without statistics
        return failed(
            "per_image",
            f"`{graph.name}` normalises each image by its own mean and std, so brightness is lost.",
            seen=f"Pictures of different greys came out the same{_where(graph)}.",
            wanted=wanted.text,
            next="Use the same statistics for all images:",
            write=wanted.step,
        )
    outcome = f"A channel of `{graph.name}` has the same values for pictures of different greys{_where(graph)}."
    return failed("constant", outcome, next="Return what the operators make of the decoded images.")


def _from_arguments(graph: ColouredGraph, wanted: _Wanted) -> Result:
    """For a graph that changes colours at random: what its normalising operator says."""
    operator = graph.normalisers[0] if len(graph.normalisers) == 1 else None
    lines = written(operator) if operator is not None else None
    if operator is None or lines is None:
        return unverified(
            "colours_vary",
            f"Mean and std of `{graph.name}` cannot be measured, because its colours change at random, so nothing is "
            "counted.",
            seen="It has no single normalising operator with numbers to read instead.",
            next="Normalise in one place, with numbers:",
            write=wanted.step,
        )
    off = error(lines, right(wanted.mean, wanted.std))
    details = _details(graph, lines, off) | {"from": "arguments"}
    if off <= wanted.tolerance:
        return passed(
            f"`{graph.name}` normalises its images by the wanted mean and std.",
            seen=f"Its colours change at random, so the arguments of {_named(operator)} were read.",
            wanted=wanted.text,
            details=details,
        )
    return _mistaken(graph, lines, off, wanted, details)


def _mistaken(
    graph: ColouredGraph, lines: Sequence[Line], off: float, wanted: _Wanted, details: Mapping[str, object]
) -> Result:
    """Mean or std are others than wanted: by a usual mistake, or not."""
    means, deviations = measured(lines)
    seen = f"It applies mean {_shown(means)}, std {_shown(deviations)}{_where(graph)}."
    code, distance = nearest(lines, wanted.mean, wanted.std)
    if distance <= max(_NEAR, wanted.tolerance):
        does, action = _MISTAKES[code]
        outcome, write = f"`{graph.name}` {does}.", wanted.arguments
        return failed(code, outcome, seen=seen, wanted=wanted.text, next=action, write=write, details=details)
    off = math.ceil(10 * min(1e6, off)) / 10  # upwards, so that it is never shown as what is allowed
    return failed(
        "other",
        f"`{graph.name}` normalises up to {off:g} grey levels off; {wanted.tolerance:g} are allowed.",
        seen=seen,
        wanted=wanted.text,
        next=f"Write the wanted ones, {_OF_FILES}",
        write=wanted.arguments,
        numbers={"grey_levels_off": off, "allowed": wanted.tolerance},
        details=details,
    )


def _details(graph: ColouredGraph, lines: Sequence[Line], off: float) -> dict[str, object]:
    means, deviations = measured(lines)
    return {"graph": graph.name, "mean": means, "std": deviations, "grey_levels_off": round(min(off, 1e9), 3)}


def _where(graph: ColouredGraph) -> str:
    """The learner's line of its last normalising operator."""
    placed = [operator for operator in graph.normalisers if operator.line is not None and operator.file]
    return f" ({_named(placed[-1])})" if placed else ""


def _named(operator: Normaliser) -> str:
    return f"{fn_name(operator.name)}{where(operator.file, operator.line)}"


def _shown(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value + 0.0:.6g}' for value in values)}]"
