"""Two plots of a measurement with one row per block: the ratio, and images per second of each arm.

Rows run downwards, so that a plot is as narrow as a phone and has room for a value beside each block. matplotlib is
imported in here, when a plot is asked for: it costs half a second that other commands need not pay. No text of a
learner is ever drawn.
"""

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from markupsafe import Markup

from grader_service.model.measurement import Arm
from grader_service.report import formats
from grader_service.report.scales import Span, decade_ticks, even_ticks, ratio_span, ratio_ticks
from grader_service.report.shown import BlockRow, Shown
from grader_service.report.svg import Paint, inline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths are points of the drawing; a phone shows about one pixel for each.
_WIDTH, _LEFT, _TOP, _BOTTOM = 312.0, 51.0, 22.0, 38.0
_ROW, _MOST_HEIGHT, _TEXT = 21.0, 620.0, 11.0
_VALUE_COLUMN = 56.0
_WIDE_RATES = 20.0
"""Rates that differ by more than this are drawn on a log axis, so that the slowest can still be read."""
_MOST_RATE = 1e300
"""A stored verdict may hold any number; an axis ends where numbers do."""
_PAINTS = {
    Arm.DALI: Paint.DALI,
    Arm.LEARNER: Paint.LEARNER,
    Arm.DECLARED: Paint.DECLARED,
    Arm.FAIR: Paint.FAIR,
}
_MARKERS = {Arm.DALI: "o", Arm.LEARNER: "s", Arm.DECLARED: "^", Arm.FAIR: "D"}


def ratio_plot(shown: Shown) -> Markup:
    """The ratio of each block, their mean, its confidence interval and the threshold, as an SVG element."""
    rows = shown.rows
    span = ratio_span(shown)
    with _canvas(len(rows) + (shown.mean is not None), right=_VALUE_COLUMN) as (figure, axes):
        axes.set_xscale("log")
        axes.set_xlim(span.low, span.high)
        ticks = ratio_ticks(span)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        _rows(axes, shown, "mean")
        axes.set_xlabel("times the baseline’s images/s (log scale)", color=Paint.MUTED.colour, fontsize=_TEXT)
        if shown.decision is not None:
            interval = shown.decision.interval
            axes.axvspan(interval.low, interval.high, color=Paint.BAND.colour, linewidth=0, zorder=0)
        if shown.mean is not None:
            axes.axvline(shown.mean, color=Paint.DALI.colour, linewidth=1, zorder=1.5)
        if shown.threshold is not None:
            _threshold(axes, shown.threshold, span)
        for place, row in enumerate(rows):
            _ratio_row(axes, place, row, span, shown)
        if shown.mean is not None:
            _mean_row(axes, len(rows), shown.mean, shown)
        drawn = _drawn(figure)
    return inline(drawn, "ratio", "DALI over the baseline, block by block", _ratio_words(shown))


def rate_plot(shown: Shown) -> Markup:
    """Images per second of each arm in each block, as an SVG element."""
    rows = shown.rows
    rates = [rate for row in rows for rate in row.rates.values()] + list(shown.medians.values())
    low, high = (min(max(rate, 1 / _MOST_RATE), _MOST_RATE) for rate in (min(rates), max(rates)))
    wide = high > _WIDE_RATES * low
    with _canvas(len(rows) + (shown.mean is not None), right=14.0) as (figure, axes):
        if wide:
            axes.set_xscale("log")
            axes.set_xlim(low / 1.3, high * 1.3)
            ticks = decade_ticks(Span(*axes.get_xlim()))
        else:
            axes.set_xlim(0, high * 1.08)
            ticks = even_ticks(Span(0, high * 1.08))
        axes.set_xticks(ticks, [formats.rate(tick) if tick else "0" for tick in ticks])
        axes.set_xticks([], minor=True)
        _rows(axes, shown, "median")
        axes.set_xlabel(
            f"images/s of each arm{' (log scale)' if wide else ''}", color=Paint.MUTED.colour, fontsize=_TEXT
        )
        for place, row in enumerate(rows):
            _rate_row(axes, place, row.rates, filled=row.counted)
        if shown.mean is not None:
            axes.axhline(len(rows) - 0.5, color=Paint.GRID.colour, linewidth=1)
            _rate_row(axes, len(rows), shown.medians, filled=True)
        drawn = _drawn(figure)
    return inline(drawn, "rates", "Images per second of each arm, block by block", _rate_words(shown))


@contextmanager
def _canvas(rows: int, right: float) -> Iterator[tuple["Figure", "Axes"]]:
    """An empty figure with room for this many rows, under settings that no user's configuration changes.

    SVG settings are global in matplotlib: they are put back on leaving, and one thread at a time may draw.
    """
    import matplotlib as mpl  # noqa: PLC0415 - see the module's docstring
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    height = min(rows * _ROW, _MOST_HEIGHT)
    whole = _TOP + height + _BOTTOM
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "grader", "font.size": _TEXT})
        figure = Figure(figsize=(_WIDTH / 72, whole / 72))
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.add_axes((_LEFT / _WIDTH, _BOTTOM / whole, (_WIDTH - _LEFT - right) / _WIDTH, height / whole))
        axes.patch.set_visible(False)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(Paint.MUTED.colour)
        axes.set_ylim(rows - 0.5, -0.5)
        yield figure, axes


def _rows(axes: "Axes", shown: Shown, whole: str) -> None:
    """Labels and faint lines; where rows are many, not each has a label."""
    rows = shown.rows
    every = _label_every(len(rows))
    places = list(range(0, len(rows), every))
    labels = [str(rows[place].number) for place in places]
    if shown.mean is not None:
        places.append(len(rows))
        labels.append(whole)
    axes.set_yticks(places, labels)
    axes.tick_params(axis="both", length=0, pad=5, labelsize=_TEXT, labelcolor=Paint.INK.colour)
    axes.tick_params(axis="y", pad=8)  # a marker at the edge of the axis needs room beside its label
    axes.tick_params(axis="x", length=3, color=Paint.MUTED.colour, labelcolor=Paint.MUTED.colour)
    axes.grid(visible=True, axis="x", color=Paint.GRID.colour, linewidth=0.7, zorder=0.5)
    axes.set_axisbelow(True)
    axes.annotate(
        "block",
        (0, 1),
        (-8, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=Paint.MUTED.colour,
        fontsize=_TEXT,
    )


def _label_every(rows: int) -> int:
    return max(1, math.ceil(rows * (_TEXT + 2) / _MOST_HEIGHT))


def _ratio_row(axes: "Axes", place: int, row: BlockRow, span: Span, shown: Shown) -> None:
    within = min(max(row.ratio, span.low), span.high)
    marker = "<" if row.ratio < span.low else ">" if row.ratio > span.high else "o" if row.counted else "x"
    _point(axes, within, place, Paint.DALI if row.counted else Paint.MUTED, marker, filled=row.counted)
    if place % _label_every(len(shown.rows)) == 0:
        paint = Paint.INK if row.counted else Paint.MUTED
        _value(axes, place, formats.ratio(row.ratio) if row.counted else "left out", paint)


def _rate_row(axes: "Axes", place: int, rates: Mapping[Arm, float], *, filled: bool) -> None:
    if rates:
        ends = [min(rates.values()), max(rates.values())]
        axes.plot(ends, [place, place], color=Paint.GRID.colour, linewidth=2, zorder=1)
    for arm, rate in rates.items():
        _point(axes, rate, place, _PAINTS[arm], _MARKERS[arm], filled=filled)


def _mean_row(axes: "Axes", place: int, mean: float, shown: Shown) -> None:
    axes.axhline(place - 0.5, color=Paint.GRID.colour, linewidth=1)
    if shown.decision is not None:
        interval = shown.decision.interval
        axes.plot([interval.low, interval.high], [place, place], color=Paint.INK.colour, linewidth=2, zorder=2)
    _point(axes, mean, place, Paint.INK, "D", filled=True)
    _value(axes, place, formats.ratio(mean, shown.threshold), Paint.INK, weight="bold")


def _value(axes: "Axes", place: int, text: str, paint: Paint, weight: str = "normal") -> None:
    axes.annotate(
        text,
        (1, place),
        (_VALUE_COLUMN - 2, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="center_baseline",
        color=paint.colour,
        fontsize=_TEXT,
        fontweight=weight,
        annotation_clip=False,
    )


def _threshold(axes: "Axes", threshold: float, span: Span) -> None:
    axes.axvline(threshold, color=Paint.THRESHOLD.colour, linewidth=1.6, linestyle=(0, (4, 2.5)), zorder=1.8)
    share = math.log(threshold / span.low) / math.log(span.high / span.low)
    right = share > 0.6  # the label leans to where there is room
    axes.annotate(
        f"threshold {threshold:g}",
        (threshold, 1),
        (3 if right else -3, 6),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if right else "left",
        va="bottom",
        color=Paint.THRESHOLD.colour,
        fontsize=_TEXT,
    )


def _point(axes: "Axes", x: float, place: int, paint: Paint, marker: str, *, filled: bool) -> None:
    axes.plot(
        [x],
        [place],
        marker=marker,
        markersize=7,
        color=paint.colour,
        markerfacecolor=paint.colour if filled else "none",
        markeredgecolor=Paint.SURFACE.colour if filled else paint.colour,
        markeredgewidth=0.8 if filled else 1.4,
        linestyle="none",
        clip_on=False,
        zorder=3,
    )


def _drawn(figure: "Figure") -> str:
    page = io.StringIO()
    figure.savefig(page, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return page.getvalue()


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
