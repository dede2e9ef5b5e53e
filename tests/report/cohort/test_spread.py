"""Shares, quantiles and bins, against numbers that a hand can check; intervals are those of `regrade.flakes`."""

from grader_service.report.cohort.spread import binned, quantile, share, summary


def test_share_of_nothing_says_nothing():
    """Without anybody there is no share, and its interval is everything."""
    assert share(0, 0) == (0, 0, 0.0, 1.0)
    assert share(0, 0).value is None


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
