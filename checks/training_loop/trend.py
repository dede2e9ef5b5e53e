"""Whether a series of losses falls, told from noise; pure statistics."""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

_MOST = 600
"""Values compared pair by pair; more are averaged in runs."""
_Z = 1.645
"""Of the normal distribution: limits between which the slope lies with a confidence of 90 %."""
PLAIN_FALL = 0.25
"""Share of the first losses. Training that works falls by more; noise that could hide as much as this hides it all."""


class Trend(NamedTuple):
    """What a series does."""

    first: float
    """Median of the first third."""
    last: float
    """Median of the last third."""
    p: float
    """One-sided p-value of the Mann-Kendall test: how often a series without a trend falls as clearly."""
    low: float = 0.0
    """With 90 % confidence the series changes by at least so much from its first value to its last ..."""
    high: float = 0.0
    """... and by at most so much."""

    def falls(self, margin: float, significance: float) -> bool:
        """Whether it ends lower by a share `margin` of its beginning, and not by chance."""
        return self.first - self.last > margin * abs(self.first) and self.p < significance

    def is_hidden(self, margin: float) -> bool:
        """Whether noise allows both: that it does not fall, and that it falls by a quarter, and by `margin`."""
        return self.high >= 0 and -self.low > max(PLAIN_FALL, margin) * abs(self.first)


def trend_of(values: Sequence[float]) -> Trend:
    """The trend of at least three finite values."""
    third = max(1, len(values) // 3)
    return Trend(median(values[:third]), median(values[-third:]), *_mann_kendall(_thinned(values)))


def _thinned(values: Sequence[float]) -> list[float]:
    size = math.ceil(len(values) / _MOST)
    return [sum(values[at : at + size]) / len(values[at : at + size]) for at in range(0, len(values), size)]


def _mann_kendall(values: Sequence[float]) -> tuple[float, float, float]:
    """One-sided p-value against a fall, with the correction for ties (Kendall 1975), and limits of the change.

    The limits are those of the median slope between two values (Sen 1968), times the length; like the test, they ask
    for no distribution of the noise.
    """
    array = np.asarray(values, np.float64)
    count = len(array)
    one, other = np.triu_indices(count, 1)
    differences = array[other] - array[one]
    statistic = float(np.sign(differences).sum())
    _, ties = np.unique(array, return_counts=True)
    variance = count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    deviation = math.sqrt(max(0.0, variance) / 18)
    slopes = np.sort(differences / (other - one))
    within = _Z * deviation
    low = slopes[max(0, math.floor((len(slopes) - within) / 2))]
    high = slopes[min(len(slopes) - 1, math.ceil((len(slopes) + within) / 2))]
    z = (statistic + (1 if statistic < 0 else 0)) / deviation if deviation > 0 else math.inf
    return 0.5 * math.erfc(-z / math.sqrt(2)), float(low) * (count - 1), float(high) * (count - 1)
