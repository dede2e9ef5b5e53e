"""Axes, ticks and colours of the plots."""

import math
import re

import pytest

from grader_service.report import plots
from grader_service.report.plots import rate_plot, ratio_plot
from grader_service.report.scales import Span, decade_ticks, even_ticks, ratio_span, ratio_ticks
from grader_service.report.shown import MOST_ROWS, shown
from grader_service.report.svg import Paint
from tests.report.factories import block, decision, lost_arm, many_blocks, measurement, one_block, spoiled, verdict
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


def test_colours_and_fonts_are_the_pages():
    """No colour is fixed in a plot: each is a variable that light, dark and print set; no font is named to look for."""
    for svg in (ratio_plot(shown(spoiled())), rate_plot(shown(lost_arm()))):
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?!\))", re.sub(r'href="#[^"]*"', "", svg))
        used = set(re.findall(r"var\((--[\w-]+)\)", svg))
        assert used <= {paint.variable for paint in Paint}
        assert "--ink" in used
        assert "font-family" not in svg


def test_every_colour_variable_is_set(rendered):
    """The style sheet sets each variable that a plot uses."""
    html = rendered("official")
    for paint in Paint:
        assert f"{paint.variable}:" in html


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
    ticks = ratio_ticks(span)
    assert 2 <= len(ticks) <= 8
    assert all(span.low <= tick <= span.high * (1 + 1e-9) for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_tick_values():
    """Ticks that a reader expects."""
    assert even_ticks(Span(0, 900)) == [0, 200, 400, 600, 800]
    assert ratio_ticks(Span(1.08, 1.52)) == [1.1, 1.2, 1.3, 1.4, 1.5]
    assert decade_ticks(Span(0.9, 150)) == [1, 2, 5, 10, 20, 50, 100]


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
    assert "e+21" in ratio_plot(seen)


def test_markers_differ_in_shape():
    """Arms differ by more than colour."""
    assert len(set(plots._MARKERS.values())) == 4
