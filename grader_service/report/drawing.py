"""Draws the figures of all pages: SVG elements whose look is the style sheet's.

Elements have classes instead of colours and style attributes: one figure suits light, dark and paper, and a page's
policy may refuse styles in attributes. A figure is drawn 320 wide, so that its text is as large on a phone as on a
desktop. Only numbers and our own words are drawn; the same values give the same text.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

WIDTH = 320.0
_WIDE_RATES = 20.0
"""Rates that differ by more than this are drawn on a log axis, so that the slowest can still be read."""
_MOST_RATE = 1e300
"""A stored verdict may hold any number; an axis ends where numbers do."""
_MOST_TICKS, _DIGIT = 7, 6.5
"""What fits on a phone, and how wide a digit is."""


def number(value: float) -> str:
    """A coordinate with as few digits as a screen can show."""
    return f"{value:.1f}".removesuffix(".0")


def element(tag: str, text: str | Markup | None = None, **attributes: str | float) -> Markup:
    """One element; a trailing underscore of a name falls away, and the others become hyphens."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value if isinstance(value, str) else number(value))}"'
        for name, value in attributes.items()
    )
    # All values are escaped here; `text` is escaped unless it is our own markup.
    return Markup(f"<{tag}{given}>{escape(text or '')}</{tag}>")  # noqa: S704


def figure(name: str, height: float, title: str, description: str, parts: Iterable[Markup]) -> Markup:
    """The whole SVG with its text alternative; `name` is unique on the page."""
    inside = [
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *parts,
    ]
    return element(
        "svg",
        Markup("").join(inside),
        class_="plot",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        width=WIDTH,
        height=height,
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )


def meter(parts: Iterable[Markup], height: float = 1, **attributes: str) -> Markup:
    """A bar that is 100 wide and stretched to its place on the page; numbers beside it say the same."""
    view = {"viewBox": f"0 0 100 {number(height)}", "preserveAspectRatio": "none", "aria_hidden": "true"}
    return element("svg", Markup("").join(parts), **attributes, **view)


def stacked(*shares: tuple[str, float, float]) -> Markup:
    """A bar of several parts: class, begin and length of each, as shares of the whole."""
    return meter(
        element("rect", x=begin * 100, width=length * 100, height=1, class_=kind) for kind, begin, length in shares
    )


def path(kind: str, *data: str, label: str | None = None) -> Markup:
    """One path of all these lines and shapes; a pointing device shows the label."""
    return element("path", None if label is None else element("title", label), d="".join(data), class_=kind)


def horizontal(y: float, left: float, right: float) -> str:
    """Path data of a level line."""
    return f"M{number(left)} {number(y)}H{number(right)}"


def vertical(x: float, top: float, bottom: float) -> str:
    """Path data of an upright line."""
    return f"M{number(x)} {number(top)}V{number(bottom)}"


def rectangle(left: float, right: float, top: float, bottom: float) -> str:
    """Path data of a filled rectangle."""
    return f"M{number(left)} {number(top)}H{number(right)}V{number(bottom)}H{number(left)}Z"


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """Path data of straight lines from point to point."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def at(x: float, y: float, shape: str) -> str:
    """Path data of a shape, which is path data relative to its middle."""
    return f"M{number(x)} {number(y)}{shape}"


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "quiet") -> Markup:
    """A label; `anchor` is start, middle or end."""
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=kind)


class Span(NamedTuple):
    """Two ends of an axis."""

    low: float
    high: float


class Axis:
    """Maps values to coordinates, linearly or by logarithm."""

    def __init__(self, span: Span, start: float, end: float, *, log: bool = False) -> None:
        self._warp: Callable[[float], float] = math.log if log else float
        self._low, self._start = self._warp(span.low), start
        self._factor = (end - start) / ((self._warp(span.high) - self._low) or 1.0)
        self.span, self.start, self.end, self.log = span, start, end, log

    def __call__(self, value: float) -> float:
        """Where the value lies; what is beyond an end lies at it."""
        inside = min(max(value, self.span.low), self.span.high)
        return self._start + (self._warp(inside) - self._low) * self._factor

    def ticks(self, label: Callable[[float], str]) -> list[tuple[float, str]]:
        """Round values on the axis with their labels."""
        return [(tick, label(tick)) for tick in (log_ticks if self.log else even_ticks)(self.span)]


def rate_axis(low: float, high: float, start: float, end: float) -> Axis:
    """An axis for rates between these: from 0, or by logarithm where they are far apart."""
    low, high = (min(max(rate, 1 / _MOST_RATE), _MOST_RATE) for rate in (low, high))
    wide = high > _WIDE_RATES * low
    return Axis(Span(low / 1.3, high * 1.3) if wide else Span(0.0, high * 1.06), start, end, log=wide)


def across(axis: Axis, ticks: Sequence[tuple[float, str]], left: float, right: float) -> list[Markup]:
    """Grid lines and labels of a vertical axis."""
    parts = []
    for value, label in ticks:
        y = axis(value)
        parts += [path("grid", horizontal(y, left, right)), text(left - 6, y + 4, label, "end")]
    return parts


def along(
    axis: Axis, ticks: Sequence[tuple[float, str]], y: float, caption: str, *, top: float | None = None
) -> list[Markup]:
    """The line, ticks, labels and caption of a horizontal axis, and grid lines up to `top`.

    Where the labels would touch, only every second or third tick is drawn.
    """
    needed = max((len(label) for _, label in ticks), default=0) * len(ticks) * _DIGIT
    ticks = ticks[:: max(1, math.ceil(needed / (axis.end - axis.start)))]
    grid = [] if top is None else [path("grid", *(vertical(axis(value), top, y) for value, _ in ticks))]
    marks = (at(axis(value), y, "v4") for value, _ in ticks)
    line = path("axis", horizontal(y, axis.start, axis.end), *marks)
    labels = [text(axis(value), y + 16, label) for value, label in ticks]
    return [*grid, line, *labels, text((axis.start + axis.end) / 2, y + 33, caption)]


def even_ticks(span: Span) -> list[float]:
    """Multiples of a round step inside the span, three to seven of them."""
    raw = (span.high - span.low) / 6
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= raw)
    first = math.ceil(span.low / step - 1e-9)
    last = math.floor(span.high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def log_ticks(span: Span) -> list[float]:
    """1, 2 and 5 times powers of ten inside the span; fewer of them where it is wide, even steps where it is narrow."""
    if span.high / span.low < 3:  # below this even steps look even on a log axis too
        return even_ticks(span)
    first, last = math.floor(math.log10(span.low)), math.ceil(math.log10(span.high))
    for factors in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [
            float(f"{factor * 10.0**power:.6g}")
            for power in range(first, last + 1)
            for factor in factors
            if span.low <= factor * 10.0**power <= span.high
        ]
        if len(ticks) <= _MOST_TICKS:
            return ticks
    return ticks[:: math.ceil(len(ticks) / _MOST_TICKS)]
