"""Ends and ticks of the plots' axes; pure."""

import math
from typing import NamedTuple

from grader_service.report.shown import Shown

_FAR_INTERVAL, _FAR_BLOCK = 3.0, 1.25
"""A wide interval, or a block that was not counted, widens the axis by these factors at most."""


class Span(NamedTuple):
    """Two ends of an axis."""

    low: float
    high: float


def ratio_span(shown: Shown) -> Span:
    """Ends of the ratio axis: every counted block and the threshold lie well inside."""
    counted = [row.ratio for row in shown.rows if row.counted]
    others = [row.ratio for row in shown.rows if not row.counted]
    anchors = [*(counted or others), *([shown.threshold] if shown.threshold is not None else [1.0])]
    low, high = min(anchors), max(anchors)
    least, most = low, high
    if shown.decision is not None:
        interval = shown.decision.interval
        least = min(low, max(interval.low, low / _FAR_INTERVAL))
        most = max(high, min(interval.high, high * _FAR_INTERVAL))
    low = min([least, *(max(ratio, low / _FAR_BLOCK) for ratio in others)])
    high = max([most, *(min(ratio, high * _FAR_BLOCK) for ratio in others)])
    margin = max((high / low) ** 0.06, 1.02)
    return Span(low / margin, high * margin)


def ratio_ticks(span: Span) -> list[float]:
    """Round ratios inside the span, about five of them."""
    if span.high / span.low < 3:  # below this even steps look even on a log axis too
        return even_ticks(span)
    return decade_ticks(span)


def even_ticks(span: Span) -> list[float]:
    """Multiples of a round step inside the span, three to seven of them."""
    raw = (span.high - span.low) / 6
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= raw)
    first = math.ceil(span.low / step - 1e-9)
    last = math.floor(span.high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def decade_ticks(span: Span) -> list[float]:
    """1, 2 and 5 times powers of ten inside the span; fewer of them where it is wide."""
    first, last = math.floor(math.log10(span.low)), math.ceil(math.log10(span.high))
    for factors in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [
            float(f"{factor * 10.0**power:.6g}")
            for power in range(first, last + 1)
            for factor in factors
            if span.low <= factor * 10.0**power <= span.high
        ]
        if len(ticks) <= 7:  # what fits on a phone
            return ticks
    return ticks[:: math.ceil(len(ticks) / 7)]
