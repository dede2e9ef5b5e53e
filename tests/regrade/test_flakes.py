"""The flake ledger: which checks vary over repetitions, at which rate, and how far measurements spread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from grader_service.regrade.flakes import MOST_UNSTEADY, flakes_of, wilson
from tests.regrade.makers import LOST, NOISY, a_batch, a_change, a_check, a_diff, a_rate, a_ratio, a_summary, repeated


def test_counts_what_varies_and_how():
    """Two of four submissions vary, both in the ratio; a third has other points every time, which is told apart."""
    scored = [a_summary("s:4", checks=(a_check("reflections", score=score), a_check())) for score in (25.0, 20.0, 25.0)]
    ledger = flakes_of(
        3,
        [
            repeated("s:1", {}, NOISY, {}),
            repeated("s:2", LOST, NOISY, {}),
            repeated("s:3", {}, {}, {}),
            repeated("s:4", *scored),
        ],
    )
    assert (ledger.repeats, ledger.submissions, ledger.varying) == (3, 4, 2)
    status, worst, *others = ledger.rows
    assert (status.lab, status.step, status.check, status.varying, status.rescored) == (None, None, None, 2, 1)
    assert (worst.lab, worst.step, worst.check) == ("dali-pipelines", "benchmark", "throughput_ratio")
    assert (worst.submissions, worst.varying, worst.rate, worst.rescored) == (4, 2, 0.5, 0)
    assert (worst.low, worst.high) == pytest.approx((0.15003898915214947, 0.8499610108478506))
    assert [(seen.result, seen.submissions) for seen in worst.results] == [
        ("inconclusive", 2),
        ("passed", 2),
        ("failed", 1),
    ]
    assert [(row.check, row.submissions, row.varying, row.rescored) for row in others] == [
        ("jpeg_dataset", 3, 0, 0),
        ("cuda_batch", 3, 0, 0),
        ("reflections", 4, 0, 1),
    ]
    assert [(item.submission_id, item.check, item.outcomes) for item in ledger.unsteady] == [
        ("s:1", None, ("passed", "inconclusive", "passed")),
        ("s:1", "throughput_ratio", ("passed", "inconclusive", "passed")),
        ("s:2", None, ("failed", "inconclusive", "passed")),
        ("s:2", "throughput_ratio", ("failed", "inconclusive", "passed")),
    ]


def test_a_check_that_is_not_always_there_varies():
    """It was absent once: that is an outcome like another."""
    ledger = flakes_of(2, [repeated("s:1", a_summary(checks=(a_check(), a_check("fresh"))), a_summary())])
    fresh = next(row for row in ledger.rows if row.check == "fresh")
    assert (fresh.varying, {seen.result for seen in fresh.results}) == (1, {"passed", "absent"})


@pytest.mark.parametrize(
    "changes", [[], [a_change("s:1"), repeated("s:2", {})]], ids=["nobody", "fewer_than_two_repetitions"]
)
def test_one_repetition_says_nothing(changes):
    """Nobody is counted, and the status has a row all the same."""
    ledger = flakes_of(5, changes)
    assert (ledger.submissions, ledger.varying, ledger.unsteady, ledger.spreads) == (0, 0, (), ())
    assert [(row.check, row.submissions, row.rate, row.low, row.high) for row in ledger.rows] == [(None, 0, 0, 0, 1)]


def test_spread_is_that_of_each_submission():
    """Sample SD over mean: 0.1 of 1.0, 1.1 and 1.2 over 1.1; the arms likewise; one measurement spreads nowhere."""
    ratios = [a_summary("s:1", ratio=a_ratio(value)) for value in (1.0, 1.1, 1.2)]
    steady = [a_summary("s:2", rates={"dali": a_rate(900.0)}) for _ in range(3)]
    once = [a_summary("s:3", ratio=ratio, rates={}) for ratio in (a_ratio(), None, None)]
    ledger = flakes_of(3, [repeated("s:1", *ratios), repeated("s:2", *steady), repeated("s:3", *once)])
    spreads = {spread.value: spread for spread in ledger.spreads}
    assert {value: spread.submissions for value, spread in spreads.items()} == {"ratio": 2, "dali": 2, "pytorch": 1}
    assert spreads["ratio"].highest == spreads["ratio"].p95 == pytest.approx(0.1 / 1.1)
    assert spreads["ratio"].median == pytest.approx(0.05 / 1.1)
    assert spreads["dali"].highest == 0.0


def test_names_are_bounded_and_the_rest_is_counted():
    """Each varying submission has two lines, its status and its check."""
    ledger = flakes_of(2, (repeated(f"s:{n:04d}", {}, NOISY) for n in range(MOST_UNSTEADY)))
    assert (len(ledger.unsteady), ledger.unsteady_beyond) == (MOST_UNSTEADY, MOST_UNSTEADY)
    assert ledger.varying == MOST_UNSTEADY


def test_a_diff_has_the_ledger_of_its_repetitions():
    """Outdated submissions are noise like any other; a batch without repetitions has no ledger."""
    changes = [repeated("s:1", {}, NOISY), repeated("s:2", {}, NOISY, outdated=True), repeated("s:3", {}, {})]
    diff = a_diff(changes, a_batch(repeats=2))
    assert diff.flakes == flakes_of(2, changes)
    assert (diff.flakes.varying, diff.flakes.submissions, diff.compared) == (2, 3, 2)
    assert a_diff(changes).flakes is None


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counted):
    """As SciPy computes it, with the rate inside and both ends between 0 and 1."""
    hits, of = counted
    low, high = wilson(hits, of)
    reference = binomtest(hits, of).proportion_ci(0.95, method="wilson")
    assert (low, high) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert 0 <= low <= hits / of <= high <= 1


@given(st.lists(st.lists(st.sampled_from(["passed", "failed", "inconclusive"]), min_size=2, max_size=4), max_size=8))
def test_rates_are_of_whole_submissions(outcomes):
    """A submission varies when its outcomes are not all the same, however many repetitions it has."""
    changes = [
        repeated(f"s:{n}", *({"throughput_ratio": outcome} for outcome in row)) for n, row in enumerate(outcomes)
    ]
    ledger = flakes_of(4, changes)
    varying = sum(len(set(row)) > 1 for row in outcomes)
    assert (ledger.submissions, ledger.varying) == (len(outcomes), varying)
    for row in ledger.rows:
        assert row.varying == (varying if row.check in {None, "throughput_ratio"} else 0)
        assert row.low <= row.rate <= row.high
