"""What the probe `constant_colours` observed: values of one-colour images, and the axis of their channels."""

import statistics
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from checks.not_carried import first_words
from checks.results import Result, unverified
from grader_service.model.base import ShortText, Wire
from grader_service.model.verdict import Tier

Number = Annotated[float, Field(ge=-1e12, le=1e12)]
_Slices = Annotated[tuple[Number | None, ...], Field(max_length=4)]
_Arguments = Annotated[tuple[Number, ...], Field(max_length=4)]
SAME = 0.75
"""Least share of a slice that has its middle value, in a picture of one colour; mixed channels reach two thirds."""
CLEAR = 4.0
"""A channel is that of a colour when it answers so many times more strongly to it than to the others."""
STEADY = 0.02
"""Part of the largest answer by which repeats of one colour may differ before colours count as changed at random."""
RELATED, RELATED_BY = 0.4, 0.2
"""Correlation with a colour, over all samples, that makes a channel its own; and how much more than with others."""
LETTERS = "RGB"


class Axis(Wire):
    """Values along one short axis of the images."""

    axis: Annotated[int, Field(ge=0, le=2)]
    medians: Annotated[
        tuple[Annotated[tuple[_Slices, ...], Field(min_length=1, max_length=8)], ...], Field(max_length=64)
    ]
    """Per colour and repeat, the middle value of each slice; null where it is not finite."""
    shares: Annotated[tuple[Annotated[float, Field(ge=0, le=1)] | None, ...], Field(max_length=64)]
    """Per colour, the share of a slice that is near its middle value; of the repeat where it is largest."""

    @property
    def width(self) -> int:
        """Number of slices."""
        return min((len(repeat) for colour in self.medians for repeat in colour), default=0)

    def values(self, colour: int, channel: int) -> list[float | None]:
        """Of one slice, for each repeat of a colour."""
        repeats = self.medians[colour] if colour < len(self.medians) else ()
        return [repeat[channel] for repeat in repeats if channel < len(repeat)]

    def finite(self, colour: int, channel: int) -> list[float]:
        """Those of them that are finite."""
        return [value for value in self.values(colour, channel) if value is not None]

    def middle(self, colour: int, channel: int) -> float | None:
        """The middle value of one slice over all repeats of a colour; None where a value was not finite."""
        known = self.finite(colour, channel)
        return statistics.median(known) if known and None not in self.values(colour, channel) else None

    def spread(self, colour: int, channel: int) -> float:
        """Difference between the repeats of one colour."""
        known = self.finite(colour, channel)
        return max(known) - min(known) if known else 0.0


class Halves(Wire):
    """Contrast between both ends of each axis."""

    left_right: tuple[Number | None, Number | None, Number | None]
    top_bottom: tuple[Number | None, Number | None, Number | None]


class Image(Wire):
    """One output that holds images."""

    output: Annotated[int, Field(ge=0, le=64)]
    ragged: bool
    axes: Annotated[tuple[Axis, ...], Field(max_length=3)]
    halves: Halves


class Output(Wire):
    """One output of a graph."""

    dtype: ShortText
    shape: Annotated[tuple[Annotated[int, Field(ge=0, le=2**31)], ...], Field(max_length=16)]
    """Of one sample, without the batch."""
    layout: ShortText
    device: ShortText

    @property
    def form(self) -> str:
        """Type and sides of one image, as feedback shows them."""
        return f"{self.dtype} {list(self.shape)}"


class Normaliser(Wire):
    """An operator that subtracts and divides, as the graph says it."""

    name: ShortText
    line: int | None
    file: ShortText
    wired: bool
    mean: _Arguments
    std: _Arguments
    stddev: _Arguments
    scale: _Arguments
    shift: _Arguments


class ColouredGraph(Wire):
    """One carried graph."""

    name: ShortText
    operators: Annotated[tuple[ShortText, ...], Field(max_length=300)]
    normalisers: Annotated[tuple[Normaliser, ...], Field(max_length=8)]
    problem: Annotated[str, Field(max_length=600)]
    outputs: Annotated[tuple[Output, ...], Field(max_length=64)]
    images: Annotated[tuple[Image, ...], Field(max_length=64)]

    @property
    def image(self) -> Image | None:
        """The first that belongs to an output; None where no output holds images."""
        return next((image for image in self.images if image.output < len(self.outputs)), None)


class Colours(Wire):
    """The observations of `constant_colours`."""

    inputs: Annotated[tuple[tuple[Number, Number, Number], ...], Field(min_length=7, max_length=64)]
    """Colours that went in, decoded: greys first, then red, green, blue and others."""
    greys: Annotated[int, Field(ge=2, le=32)]
    graphs: Annotated[tuple[ColouredGraph, ...], Field(max_length=16)]

    def chosen(self, name: str | None) -> ColouredGraph | None:
        """The graph that the lab names, else the best candidate."""
        if name is None:
            return self.graphs[0] if self.graphs else None
        return next((graph for graph in self.graphs if graph.name == name), None)


def stopped(graph: ColouredGraph) -> Result:
    """The result where a graph stopped before its images could be looked at."""
    return unverified(
        "graph_failed",
        f"`{graph.name}` stopped on the grader's images, so nothing is counted.",
        seen=first_words(graph.problem),
        next="Run it on other JPEGs, and check that no crop is larger than an image.",
        tier=Tier.CLAIMS,
    )


def decoded(channels: str) -> str:
    """The line that decodes to this order of channels."""
    return f'images = fn.decoders.image(jpegs, device="mixed", output_type=types.{channels})'


def channel_axis(image: Image, greys: int) -> Axis | None:
    """The axis whose slices each have one value in most pictures of one colour; None when there is none.

    Greys say nothing here: all their channels are equal.
    """
    whole = []
    for axis in image.axes:
        coloured = axis.shares[greys:]
        if 2 * sum(share is not None and share >= SAME for share in coloured) > len(coloured):
            whole.append(axis)
    return max(whole, key=lambda axis: (axis.width == 3, axis.width), default=None)


def order(axis: Axis, colours: Colours) -> str:
    """`RGB`, `BGR` or another order of the channels; `grey` when all of them hold the same.

    `?` when no channel is that of one colour, and `~` when colours vary from sample to sample too much to say.
    """
    if axis.width != 3:
        return "grey" if axis.width == 1 else "?"
    answers = [_answer(axis, channel, colours.greys) for channel in range(3)]
    largest = max(map(max, answers))
    columns = zip(*answers, strict=True)
    if largest > 0 and all(max(column) - min(column) <= 0.1 * largest for column in columns):
        return "grey"  # all channels answer to every colour in the same way
    varies = any(
        axis.spread(number, channel) > STEADY * largest for number in range(len(axis.medians)) for channel in range(3)
    )
    letters = "".join(_related(axis, colours, channel) if varies else _clear(answers[channel]) for channel in range(3))
    return letters if len(set(letters)) == len(letters) == 3 else "~" if varies else "?"


def _answer(axis: Axis, channel: int, greys: int) -> list[float]:
    """How far red, green and blue move the value of a channel away from that of black."""
    black = axis.middle(0, channel)
    pure = [axis.middle(greys + colour, channel) for colour in range(3)]
    return [0.0 if value is None or black is None else abs(value - black) for value in pure]


def _clear(answer: Sequence[float]) -> str:
    """The colour to which a channel answers; empty when there is none that it answers to alone."""
    first, second = sorted(answer, reverse=True)[:2]
    return LETTERS[answer.index(first)] if first > 0 and first >= CLEAR * second else ""


def _related(axis: Axis, colours: Colours, channel: int) -> str:
    """The colour that a channel follows in most samples, where a graph changes colours at random."""
    numbers = range(colours.greys, len(colours.inputs))
    pairs = [(value, colours.inputs[number]) for number in numbers for value in axis.finite(number, channel)]
    values = [value for value, _ in pairs]
    related = [correlation(values, [wanted[place] for _, wanted in pairs]) for place in range(3)]
    first, second = sorted(related, reverse=True)[:2]
    return LETTERS[related.index(first)] if first >= RELATED and first - second >= RELATED_BY else ""


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Pearson's; 0 where it cannot be told."""
    try:
        return statistics.correlation(xs, ys)
    except (statistics.StatisticsError, OverflowError):  # too few values, or all the same
        return 0.0
