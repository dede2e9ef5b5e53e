"""Shares, quantiles and bins, against numbers that others published or that a hand can check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader_service.report.cohort.spread import binned, quantile, share, summary


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    [
        pytest.param(81, 263, 0.2553, 0.3662, id="81 of 263"),
        pytest.param(15, 148, 0.0624, 0.1605, id="15 of 148"),
        pytest.param(0, 20, 0.0, 0.1611, id="0 of 20"),
        pytest.param(1, 29, 0.0061, 0.1718, id="1 of 29"),
    ],
)
def test_interval_of_a_share(part, whole, low, high):
    """The four examples of R. G. Newcombe (Statistics in Medicine 17, 1998, table I, method 3)."""
    found = share(part, whole)
    assert round(found.low, 4) == low
    assert round(found.high, 4) == high


def test_share_of_nothing_says_nothing():
    """Without anybody there is no share, and its interval is everything."""
    assert share(0, 0) == (0, 0, 0.0, 1.0)
    assert share(0, 0).value is None


@given(st.integers(1, 10_000).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole))))
def test_interval_holds_the_share(pair):
    """It stays within 0 and 1, and both ends are on their sides of the share."""
    found = share(*pair)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_quantiles_are_interpolated():
    """Between two neighbours, by distance."""
    assert [quantile([1, 2, 4], part) for part in (0, 0.25, 0.5, 0.75, 1)] == [1, 1.5, 2, 3, 4]
    assert quantile([7], 0.3) == 7


def test_summary_of_values():
    """Five quantiles and the mean; none of nothing."""
    found = summary(range(101))
    assert found == (101, 50, 5, 25, 50, 75, 95)
    assert summary([]) is None


def test_both_ends_belong_to_a_bin():
    """A score on an edge counts in the bin that starts there, full marks in the last one."""
    assert binned([0, 0.05, 0.1, 0.949, 0.95, 1.0, 1.2], 1.0, 20) == [1, 1, 1] + [0] * 15 + [1, 3]


@given(st.lists(st.floats(0, 1), max_size=50))
def test_every_value_is_in_one_bin(values):
    """Bins add up to the values."""
    assert sum(binned(values, 1.0, 20)) == len(values)
