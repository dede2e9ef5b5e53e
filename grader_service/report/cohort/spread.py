"""Summaries of many numbers: quantiles, equal bins and the interval of a share; pure."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from grader_service.regrade.flakes import wilson


class Share(NamedTuple):
    """So many of so many, with the 95 % Wilson interval of the share."""

    part: int
    whole: int
    low: float
    high: float

    @property
    def value(self) -> float | None:
        """From 0 to 1; null where there is nothing to take a share of."""
        return self.part / self.whole if self.whole else None


def share(part: int, whole: int) -> Share:
    """The share of so many; from 0 to 1 where there is nothing to take it of."""
    return Share(part, whole, *wilson(part, whole))


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which this fraction of the sorted values lies, interpolated; needs at least one value."""
    place = fraction * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class Summary(NamedTuple):
    """Five quantiles and the mean of so many values."""

    size: int
    mean: float
    low: float
    """A twentieth lies below."""
    first: float
    median: float
    third: float
    high: float
    """A twentieth lies above."""


def summary(values: Iterable[float]) -> Summary | None:
    """Null where there are no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    low, first, median, third, high = (quantile(ordered, part) for part in (0.05, 0.25, 0.5, 0.75, 0.95))
    return Summary(len(ordered), math.fsum(ordered) / len(ordered), low, first, median, third, high)


def binned(values: Iterable[float], top: float, bins: int) -> list[int]:
    """How many values lie in each of so many equal bins from 0 to `top`; both ends belong to a bin."""
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, math.floor(value / top * bins + 1e-9)))] += 1
    return counts
