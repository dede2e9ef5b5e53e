"""Plots by hand: SVG elements with classes instead of style attributes, which the page's policy refuses.

Drawn 320 wide, so that text is as large on a phone as on a deps; colours come from the page's CSS by class. Only
numbers and our own words are drawn.
"""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from grader_service.report.scales import Span

WIDTH = 320.0


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


def figure(name: str, height: float, title: str, description: str, parts: Sequence[Markup]) -> Markup:
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


class Axis:
    """Maps values to coordinates, linearly or by logarithm."""

    def __init__(self, span: Span, start: float, end: float, *, log: bool = False) -> None:
        self._warp: Callable[[float], float] = math.log if log else float
        self._low, self._start = self._warp(span.low), start
        self._factor = (end - start) / ((self._warp(span.high) - self._low) or 1.0)
        self.span, self.start, self.end = span, start, end

    def __call__(self, value: float) -> float:
        """Where the value lies; what is beyond an end lies at it."""
        inside = min(max(value, self.span.low), self.span.high)
        return self._start + (self._warp(inside) - self._low) * self._factor


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "quiet") -> Markup:
    """A label; `anchor` is start, middle or end."""
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=kind)


def across(axis: Axis, ticks: Sequence[tuple[float, str]], left: float, right: float) -> list[Markup]:
    """Grid lines and labels of a vertical axis."""
    parts = []
    for value, label in ticks:
        y = axis(value)
        parts.append(element("path", d=f"M{number(left)} {number(y)}H{number(right)}", class_="grid"))
        parts.append(text(left - 6, y + 4, label, "end"))
    return parts


def along(axis: Axis, ticks: Sequence[tuple[float, str]], y: float, caption: str) -> list[Markup]:
    """The line, ticks, labels and caption of a horizontal axis."""
    marks = "".join(f"M{number(axis(value))} {number(y)}v4" for value, _ in ticks)
    parts = [element("path", d=f"M{number(axis.start)} {number(y)}H{number(axis.end)}{marks}", class_="axis")]
    parts += [text(axis(value), y + 16, label) for value, label in ticks]
    return [*parts, text((axis.start + axis.end) / 2, y + 33, caption)]
