"""Two plots of a measurement with one row per block: the ratio, and images per second of each arm.

Rows run downwards, so that a plot is as narrow as a phone and has room for a value beside each block. No text of a
learner is ever drawn.
"""

import math

from markupsafe import Markup

from grader_service.model.measurement import Arm
from grader_service.report import formats
from grader_service.report.drawing import (
    WIDTH,
    Axis,
    Span,
    along,
    at,
    figure,
    horizontal,
    path,
    rate_axis,
    rectangle,
    text,
    vertical,
)
from grader_service.report.shown import BlockRow, Shown

_LEFT, _TOP, _CAPTION = 51.0, 22.0, 38.0
_ROW, _MOST_HEIGHT, _LINE = 21.0, 620.0, 13.0
_RATIO_RIGHT, _RATE_RIGHT = WIDTH - 62, WIDTH - 14
_FAR_INTERVAL, _FAR_BLOCK = 3.0, 1.25
"""A wide interval, or a block that was not counted, widens the axis by these factors at most."""
_CIRCLE, _DIAMOND = "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", "m0-5l5 5l-5 5l-5-5z"
_CROSS, _BELOW, _ABOVE = "m-3.5-3.5l7 7m0-7l-7 7", "m3.5-3.5l-7 3.5l7 3.5z", "m-3.5-3.5l7 3.5l-7 3.5z"
MARKERS = {Arm.DALI: _CIRCLE, Arm.LEARNER: "m-3.5-3.5h7v7h-7z", Arm.DECLARED: "m0-3.5l3.5 7h-7z", Arm.FAIR: _DIAMOND}
"""The shape of each arm, as path data around its middle: what `words.ARM_SIGNS` is in text."""


def ratio_plot(shown: Shown) -> Markup:
    """The ratio of each block, their mean, its confidence interval and the threshold, as an SVG element."""
    x, y = Axis(ratio_span(shown), _LEFT, _RATIO_RIGHT, log=True), _rows_axis(shown)
    last = y(len(shown.rows))
    interval = None if shown.decision is None else shown.decision.interval
    parts = []
    if interval is not None:
        parts.append(path("band", rectangle(x(interval.low), x(interval.high), _TOP, y.end)))
    parts += along(x, x.ticks("{:g}".format), y.end, "times the baseline’s images/s (log scale)", top=_TOP)
    parts += _row_labels(shown, x, y, "mean")
    if shown.mean is not None:
        parts.append(path("mean", vertical(x(shown.mean), _TOP, y.end)))
    if shown.threshold is not None:
        parts += _threshold(shown.threshold, x, y)
    parts += [_ratio_mark(row, x, y(place)) for place, row in enumerate(shown.rows)]
    for place in _labelled(shown):
        row = shown.rows[place]
        value, kind = (formats.ratio(row.ratio), "loud") if row.counted else ("left out", "quiet")
        parts.append(_value(y(place), value, kind))
    if shown.mean is not None:
        if interval is not None:
            parts.append(path("interval", horizontal(last, x(interval.low), x(interval.high))))
        parts.append(path("point arm-whole", at(x(shown.mean), last, _DIAMOND)))
        parts.append(_value(last, formats.ratio(shown.mean, shown.threshold), "strong"))
    return figure("ratio", y.end + _CAPTION, "DALI over the baseline, block by block", _ratio_words(shown), parts)


def rate_plot(shown: Shown) -> Markup:
    """Images per second of each arm in each block, as an SVG element."""
    rows = [(row.rates, row.counted) for row in shown.rows]
    every = [rate for rates in (*(rates for rates, _ in rows), shown.medians) for rate in rates.values()]
    x, y = rate_axis(min(every), max(every), _LEFT, _RATE_RIGHT), _rows_axis(shown)
    caption = f"images/s of each arm{' (log scale)' if x.log else ''}"
    parts = along(x, x.ticks(formats.rate), y.end, caption, top=_TOP)
    parts += _row_labels(shown, x, y, "median")
    if shown.mean is not None:
        rows.append((shown.medians, True))
    ends = [(place, [x(rate) for rate in rates.values()]) for place, (rates, _) in enumerate(rows) if rates]
    parts.append(path("link", *(horizontal(y(place), min(rates), max(rates)) for place, rates in ends)))
    parts += [
        path(f"{'point' if counted else 'hollow'} arm-{arm.value}", at(x(rate), y(place), MARKERS[arm]))
        for place, (rates, counted) in enumerate(rows)
        for arm, rate in rates.items()
    ]
    return figure("rates", y.end + _CAPTION, "Images per second of each arm, block by block", _rate_words(shown), parts)


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


def _rows_axis(shown: Shown) -> Axis:
    """Where the middle of each row lies, downwards; the last one is of all blocks together."""
    count = len(shown.rows) + (shown.mean is not None)
    return Axis(Span(-0.5, count - 0.5), _TOP, _TOP + min(count * _ROW, _MOST_HEIGHT))


def _labelled(shown: Shown) -> range:
    """Rows with a label: where they are many, not each has room for one."""
    return range(0, len(shown.rows), max(1, math.ceil(len(shown.rows) * _LINE / _MOST_HEIGHT)))


def _row_labels(shown: Shown, x: Axis, y: Axis, whole: str) -> list[Markup]:
    """The numbers of blocks, and what the row of all blocks is."""
    labels = [(place, str(shown.rows[place].number)) for place in _labelled(shown)]
    parts = [text(_LEFT - 8, _TOP - 6, "block", "end")]
    if shown.mean is not None:
        labels.append((len(shown.rows), whole))
        parts.append(path("grid", horizontal(y(len(shown.rows) - 0.5), x.start, x.end)))
    return [*parts, *(text(_LEFT - 8, y(place) + 4, label, "end", "loud") for place, label in labels)]


def _ratio_mark(row: BlockRow, x: Axis, y: float) -> Markup:
    """A dot; a cross where the block was left out, and an arrow where it lies beyond an end of the axis."""
    shape = _CIRCLE if row.counted else _CROSS
    shape = _BELOW if row.ratio < x.span.low else _ABOVE if row.ratio > x.span.high else shape
    return path(f"point arm-{Arm.DALI.value}" if row.counted else "hollow arm-other", at(x(row.ratio), y, shape))


def _value(y: float, words: str, kind: str) -> Markup:
    return text(WIDTH - 2, y + 4, words, "end", kind)


def _threshold(threshold: float, x: Axis, y: Axis) -> list[Markup]:
    """A line, and its label leaning to where there is room."""
    place, words = x(threshold), f"threshold {threshold:g}"
    far = place > 0.4 * x.start + 0.6 * x.end
    label = text(place + (3 if far else -3), _TOP - 6, words, "end" if far else "start", "threshold")
    return [path("threshold", vertical(place, _TOP, y.end)), label]


def _ratio_words(shown: Shown) -> str:
    counted = [row.ratio for row in shown.rows if row.counted]
    parts = []
    if counted:
        parts.append(
            f"{len(counted)} blocks between {formats.ratio(min(counted))} and {formats.ratio(max(counted))} counted."
            if len(counted) > 1
            else f"One block counted, at {formats.ratio(counted[0])}."
        )
    if shown.mean is not None:
        parts.append(f"Mean {formats.ratio(shown.mean, shown.threshold)}.")
    if shown.decision is not None:
        interval = shown.decision.interval
        parts.append(
            f"{interval.confidence:.0%} interval {formats.ratio(interval.low)} to {formats.ratio(interval.high)}; "
            f"threshold {shown.decision.threshold:g}."
        )
    if shown.not_counted:
        parts.append(f"{len(shown.not_counted)} blocks left out.")
    return " ".join([*parts, "The table of blocks below has every value."])


def _rate_words(shown: Shown) -> str:
    parts = []
    for arm in shown.arms:
        # One that was timed before the run has no block of its own.
        rates = [row.rates[arm] for row in shown.rows if arm in row.rates] or [shown.medians[arm]]
        parts.append(f"{shown.names[arm]}: {formats.rate(min(rates))} to {formats.rate(max(rates))} images per second.")
    return " ".join([*parts, "The table of blocks below has every value."])
