"""How many images show the class that their label names, when a class is a grey level."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from checks.observations.colours import correlation

_MOST_SHIFT = 1
"""Labels that count from one are class numbers as well."""


@dataclass(frozen=True)
class Agreement:
    """What the labels of a graph are worth."""

    share: float
    """Of the samples whose image shows the class of its label."""
    correlation: float
    """Between the grey level of the label's class and the image's value, or between their distances from the middle,
    which inverting an image leaves alone; without its sign. Of strangers nearly 0."""
    samples: int
    images_alike: bool
    """All images have the same value, so nothing can be said."""


def agreement(levels: Sequence[int], labels: Sequence[float | None], means: Sequence[float | None]) -> Agreement | None:
    """Compares labels with the classes that the images show; None when the labels are no class numbers.

    What a graph does to a grey level is taken for a straight line, which is found from the labels themselves: those of
    strangers give a flat one, on which every image shows the same class.

    Args:
        levels: grey level of each class.
        labels: one per sample.
        means: one per image, in the same order.
    """
    pairs = [
        (label, mean) for label, mean in zip(labels, means, strict=False) if label is not None and mean is not None
    ]
    if not pairs or len(labels) != len(means):
        return None
    shift = min(label for label, _ in pairs)
    if not all(float(label).is_integer() for label, _ in pairs) or shift not in range(_MOST_SHIFT + 1):
        return None
    classes = [int(label - shift) for label, _ in pairs]
    if max(classes) >= len(levels) or len(set(classes)) < 2:
        return None
    values = [mean for _, mean in pairs]
    if max(values) - min(values) < 1e-6:
        return Agreement(0.0, 0.0, len(pairs), images_alike=True)
    wanted = [float(levels[number]) for number in classes]
    slope, offset = _line(wanted, values)
    shown = [_nearest(levels, slope, offset, value) for value in values]
    fitting = sum(one == other for one, other in zip(shown, classes, strict=True))
    folded = correlation(_folded(wanted, 127.5), _folded(values, (max(values) + min(values)) / 2))
    related = max(abs(correlation(wanted, values)), abs(folded))
    return Agreement(fitting / len(pairs), related, len(pairs), images_alike=False)


def _nearest(levels: Sequence[int], slope: float, offset: float, value: float) -> int:
    return min(range(len(levels)), key=lambda number: abs(slope * levels[number] + offset - value))


def _folded(values: Sequence[float], middle: float) -> list[float]:
    return [abs(value - middle) for value in values]


def _line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Through the middle: the median of the slopes between samples of different classes (Theil and Sen)."""
    slopes = sorted(
        (ys[j] - ys[i]) / (xs[j] - xs[i]) for i in range(len(xs)) for j in range(i + 1, len(xs)) if xs[i] != xs[j]
    )
    slope = slopes[len(slopes) // 2] if slopes else 0.0
    rests = sorted(y - slope * x for x, y in zip(xs, ys, strict=True))
    return (slope, rests[len(rests) // 2]) if math.isfinite(slope) else (0.0, 0.0)
