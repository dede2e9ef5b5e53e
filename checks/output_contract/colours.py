"""What the probe `constant_colours` observed: values of one-colour images, and the axis of their channels."""

import statistics
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from grader_service.model.base import ShortText, Wire

Number = Annotated[float, Field(ge=-1e12, le=1e12)]
Dimension = Annotated[int, Field(ge=0, le=2**31)]
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
        tuple[
            Annotated[
                tuple[Annotated[tuple[Number | None, ...], Field(max_length=4)], ...], Field(min_length=1, max_length=8)
            ],
            ...,
        ],
        Field(max_length=64),
    ]
    """Per colour and repeat, the middle value of each slice; null where it is not finite."""
    shares: Annotated[tuple[Annotated[float, Field(ge=0, le=1)] | None, ...], Field(max_length=64)]
    """Per colour, the share of a slice that is near its middle value; of the repeat where it is largest."""


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
    shape: Annotated[tuple[Dimension, ...], Field(max_length=16)]
    """Of one sample, without the batch."""
    layout: ShortText
    device: ShortText


class Normaliser(Wire):
    """An operator that subtracts and divides, as the graph says it."""

    name: ShortText
    line: int | None
    file: ShortText
    wired: bool
    mean: Annotated[tuple[Number, ...], Field(max_length=4)]
    std: Annotated[tuple[Number, ...], Field(max_length=4)]
    stddev: Annotated[tuple[Number, ...], Field(max_length=4)]
    scale: Annotated[tuple[Number, ...], Field(max_length=4)]
    shift: Annotated[tuple[Number, ...], Field(max_length=4)]


class ColouredGraph(Wire):
    """One carried graph."""

    name: ShortText
    operators: Annotated[tuple[ShortText, ...], Field(max_length=300)]
    normalisers: Annotated[tuple[Normaliser, ...], Field(max_length=8)]
    problem: Annotated[str, Field(max_length=600)]
    outputs: Annotated[tuple[Output, ...], Field(max_length=64)]
    images: Annotated[tuple[Image, ...], Field(max_length=64)]


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


def channel_axis(image: Image, greys: int) -> Axis | None:
    """The axis whose slices each have one value in most pictures of one colour; None when there is none.

    Greys say nothing here: all their channels are equal.
    """
    whole = []
    for axis in image.axes:
        coloured = axis.shares[greys:]
        if 2 * sum(share is not None and share >= SAME for share in coloured) > len(coloured):
            whole.append(axis)
    return max(whole, key=lambda axis: (width(axis) == 3, width(axis)), default=None)


def width(axis: Axis) -> int:
    """Number of slices."""
    return min((len(repeat) for colour in axis.medians for repeat in colour), default=0)


def middle(axis: Axis, colour: int, channel: int) -> float | None:
    """The middle value of one slice over all repeats of a colour; None where a value was not finite."""
    if colour >= len(axis.medians):
        return None
    values = [repeat[channel] for repeat in axis.medians[colour] if channel < len(repeat)]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None


def spread(axis: Axis, colour: int, channel: int) -> float:
    """Difference between the repeats of one colour."""
    values = [repeat[channel] for repeat in axis.medians[colour] if channel < len(repeat)]
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else 0.0


def order(axis: Axis, colours: Colours) -> str:
    """`RGB`, `BGR` or another order of the channels; `grey` when all of them hold the same.

    `?` when no channel is that of one colour, and `~` when colours vary from sample to sample too much to say.
    """
    if width(axis) != 3:
        return "grey" if width(axis) == 1 else "?"
    answers = _responses(axis, colours.greys)
    if _alike(answers):
        return "grey"
    varies = any(
        spread(axis, number, channel) > STEADY * max(map(max, answers))
        for number in range(len(axis.medians))
        for channel in range(3)
    )
    letters = "".join(_related(axis, colours, channel) if varies else _clear(answers[channel]) for channel in range(3))
    return letters if len(set(letters)) == len(letters) == 3 else "~" if varies else "?"


def _responses(axis: Axis, greys: int) -> list[list[float]]:
    """Per channel, how far red, green and blue move its value away from that of black."""
    found = []
    for channel in range(3):
        black = middle(axis, 0, channel)
        pure = [middle(axis, greys + colour, channel) for colour in range(3)]
        found.append([0.0 if value is None or black is None else abs(value - black) for value in pure])
    return found


def _clear(answer: Sequence[float]) -> str:
    """The colour to which a channel answers; empty when there is none that it answers to alone."""
    first, second = sorted(answer, reverse=True)[:2]
    return LETTERS[answer.index(first)] if first > 0 and first >= CLEAR * second else ""


def _related(axis: Axis, colours: Colours, channel: int) -> str:
    """The colour that a channel follows in most samples, where a graph changes colours at random."""
    values, inputs = [], []
    for colour, wanted in zip(axis.medians[colours.greys :], colours.inputs[colours.greys :], strict=False):
        for repeat in colour:
            value = repeat[channel] if channel < len(repeat) else None
            if value is not None:
                values.append(value)
                inputs.append(wanted)
    related = [_correlation(values, [wanted[place] for wanted in inputs]) for place in range(3)]
    first, second = sorted(related, reverse=True)[:2]
    return LETTERS[related.index(first)] if first >= RELATED and first - second >= RELATED_BY else ""


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    try:
        return statistics.correlation(xs, ys)
    except (statistics.StatisticsError, OverflowError):  # too few values, or all the same
        return 0.0


def _alike(answers: Sequence[Sequence[float]]) -> bool:
    """Whether all channels answer to every colour in the same way."""
    largest = max(map(max, answers))
    columns = zip(*answers, strict=True)
    return largest > 0 and all(max(column) - min(column) <= 0.1 * largest for column in columns)
