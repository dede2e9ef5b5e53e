"""The plots: coordinates stay inside, what is described is what is drawn, no style attribute."""

import re
from itertools import pairwise

import pytest

from grader_service.report.cohort.plots import (
    MOST_POINTS,
    moved_ratios_plot,
    moved_scores_plot,
    rate_plot,
    ratio_plot,
    score_plot,
    share_bar,
)
from grader_service.report.cohort.spread import share, summary


def numbers(drawn):
    """Numbers of all paths."""
    return [float(value) for path in re.findall(r' d="([^"]*)"', drawn) for value in re.findall(r"-?[\d.]+", path)]


def ratios(count):
    """Ascending ratios with their intervals."""
    return [(1 + place / count, 0.9 + place / count, 1.1 + place / count) for place in range(count)]


@pytest.mark.parametrize("count", [1, 2, MOST_POINTS, MOST_POINTS + 1, 5000])
def test_ratios_stay_inside(count):
    """Of one and of thousands; what is drawn does not grow with their number."""
    drawn = ratio_plot(ratios(count))
    assert all(-15 <= value <= 320 for value in numbers(drawn))
    assert len(drawn) < 25_000
    assert ('class="band"' in drawn) == (count > MOST_POINTS)
    assert f"{count:,} ratios" in drawn


@pytest.mark.parametrize("count", [1, 2, MOST_POINTS, MOST_POINTS + 1, 5000])
def test_moved_ratios_stay_inside(count):
    """Of one and of thousands; each one that moved further than its intervals is counted in the description."""
    pairs = [(before, (before[0] * 1.5, before[1] * 1.5, before[2] * 1.5)) for before in ratios(count)]
    drawn = moved_ratios_plot(pairs)
    assert all(-15 <= value <= 320 for value in numbers(drawn))
    assert len(drawn) < 45_000
    assert ('class="band"' in drawn) == (count > MOST_POINTS)
    assert f"lies wholly above that before for {count:,}, and wholly below for 0" in drawn
    assert f"for 0, and wholly below for {count:,}" in moved_ratios_plot([(after, before) for before, after in pairs])


def test_what_stayed_the_same_lies_on_the_diagonal():
    """Which goes from corner to corner, whatever the ratios are."""
    drawn = moved_ratios_plot([((ratio, ratio * 0.9, ratio * 1.1),) * 2 for ratio in (0.5, 1.0, 4.0)])
    ((left, bottom), (right, top)) = [
        [float(value) for value in end.split()]
        for end in re.search(r'd="M([^"]*)" class="parity"', drawn)[1].split("L")
    ]
    for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", drawn):
        along, up = (float(x) - left) / (right - left), (bottom - float(y)) / (bottom - top)
        assert along == pytest.approx(up, abs=0.002)


def test_median_ratio_is_marked():
    """In the plot and in its description."""
    drawn = ratio_plot([(1.2, 1.1, 1.3), (1.4, 1.3, 1.5), (2.0, 0.9, 2.2)])
    assert drawn.count("median 1.40×") == 2
    assert "The whole interval lies above 1 for 2." in drawn


def test_equal_and_extreme_ratios_make_a_plot():
    """One value throughout, and values a million apart."""
    assert "median 1.00×" in ratio_plot([(1.0, 1.0, 1.0)] * 3)
    assert all(-15 <= value <= 320 for value in numbers(ratio_plot([(1e-3, 1e-9, 1e3), (1e3, 1e-3, 1e9)])))


def test_bars_are_as_high_as_their_counts():
    """Twice the submissions, twice the bar; empty bins have none."""
    bars = re.findall(
        r'd="M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H[\d.]+Z" class="bar-after"', score_plot([0, 4, 8, 0], 40)
    )
    heights = [float(bottom) - float(top) for _, top, _, bottom in bars]
    assert len(bars) == 2
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert "10 to 20 points: 4" in score_plot([0, 4, 8, 0], 40)


def test_before_and_after_stand_beside_each_other():
    """Bars of one bin do not overlap."""
    drawn = moved_scores_plot([5, 0], [3, 2])
    spans = [tuple(map(float, span)) for span in re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)V', drawn)]
    spans.sort()
    assert len(spans) == 3
    assert all(right <= left for (_, right), (left, _) in pairwise(spans))


def test_rates_far_apart_are_on_a_log_axis():
    """So that the slowest arm can still be read."""
    near = rate_plot([("dali", "●", "DALI", summary([100, 200])), ("pytorch", "■", "loader", summary([90]))])
    far = rate_plot([("dali", "●", "DALI", summary([100_000])), ("pytorch", "■", "loader", summary([90]))])
    assert "log scale" not in near
    assert "log scale" in far
    assert "DALI: median 150, half of 2 submissions between 125 and 175." in near


@pytest.mark.parametrize("part", [share(0, 0), share(0, 5), share(5, 5)])
def test_bars_of_shares_stay_inside(part):
    """Nobody, none and all; without anybody there is only the track."""
    drawn = share_bar(part)
    assert all(0 <= value <= 100 for value in numbers(drawn))
    assert ('class="fill"' in drawn) == (part.whole > 0)
    assert "style=" not in drawn
