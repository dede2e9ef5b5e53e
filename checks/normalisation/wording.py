"""Words for what mean and standard deviation a graph applies, and which were wanted."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from checks.normalisation.fit import Line, measured
from checks.operator_names import fn_name, where
from checks.output_contract.colours import ColouredGraph, Normaliser
from checks.output_contract.wording import decoded
from grader_service.model.feedback import Feedback, NextStep

_OF_FILES = "for images of 0 to 255:"
MISTAKES: Mapping[str, tuple[str, str]] = {
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
    "mean_scale_01": (
        "subtracts no mean, or one in the scale 0..1, from images of 0 to 255",
        "Multiply mean by 255:",
    ),
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


class Wanted(NamedTuple):
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
        return ", ".join(
            f"{name}={_shown([255 * value for value in values])}"
            for name, values in (("mean", self.mean), ("std", self.std))
        )

    @property
    def step(self) -> str:
        """The whole operator."""
        return f"images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, {self.arguments})"


def mistake(found: tuple[str, str], graph: ColouredGraph, lines: Sequence[Line], wanted: Wanted) -> Feedback:
    """Feedback for one of `MISTAKES`."""
    what, action = found
    return Feedback(
        outcome=f"`{graph.name}` {what}.",
        seen=_applied(graph, lines),
        wanted=wanted.text,
        next=NextStep(text=action, code=wanted.arguments),
    )


def other(graph: ColouredGraph, lines: Sequence[Line], off: float, wanted: Wanted) -> Feedback:
    """Feedback for statistics that belong to no usual mistake."""
    off = math.ceil(10 * min(1e6, off)) / 10  # upwards, so that it is never shown as what is allowed
    return Feedback(
        outcome=f"`{graph.name}` normalises up to {off:g} grey levels off; {wanted.tolerance:g} are allowed.",
        seen=_applied(graph, lines),
        wanted=wanted.text,
        next=NextStep(text=f"Write the wanted ones, {_OF_FILES}", code=wanted.arguments),
        numbers={"grey_levels_off": off, "allowed": wanted.tolerance},
    )


def not_linear(graph: ColouredGraph, wanted: Wanted) -> Feedback:
    """Feedback for values that do not lie on a straight line."""
    return Feedback(
        outcome=f"`{graph.name}` cuts off dark or bright values, or changes them otherwise than by mean and "
        f"std{_where(graph)}.",
        wanted=wanted.text,
        next=NextStep(text="Normalise last, to a floating type:", code=wanted.step),
    )


def per_image(graph: ColouredGraph, wanted: Wanted) -> Feedback:
    """Feedback for fn.normalize without statistics."""
    return Feedback(
        outcome=f"`{graph.name}` normalises each image by its own mean and std, so brightness is lost.",
        seen=f"Pictures of different greys came out the same{_where(graph)}.",
        wanted=wanted.text,
        next=NextStep(text="Use the same statistics for all images:", code=wanted.step),
    )


def constant(graph: ColouredGraph) -> Feedback:
    """Feedback for a channel that says nothing of the image."""
    return Feedback(
        outcome=f"A channel of `{graph.name}` has the same values for pictures of different greys{_where(graph)}.",
        next=NextStep(text="Return what the operators make of the decoded images."),
    )


def no_images(graph: ColouredGraph) -> Feedback:
    """Feedback where nothing can be normalised."""
    return Feedback(
        outcome=f"No output of `{graph.name}` holds images with channels.",
        next=NextStep(text="Return the decoded images, normalised:", code="return images, labels"),
    )


def not_finite(graph: ColouredGraph) -> Feedback:
    """Feedback for values that cannot be measured."""
    return Feedback(
        outcome=f"`{graph.name}` gives NaN, infinite values, or neither 1 nor 3 channels, for pictures of one colour.",
        next=NextStep(
            text="Check that no std is 0, and decode to three channels:",
            code=decoded("RGB"),
        ),
    )


def colours_vary(graph: ColouredGraph, wanted: Wanted) -> Feedback:
    """Feedback where random colours hide what is wanted."""
    return Feedback(
        outcome=f"Mean and std of `{graph.name}` cannot be measured, because its colours change at random, so nothing "
        "is counted.",
        seen="It has no single normalising operator with numbers to read instead.",
        next=NextStep(text="Normalise in one place, with numbers:", code=wanted.step),
    )


def fits(graph: ColouredGraph, wanted: Wanted, off: float) -> Feedback:
    """Feedback for a pass by values."""
    off = min(math.ceil(100 * off) / 100, wanted.tolerance)
    return Feedback(
        outcome=f"`{graph.name}` normalises its images by the wanted mean and std.",
        seen=f"Images of one colour came out within {off:g} of 255 grey levels; {wanted.tolerance:g} are allowed.",
        wanted=wanted.text,
        numbers={"grey_levels_off": off, "allowed": wanted.tolerance},
    )


def arguments_fit(graph: ColouredGraph, operator: Normaliser, wanted: Wanted) -> Feedback:
    """Feedback for a pass by what the graph says."""
    return Feedback(
        outcome=f"`{graph.name}` normalises its images by the wanted mean and std.",
        seen=f"Its colours change at random, so the arguments of {_named(operator)} were read.",
        wanted=wanted.text,
    )


def _applied(graph: ColouredGraph, lines: Sequence[Line]) -> str:
    """What the graph applies, and the learner's line of its last normalising operator."""
    means, deviations = measured(lines)
    return f"It applies mean {_shown(means)}, std {_shown(deviations)}{_where(graph)}."


def _where(graph: ColouredGraph) -> str:
    placed = [operator for operator in graph.normalisers if operator.line is not None and operator.file]
    return f" ({_named(placed[-1])})" if placed else ""


def _named(operator: Normaliser) -> str:
    return f"{fn_name(operator.name)}{where(operator.file, operator.line)}"


def _shown(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value + 0.0:.6g}' for value in values)}]"
