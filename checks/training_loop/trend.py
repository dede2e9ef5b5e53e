"""Whether a series of losses falls, told from noise; pure statistics."""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

_MOST = 600
"""Values compared pair by pair; more are averaged in runs."""


class Trend(NamedTuple):
    """What a series does."""

    first: float
    """Median of the first third."""
    last: float
    """Median of the last third."""
    p: float
    """One-sided p-value of the Mann-Kendall test: how often a series without a trend falls as clearly."""

    def falls(self, margin: float, significance: float) -> bool:
        """Whether it ends lower by a share `margin` of its beginning, and not by chance."""
        return self.first - self.last > margin * abs(self.first) and self.p < significance


def trend_of(values: Sequence[float]) -> Trend:
    """The trend of at least three finite values."""
    third = max(1, len(values) // 3)
    return Trend(median(values[:third]), median(values[-third:]), _mann_kendall(_thinned(values)))


def _thinned(values: Sequence[float]) -> list[float]:
    size = math.ceil(len(values) / _MOST)
    return [sum(values[at : at + size]) / len(values[at : at + size]) for at in range(0, len(values), size)]


def _mann_kendall(values: Sequence[float]) -> float:
    """One-sided p-value against a fall, with the correction for ties (Kendall 1975)."""
    array = np.asarray(values, np.float64)
    count = len(array)
    statistic = float(sum(np.sign(array[at + 1 :] - array[at]).sum() for at in range(count - 1)))
    _, ties = np.unique(array, return_counts=True)
    variance = count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    if variance <= 0:
        return 1.0
    z = (statistic + (1 if statistic < 0 else 0)) / math.sqrt(variance / 18)
    return 0.5 * math.erfc(-z / math.sqrt(2))
