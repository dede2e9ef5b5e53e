"""The plots of a cohort and of a batch: scores, ratios with their intervals, images per second, and shares."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from markupsafe import Markup

from grader_service.report import formats
from grader_service.report.cohort.drawing import WIDTH, Axis, across, along, element, figure, number, text
from grader_service.report.cohort.spread import Share, Summary, quantile
from grader_service.report.scales import Span, decade_ticks, even_ticks

MOST_POINTS = 400
"""Ratios that are drawn one by one; more are drawn as bands."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 10.0, 14.0, 40.0
_TALL = 150.0
_BANDS = 60
_WIDE_RATES = 20.0
"""Rates that differ by more than this are drawn on a log axis."""
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
    bars = [
        element(
            "path",
            element("title", f"{plot.span(place)}: {count:,}"),
            d=_bar(plot.x(place) + 0.7, plot.x(place + 1) - 0.7, plot.y(count), plot.y(0)),
            class_="bar-after",
        )
        for place, count in enumerate(counts)
        if count
    ]
    words = f"{sum(counts):,} submissions with a score. Most, {max(counts):,}, lie in {plot.span(plot.fullest)}."
    return figure("scores", plot.height, "Distribution of scores", words, [*plot.frame(), *bars, plot.floor()])


def moved_scores_plot(before: Sequence[int], after: Sequence[int]) -> Markup:
    """Two distributions of scores in per cent of all points, bin by bin beside each other."""
    plot = _Bins([max(pair) for pair in zip(before, after, strict=True)], None)
    bars = []
    for kind, counts, from_, to in (("bar-before", before, 0.06, 0.48), ("bar-after", after, 0.52, 0.94)):
        for place, count in enumerate(counts):
            if not count:
                continue
            left, right = (plot.x(place + part) for part in (from_, to))
            label = element("title", f"{plot.span(place)} {kind.removeprefix('bar-')}: {count:,}")
            bars.append(element("path", label, d=_bar(left, right, plot.y(count), plot.y(0)), class_=kind))
    words = f"{sum(before):,} scores before and {sum(after):,} after, in {len(before)} bars each."
    title = "Distribution of scores before and after"
    return figure("moved-scores", plot.height, title, words, [*plot.frame(), *bars, plot.floor()])


def ratio_plot(ratios: Sequence[Interval]) -> Markup:
    """Ratios in ascending order with their intervals, and the median; bands where they are many."""
    ordered = sorted(ratios)
    values = [ratio for ratio, _, _ in ordered]
    median = quantile(values, 0.5)
    span = _ratio_span(ordered)
    bottom = _TOP + _TALL + 30
    y = Axis(span, bottom, _TOP, log=True)
    ticks = [tick for tick in _log_ticks(span) if abs(math.log(tick)) > 1e-9]
    parts = across(y, [(tick, f"{tick:g}×") for tick in ticks], _LEFT, WIDTH - _RIGHT)
    if span.low <= 1 <= span.high:
        parts.append(element("path", d=f"M{number(_LEFT)} {number(y(1))}H{number(WIDTH - _RIGHT)}", class_="parity"))
        parts.append(text(_LEFT - 6, y(1) + 4, "1×", "end", "loud"))
    last = max(1, len(ordered) - 1)
    x = Axis(Span(0, last), _LEFT + 6, WIDTH - _RIGHT - 6)
    if len(ordered) <= MOST_POINTS:
        places = [x(place if len(ordered) > 1 else 0.5) for place in range(len(ordered))]
        whiskers = "".join(
            f"M{number(at)} {number(y(low))}V{number(y(high))}"
            for at, (_, low, high) in zip(places, ordered, strict=True)
        )
        dots = "".join(f"M{number(at)} {number(y(ratio))}h0" for at, ratio in zip(places, values, strict=True))
        parts += _one_by_one(len(ordered), whiskers, dots)
    else:
        parts += _bands(ordered, x, y)
    at = y(median)
    parts.append(element("path", d=f"M{number(_LEFT)} {number(at)}H{number(WIDTH - _RIGHT)}", class_="median"))
    parts.append(text(_LEFT + 6, at - 5, f"median {formats.ratio(median)}", "start", "loud halo"))
    ends = [(0.0, "lowest"), (float(last), "highest")]
    parts.append(element("path", d=f"M{number(_LEFT)} {number(bottom)}H{number(WIDTH - _RIGHT)}", class_="axis"))
    parts += [
        text(x(place), bottom + 16, label, anchor)
        for (place, label), anchor in zip(ends, ("start", "end"), strict=True)
    ]
    parts.append(text((_LEFT + WIDTH - _RIGHT) / 2, bottom + 16, f"{len(ordered):,} submissions in order"))
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
    ticks = [(tick, f"{tick:g}×") for tick in _log_ticks(span)]
    corner = [f"{number(x(end))} {number(y(end))}" for end in span]
    parts = [*across(y, ticks, _LEFT, WIDTH - _RIGHT), element("path", d=f"M{'L'.join(corner)}", class_="parity")]
    if len(ordered) <= MOST_POINTS:
        whiskers = "".join(
            f"M{number(x(old))} {number(y(low))}V{number(y(high))}"
            f"M{number(x(old_low))} {number(y(new))}H{number(x(old_high))}"
            for (old, old_low, old_high), (new, low, high) in ordered
        )
        dots = "".join(f"M{number(x(old))} {number(y(new))}h0" for (old, *_), (new, *_) in ordered)
        parts += _one_by_one(len(ordered), whiskers, dots)
    else:
        points = []
        for _, group in _groups(ordered):
            after = sorted(new for _, (new, *_) in group)
            at = x(quantile([old for (old, *_), _ in group], 0.5))
            low, middle, high = (y(quantile(after, part)) for part in (0.05, 0.5, 0.95))
            points.append((at, low, middle, high))
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
    lows, highs = [row.low for *_, row in arms], [row.high for *_, row in arms]
    wide = max(highs) > _WIDE_RATES * min(lows)
    if wide:
        span = Span(min(lows) / 1.3, max(highs) * 1.3)
        ticks = decade_ticks(span)
    else:
        span = Span(0.0, max(highs) * 1.06)
        ticks = even_ticks(span)
    left, bottom = 14.0, _TOP + len(arms) * _ROW + 4
    x = Axis(span, left, WIDTH - left, log=wide)
    labels = [(tick, formats.rate(tick) if tick else "0") for tick in ticks]
    grid = "".join(f"M{number(x(tick))} {number(_TOP)}V{number(bottom)}" for tick, _ in labels)
    parts = [element("path", d=grid, class_="grid")]
    for place, (arm, sign, name, row) in enumerate(arms):
        y = _TOP + place * _ROW
        label = f"{name}: {formats.rate(row.median)}"
        parts += [
            element("text", sign, x=left, y=y + 9, class_=f"sign-{arm}"),
            text(left + 14, y + 9, label, "start", "loud halo"),
            element("path", d=f"M{number(x(row.low))} {number(y + 23)}H{number(x(row.high))}", class_=f"range-{arm}"),
            element("path", d=f"M{number(x(row.first))} {number(y + 23)}H{number(x(row.third))}", class_=f"box-{arm}"),
            element("path", d=f"M{number(x(row.median))} {number(y + 16)}v14", class_="tick"),
        ]
    parts += along(x, labels, bottom, f"images/s{' (log scale)' if wide else ''}")
    words = " ".join(
        f"{name}: median {formats.rate(row.median)}, half of {row.size:,} submissions between "
        f"{formats.rate(row.first)} and {formats.rate(row.third)}."
        for *_, name, row in arms
    )
    return figure("rates", bottom + 40, "Images per second of each arm", words, parts)


def share_bar(part: Share) -> Markup:
    """A bar from 0 to 100 %, with the interval as a line; for beside the same in numbers."""
    shapes = [element("path", d="M0 3.5H100V10.5H0Z", class_="track")]
    if part.value is not None:
        shapes.append(element("path", d=_bar(0, part.value * 100, 3.5, 10.5), class_="fill"))
        low, high = number(part.low * 100), number(part.high * 100)
        shapes.append(element("path", d=f"M{low} 7H{high}M{low} 2v10M{high} 2v10", class_="interval"))
    return element(
        "svg",
        Markup("").join(shapes),
        class_="share",
        viewBox="0 0 100 14",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


class _Bins:
    """The frame of a histogram."""

    height = _TOP + _TALL + _BOTTOM

    def __init__(self, counts: Sequence[int], top: float | None) -> None:
        self._bins, self._top = len(counts), 100.0 if top is None else top
        self._unit = "%" if top is None else ""
        self.fullest = max(range(len(counts)), key=counts.__getitem__)
        most = max(1, *counts)
        self._values = Axis(Span(0.0, self._top), _LEFT, WIDTH - _RIGHT)
        self.y = Axis(Span(0.0, most * 1.05), _TOP + _TALL, _TOP)
        self._ticks = [tick for tick in even_ticks(Span(0.0, float(most * 1.05))) if tick == int(tick)]

    def x(self, place: float) -> float:
        """Where the bin starts."""
        return self._values(place * self._top / self._bins)

    def span(self, place: int) -> str:
        """The bin in words."""
        ends = [formats.points(self._top * end / self._bins) for end in (place, place + 1)]
        return f"{ends[0]} to {ends[1]}{self._unit or ' points'}"

    def frame(self) -> list[Markup]:
        """Grid and axes."""
        return across(self.y, [(tick, f"{int(tick):,}") for tick in self._ticks], _LEFT, WIDTH - _RIGHT)

    def floor(self) -> Markup:
        """The horizontal axis, over the feet of the bars."""
        ticks = even_ticks(Span(0.0, self._top))
        caption = "score in % of all points" if self._unit else "score in points"
        return Markup("").join(along(self._values, [(tick, f"{tick:g}") for tick in ticks], _TOP + _TALL, caption))


def _bar(left: float, right: float, top: float, bottom: float) -> str:
    return f"M{number(left)} {number(top)}H{number(right)}V{number(bottom)}H{number(left)}Z"


def _ratio_span(ordered: Sequence[Interval]) -> Span:
    """All ratios lie inside, and most of the intervals: a few very wide ones are cut at the ends."""
    values = [ratio for ratio, _, _ in ordered]
    low = min(values[0], 1.0, quantile(sorted(low for _, low, _ in ordered), 0.02))
    high = max(values[-1], 1.0, quantile(sorted(high for *_, high in ordered), 0.98))
    margin = max((high / low) ** 0.05, 1.03)
    return Span(low / margin, high * margin)


def _log_ticks(span: Span) -> list[float]:
    return even_ticks(span) if span.high / span.low < 3 else decade_ticks(span)


def _one_by_one(count: int, whiskers: str, dots: str) -> list[Markup]:
    """A dot with its interval for each submission, the finer the more there are."""
    sizes = "few" if count <= _FEW else "many"
    return [
        element("path", d=whiskers, class_=f"whiskers {sizes}"),
        element("path", d=dots, class_=f"dots {sizes}"),
    ]


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
    low_edge = [(at, low) for at, low, _, _ in points]
    high_edge = [(at, high) for at, *_, high in points]
    outline = "L".join(f"{number(at)} {number(level)}" for at, level in [*low_edge, *reversed(high_edge)])
    middle = "L".join(f"{number(at)} {number(level)}" for at, _, level, _ in points)
    return [element("path", d=f"M{outline}Z", class_="band"), element("path", d=f"M{middle}", class_="middle")]
