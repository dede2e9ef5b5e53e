"""The plots of a cohort and of a batch: scores, ratios with their intervals, images per second, and shares."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from markupsafe import Markup

from grader_service.report import formats
from grader_service.report.cohort.spread import Share, Summary, quantile
from grader_service.report.drawing import (
    WIDTH,
    Axis,
    Span,
    across,
    along,
    at,
    figure,
    horizontal,
    meter,
    path,
    polyline,
    rate_axis,
    rectangle,
    text,
    vertical,
)

MOST_POINTS = 400
"""Ratios that are drawn one by one; more are drawn as bands."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 10.0, 14.0, 40.0
_TALL = 150.0
_BANDS = 60
_ROW = 40.0
_SQUARE = 260.0
_FEW = 60
"""Submissions that are drawn with large dots."""

Interval = tuple[float, float, float]
"""A ratio and both ends of its interval."""
ArmRow = tuple[str, str, str, Summary]
"""An arm's CSS name, sign, name, and its rates over submissions."""
_Thing = TypeVar("_Thing")


def score_plot(counts: Sequence[int], top: float | None) -> Markup:
    """How many submissions have a score in each bin; `top` is the most points, null for per cent."""
    plot = _Bins(counts, top)
    words = f"{sum(counts):,} submissions with a score. Most, {max(counts):,}, lie in {plot.span(plot.fullest)}."
    return plot.figure("scores", "Distribution of scores", words, plot.bars("after", counts))


def moved_scores_plot(before: Sequence[int], after: Sequence[int]) -> Markup:
    """Two distributions of scores in per cent of all points, bin by bin beside each other."""
    plot = _Bins([max(pair) for pair in zip(before, after, strict=True)], None)
    bars = [*plot.bars("before", before, 0.06, 0.48, " before"), *plot.bars("after", after, 0.52, 0.94, " after")]
    words = f"{sum(before):,} scores before and {sum(after):,} after, in {len(before)} bars each."
    return plot.figure("moved-scores", "Distribution of scores before and after", words, bars)


def ratio_plot(ratios: Sequence[Interval]) -> Markup:
    """Ratios in ascending order with their intervals, and the median; bands where they are many."""
    ordered = sorted(ratios)
    values = [ratio for ratio, _, _ in ordered]
    median = quantile(values, 0.5)
    bottom, right = _TOP + _TALL + 30, WIDTH - _RIGHT
    y = Axis(_ratio_span(ordered), bottom, _TOP, log=True)
    parts = across(y, [tick for tick in y.ticks(_times) if abs(math.log(tick[0])) > 1e-9], _LEFT, right)
    if y.span.low <= 1 <= y.span.high:
        parts += [path("parity", horizontal(y(1), _LEFT, right)), text(_LEFT - 6, y(1) + 4, "1×", "end", "loud")]
    last = max(1, len(ordered) - 1)
    x = Axis(Span(0, last), _LEFT + 6, right - 6)
    if len(ordered) <= MOST_POINTS:
        places = [x(place if len(ordered) > 1 else 0.5) for place in range(len(ordered))]
        points = list(zip(places, ordered, strict=True))
        whiskers = (vertical(place, y(low), y(high)) for place, (_, low, high) in points)
        parts += _one_by_one(whiskers, [(place, y(ratio)) for place, (ratio, _, _) in points])
    else:
        parts += _bands(ordered, x, y)
    parts += [
        path("median", horizontal(y(median), _LEFT, right)),
        text(_LEFT + 6, y(median) - 5, f"median {formats.ratio(median)}", "start", "loud halo"),
        path("axis", horizontal(bottom, _LEFT, right)),
        text(x(0), bottom + 16, "lowest", "start"),
        text(x(last), bottom + 16, "highest", "end"),
        text((_LEFT + right) / 2, bottom + 16, f"{len(ordered):,} submissions in order"),
    ]
    above = sum(low > 1 for _, low, _ in ordered)
    words = (
        f"{len(ordered):,} ratios from {formats.ratio(values[0])} to {formats.ratio(values[-1])}, "
        f"median {formats.ratio(median)}. The whole interval lies above 1 for {above:,}."
    )
    return figure("ratios", bottom + 24, "Ratio of DALI over the baseline", words, parts)


def way(before: Interval, after: Interval) -> int:
    """Where the interval after lies: wholly above that before (1), wholly below (-1), or neither (0)."""
    (_, before_low, before_high), (_, low, high) = before, after
    return (low > before_high) - (high < before_low)


def moved_ratios_plot(pairs: Sequence[tuple[Interval, Interval]]) -> Markup:
    """Ratios before (along) and after (up) with both intervals; bands where they are many.

    What stayed the same lies on the diagonal.
    """
    ordered = sorted(pairs)
    spans = [_ratio_span(sorted(side)) for side in zip(*ordered, strict=True)]
    span = Span(min(one.low for one in spans), max(one.high for one in spans))
    bottom = _TOP + _SQUARE
    x, y = Axis(span, _LEFT + 6, WIDTH - _RIGHT, log=True), Axis(span, bottom, _TOP, log=True)
    ticks = y.ticks(_times)
    diagonal = path("parity", polyline((x(end), y(end)) for end in span))
    parts = [*across(y, ticks, _LEFT, WIDTH - _RIGHT), diagonal]
    if len(ordered) <= MOST_POINTS:
        whiskers = (
            vertical(x(old), y(low), y(high)) + horizontal(y(new), x(old_low), x(old_high))
            for (old, old_low, old_high), (new, low, high) in ordered
        )
        parts += _one_by_one(whiskers, [(x(old), y(new)) for (old, *_), (new, *_) in ordered])
    else:
        points = []
        for _, group in _groups(ordered):
            after = sorted(new for _, (new, *_) in group)
            place = x(quantile([old for (old, *_), _ in group], 0.5))
            low, middle, high = (y(quantile(after, part)) for part in (0.05, 0.5, 0.95))
            points.append((place, low, middle, high))
        parts += _banded(points)
    parts += along(x, ticks, bottom, "ratio before (log scale)")
    ways = Counter(way(old, new) for old, new in ordered)
    words = (
        f"Ratios of {len(ordered):,} submissions before and after. The interval after lies wholly above that before "
        f"for {ways[1]:,}, and wholly below for {ways[-1]:,}."
    )
    return figure("moved-ratios", bottom + 40, "Ratio of DALI over the baseline before and after", words, parts)


def rate_plot(arms: Sequence[ArmRow]) -> Markup:
    """Medians of images per second over submissions, one row per arm."""
    left, bottom = 14.0, _TOP + len(arms) * _ROW + 4
    x = rate_axis(min(row.low for *_, row in arms), max(row.high for *_, row in arms), left, WIDTH - left)
    parts = along(x, x.ticks(formats.rate), bottom, f"images/s{' (log scale)' if x.log else ''}", top=_TOP)
    for place, (arm, sign, name, row) in enumerate(arms):
        y = _TOP + place * _ROW
        parts += [
            text(left, y + 9, sign, "start", f"symbol arm-{arm}"),
            text(left + 14, y + 9, f"{name}: {formats.rate(row.median)}", "start", "loud halo"),
            path(f"range arm-{arm}", horizontal(y + 23, x(row.low), x(row.high))),
            path(f"quartiles arm-{arm}", horizontal(y + 23, x(row.first), x(row.third))),
            path("tick", at(x(row.median), y + 16, "v14")),
        ]
    words = " ".join(
        f"{name}: median {formats.rate(row.median)}, half of {row.size:,} submissions between "
        f"{formats.rate(row.first)} and {formats.rate(row.third)}."
        for *_, name, row in arms
    )
    return figure("rates", bottom + 40, "Images per second of each arm", words, parts)


def share_bar(part: Share) -> Markup:
    """A bar from 0 to 100 %, with the interval as a line; for beside the same in numbers."""
    shapes = [path("track", rectangle(0, 100, 3.5, 10.5))]
    if part.value is not None:
        low, high = part.low * 100, part.high * 100
        shapes.append(path("fill", rectangle(0, part.value * 100, 3.5, 10.5)))
        shapes.append(path("interval", horizontal(7, low, high), vertical(low, 2, 12), vertical(high, 2, 12)))
    return meter(shapes, 14, class_="share")


class _Bins:
    """The frame of a histogram."""

    def __init__(self, counts: Sequence[int], top: float | None) -> None:
        self._bins, self._top = len(counts), 100.0 if top is None else top
        self._unit, self._kind = ("%", "% of all points") if top is None else (" points", "points")
        self.fullest = max(range(len(counts)), key=counts.__getitem__)
        self._x = Axis(Span(0.0, self._top), _LEFT, WIDTH - _RIGHT)
        self._y = Axis(Span(0.0, max(1, *counts) * 1.05), _TOP + _TALL, _TOP)

    def span(self, place: float) -> str:
        """The bin in words."""
        ends = [formats.points(self._top * end / self._bins) for end in (place, place + 1)]
        return f"{ends[0]} to {ends[1]}{self._unit}"

    def bars(
        self, kind: str, counts: Sequence[int], start: float = 0.05, end: float = 0.95, side: str = ""
    ) -> list[Markup]:
        """A bar for each bin that is not empty, over this part of the bin."""
        drawn = []
        for place, count in enumerate(counts):
            if count:
                left, right = (self._x((place + part) * self._top / self._bins) for part in (start, end))
                bar = rectangle(left, right, self._y(count), self._y.start)
                drawn.append(path(f"bar-{kind}", bar, label=f"{self.span(place)}{side}: {count:,}"))
        return drawn

    def figure(self, name: str, title: str, words: str, bars: Sequence[Markup]) -> Markup:
        """The bars between grid and axis."""
        bottom = self._y.start
        whole = [(tick, label) for tick, label in self._y.ticks("{:,.0f}".format) if tick == int(tick)]
        grid = across(self._y, whole, _LEFT, WIDTH - _RIGHT)
        axis = along(self._x, self._x.ticks("{:g}".format), bottom, f"score in {self._kind}")
        return figure(name, bottom + _BOTTOM, title, words, [*grid, *bars, *axis])


def _times(ratio: float) -> str:
    return f"{ratio:g}×"


def _ratio_span(ordered: Sequence[Interval]) -> Span:
    """All ratios lie inside, and most of the intervals: a few very wide ones are cut at the ends."""
    values = [ratio for ratio, _, _ in ordered]
    low = min(values[0], 1.0, quantile(sorted(low for _, low, _ in ordered), 0.02))
    high = max(values[-1], 1.0, quantile(sorted(high for *_, high in ordered), 0.98))
    margin = max((high / low) ** 0.05, 1.03)
    return Span(low / margin, high * margin)


def _one_by_one(whiskers: Iterable[str], points: Sequence[tuple[float, float]]) -> list[Markup]:
    """A dot with its interval for each submission, the finer the more there are."""
    sizes = "few" if len(points) <= _FEW else "many"
    return [path(f"whiskers {sizes}", *whiskers), path(f"dots {sizes}", *(at(x, y, "h0") for x, y in points))]


def _bands(ordered: Sequence[Interval], x: Axis, y: Axis) -> list[Markup]:
    """Median ends of the intervals, and the range of ratios, over groups of neighbours in the order."""
    points = []
    for place, group in _groups(ordered):
        middle, low, high = (y(quantile(sorted(values), 0.5)) for values in zip(*group, strict=True))
        points.append((x(place), low, middle, high))
    return _banded(points)


def _groups(ordered: Sequence[_Thing]) -> Iterator[tuple[float, Sequence[_Thing]]]:
    """As many neighbours each, with their middle's place in the order."""
    edges = [round(place * len(ordered) / _BANDS) for place in range(_BANDS + 1)]
    for start, stop in pairwise(edges):
        yield (start + stop - 1) / 2, ordered[start:stop]


def _banded(points: Sequence[tuple[float, float, float, float]]) -> list[Markup]:
    """A line with a band around it: place, lower edge, line and upper edge of each point."""
    low_edge = [(place, low) for place, low, _, _ in points]
    high_edge = [(place, high) for place, *_, high in reversed(points)]
    middle = polyline((place, level) for place, _, level, _ in points)
    return [path("band", polyline([*low_edge, *high_edge]), "Z"), path("middle", middle)]
