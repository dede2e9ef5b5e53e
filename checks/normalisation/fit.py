"""Reads the straight line from input to output of each channel, and which known way of normalising it belongs to.

Lines are (A, B) with `output = A * x + B`, where x is the input's value divided by 255.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from checks.observations.colours import LETTERS, Axis, Colours, Normaliser, order

Line = tuple[float, float]


class Fit(NamedTuple):
    """What the values of a graph say."""

    lines: tuple[Line, ...]
    """Per channel of the input: red, green, blue."""
    residual: float
    """Largest distance of a value from its line, in grey levels."""
    varies: float
    """Largest difference between repeats of one colour, in grey levels."""


def fit(axis: Axis, colours: Colours) -> Fit | None:
    """The lines of all channels through the greys; None when values are missing or not finite."""
    inputs = [colour[0] / 255.0 for colour in colours.inputs[: colours.greys]]
    lines: list[Line] = []
    residual = varies = 0.0
    for channel in range(axis.width):
        values = [axis.middle(number, channel) for number in range(len(inputs))]
        known = [value for value in values if value is not None]
        if len(known) < len(inputs) or len(set(inputs)) < 2:
            return None
        line = statistics.linear_regression(inputs, known)
        lines.append(line)
        size = abs(line[0]) or math.inf
        far = max(abs(line[0] * x + line[1] - y) for x, y in zip(inputs, known, strict=True))
        residual = max(residual, 255.0 * far / size)
        shake = max((axis.spread(number, channel) for number in range(len(axis.medians))), default=0.0)
        varies = max(varies, 255.0 * shake / size)
    if len(lines) not in (1, 3):
        return None
    return Fit(_by_input(lines, order(axis, colours)), residual, varies)


def written(operator: Normaliser) -> tuple[Line, ...] | None:
    """The lines that an operator's own arguments give; None when they are not all numbers in the graph."""
    means, deviations = _three(operator.mean), _three(operator.std or operator.stddev)
    scale, shift = (operator.scale or (1.0,))[0], (operator.shift or (0.0,))[0]
    if means is None or deviations is None or 0.0 in deviations:
        return None
    pairs = zip(means, deviations, strict=True)
    return tuple((255.0 * scale / std, shift - mean * scale / std) for mean, std in pairs)


def error(lines: Sequence[Line], wanted: Sequence[Line]) -> float:
    """Largest distance between two sets of lines over the whole range, in grey levels of the wanted one."""
    worst = 0.0
    for (a, b), (slope, offset) in zip(lines, wanted, strict=True):
        distance = max(abs(b - offset), abs(a + b - slope - offset))
        worst = max(worst, 255.0 * distance / (abs(slope) or 1e-12))
    return worst


def right(mean: Sequence[float], std: Sequence[float]) -> tuple[Line, ...]:
    """The lines of (x - mean) / std, both in the scale 0..1."""
    return tuple((1.0 / s, -m / s) for m, s in zip(mean, std, strict=True))


def nearest(lines: Sequence[Line], mean: Sequence[float], std: Sequence[float]) -> tuple[str, float]:
    """The typical mistake whose lines are nearest, and how near they are."""
    distance, code = min((error(lines, wrong), code) for code, wrong in _mistakes(mean, std))
    return code, distance


def measured(lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation, in the scale 0..1, that the lines stand for."""
    means = [round(-b / a, 4) if a else 0.0 for a, b in lines]
    return means, [round(1.0 / a, 4) if a else 0.0 for a, _ in lines]


def _mistakes(mean: Sequence[float], std: Sequence[float]) -> list[tuple[str, tuple[Line, ...]]]:
    pairs = list(zip(mean, std, strict=True))
    return [
        ("raw", ((255.0, 0.0),) * 3),
        ("unit_range", ((1.0, 0.0),) * 3),
        ("minus_one_to_one", ((2.0, -1.0),) * 3),
        ("scale_01", tuple((255 / s, -m / s) for m, s in pairs)),
        ("mean_scale_01", tuple((1 / s, -m / (255 * s)) for m, s in pairs)),
        ("std_scale_01", tuple((255 / s, -255 * m / s) for m, s in pairs)),
        ("std_missing", tuple((1.0, -m) for m, _ in pairs)),
        ("std_missing", tuple((255.0, -255 * m) for m, _ in pairs)),
        ("mean_missing", tuple((1 / s, 0.0) for _, s in pairs)),
        ("bgr_stats", right(mean[::-1], std[::-1])),
        ("twice", tuple((1 / (s * s), -m / (s * s) - m / s) for m, s in pairs)),
        ("twice", tuple((1 / (255 * s * s), -m / (255 * s * s) - m / s) for m, s in pairs)),
    ]


def _by_input(lines: list[Line], letters: str) -> tuple[Line, ...]:
    """Channels of the output in the order red, green, blue; as they come where that is not known."""
    if len(lines) == 1:
        return tuple(lines * 3)
    if sorted(letters) != sorted(LETTERS):
        return tuple(lines)
    return tuple(lines[letters.index(letter)] for letter in LETTERS)


def _three(values: Sequence[float]) -> Sequence[float] | None:
    if len(values) == 1:
        return [values[0]] * 3
    return values if len(values) == 3 else None
