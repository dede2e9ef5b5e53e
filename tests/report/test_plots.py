"""Axes, ticks and colours of the plots."""

import math
import re
from importlib.resources import files
from itertools import pairwise

import pytest

from grader_service.report.drawing import Span, even_ticks, log_ticks
from grader_service.report.plots import MARKERS, rate_plot, ratio_plot, ratio_span
from grader_service.report.shown import MOST_ROWS, shown
from tests.report.cases import lost_arm, many_blocks, one_block, spoiled
from tests.report.factories import block, decision, measurement, verdict
from tests.report.page import Page


def _texts(svg):
    return [element.text for element in Page(svg).all("text")]


def test_each_block_has_its_value():
    """The ratio of each block stands beside it, the mean last."""
    texts = _texts(ratio_plot(shown(verdict())))
    assert [text for text in texts if text.endswith("×")] == [
        "1.30×",
        "1.41×",
        "1.48×",
        "1.40×",
        "1.34×",
        "1.40×",
        "1.39×",
    ]
    assert "threshold 1.1" in texts


def test_left_out_blocks_have_no_value():
    """A spoiled block is named as such instead of giving a number."""
    texts = _texts(ratio_plot(shown(spoiled())))
    assert texts.count("left out") == 3
    assert "9.50×" not in texts


@pytest.mark.parametrize("case", [spoiled, lost_arm, one_block])
def test_colours_and_fonts_are_the_pages(case):
    """No colour, font or style is fixed in a plot: light, dark and print set them by class."""
    for svg in (ratio_plot(shown(case())), rate_plot(shown(case()))):
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b", svg)
        assert not re.search(r"(?:style|fill|stroke|font-\w+)=", svg)
        assert all("class" in element.attributes for element in Page(svg).elements if element.tag in {"path", "text"})


def test_style_sheet_paints_every_class():
    """Each class of a line or shape has a rule, and each rule takes its colours from variables of the page."""
    css = (files("grader_service.report") / "templates" / "report.css").read_text()
    rules = dict(re.findall(r"^(\.(?:plot|arm-)[^{]*) \{([^}]*)\}", css, re.MULTILINE))
    variables = set(re.findall(r"(--[\w-]+): #", css)) | {"--arm"}
    for rule in rules.values():
        assert not re.search(r"(?:fill|stroke): (?!var|none)", rule)
        assert set(re.findall(r"var\((--[\w-]+)\)", rule)) <= variables
    ruled = {name for selector in rules for name in re.findall(r"\.([\w-]+)", selector)}
    for svg in (ratio_plot(shown(spoiled())), rate_plot(shown(spoiled()))):
        for element in Page(svg).all("path"):
            assert set(element.attributes["class"].split()) <= ruled


def test_span_holds_blocks_threshold_and_interval():
    """Nothing that counted lies outside the axis."""
    span = ratio_span(shown(verdict()))
    assert span.low < 1.1
    assert span.high > 1.48


def test_spoiled_block_does_not_stretch_the_axis():
    """One wild block that was not counted leaves the others readable."""
    assert ratio_span(shown(spoiled())).high < 2


def test_wide_interval_does_not_stretch_the_axis():
    """An interval from almost nothing to very much is cut at the edge."""
    span = ratio_span(shown(verdict(measurement=measurement((1.2, 1.3), decision=decision(1.25, 1e-6, 1e6)))))
    assert span.low > 0.3
    assert span.high < 5


@pytest.mark.parametrize("low", [0.001, 0.5, 0.97, 1.0, 3.0, 900.0])
@pytest.mark.parametrize("factor", [1.03, 1.2, 2.0, 5.0, 40.0, 1e4, 1e9])
def test_ticks_are_round_few_and_inside(low, factor):
    """Two to eight ticks, inside the span, whatever its width."""
    span = Span(low, low * factor)
    ticks = log_ticks(span)
    assert 2 <= len(ticks) <= 8
    assert all(span.low <= tick <= span.high * (1 + 1e-9) for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_tick_values():
    """Ticks that a reader expects."""
    assert even_ticks(Span(0, 900)) == [0, 200, 400, 600, 800]
    assert log_ticks(Span(1.08, 1.52)) == [1.1, 1.2, 1.3, 1.4, 1.5]
    assert log_ticks(Span(0.9, 150)) == [1, 2, 5, 10, 20, 50, 100]


def test_rates_far_apart_take_a_log_axis():
    """An arm that is a hundred times slower can still be read."""
    assert any("log scale" in text for text in _texts(rate_plot(shown(lost_arm()))))
    assert not any("log scale" in text for text in _texts(rate_plot(shown(verdict()))))


def test_one_block_is_drawn():
    """One block has a value and a mean, no band and no threshold."""
    texts = _texts(ratio_plot(shown(one_block())))
    assert texts.count("1.25×") == 2
    assert not any("threshold" in text for text in texts)


def test_many_blocks_are_cut():
    """Only so many rows are drawn, and the page says how many are not."""
    seen = shown(many_blocks())
    assert len(seen.rows) == MOST_ROWS
    assert seen.left_out == 500 - MOST_ROWS
    assert len([text for text in _texts(ratio_plot(seen)) if text.endswith("×")]) < 60


def test_only_spoiled_blocks_are_drawn():
    """Without a counted block there is no mean, and still a plot."""
    blocks = tuple(block(index, 1.4, spoiled="the host slept") for index in range(3))
    seen = shown(verdict(checks=(), measurement=measurement(blocks=blocks, decision=None)))
    assert seen.mean is None
    assert _texts(ratio_plot(seen)).count("left out") == 3


def test_absurd_ratios_do_not_break_the_plot():
    """Logarithms that no exponential holds are drawn at a limit."""
    blocks = (block(0, log_ratio=50.0), block(1, log_ratio=-50.0))
    seen = shown(verdict(checks=(), measurement=measurement(blocks=blocks, decision=None)))
    assert all(math.isfinite(row.ratio) and row.ratio > 0 for row in seen.rows)
    drawn = ratio_plot(seen)
    assert "e+21" in drawn
    ticks = [element for element in Page(drawn).all("text") if "e-" in element.text and "×" not in element.text]
    places = [float(element.attributes["x"]) for element in ticks]
    assert all(right - left > 40 for left, right in pairwise(places)), "labels of ticks overlap"


def test_markers_differ_in_shape():
    """Arms differ by more than colour."""
    assert len(set(MARKERS.values())) == 4
