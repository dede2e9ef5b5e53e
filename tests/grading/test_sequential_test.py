"""The sequential test decides as the plan says, and keeps its error rates."""

import math

import numpy as np
import pytest

from grader_service.model.lab import MeasurementPlan
from grader_service.sequential_test import decide

PLAN = MeasurementPlan()


def logs(*ratios):
    return [math.log(ratio) for ratio in ratios]


def test_no_decision_before_the_first_look():
    """Three blocks of four say nothing, however clear."""
    assert decide(logs(5, 5.1, 4.9), PLAN, 1.1) is None


def test_no_decision_between_looks():
    """Five blocks are no look."""
    assert decide(logs(5, 5, 5.1, 5, 4.9), PLAN, 1.1) is None


def test_a_clear_ratio_is_decided_at_the_first_look():
    """Twice the threshold needs four blocks."""
    decision = decide(logs(2.2, 2.3, 2.1, 2.25), PLAN, 1.1)
    assert (decision.outcome, decision.look, decision.blocks_used) == ("passed", 1, 4)
    assert decision.interval.low < decision.ratio < decision.interval.high


def test_a_low_ratio_fails():
    """Half the speed fails at the first look."""
    assert decide(logs(0.5, 0.52, 0.49, 0.5), PLAN, 1.1).outcome == "failed"


def test_the_last_look_always_answers():
    """What neither side reached is inconclusive."""
    ratios = logs(*([1.0, 1.2] * 6))
    assert decide(ratios, PLAN, 1.1).outcome == "inconclusive"


def test_equal_blocks_do_not_close_the_interval_to_a_point():
    """A clock's granularity is no certainty."""
    interval = decide(logs(2, 2, 2, 2), PLAN, 1.1).interval
    assert interval.high > interval.low


def test_one_block_is_no_evidence():
    """A spread needs two."""
    assert decide(logs(9.0), PLAN, 1.1, last=True) is None


@pytest.mark.parametrize(
    ("ratio", "spread", "outcome", "at_least"),
    [
        (1.10, 0.05, "passed", (0.0, 0.005)),
        (1.30, 0.05, "passed", (0.99, 1.0)),
        (1.00, 0.05, "passed", (0.0, 0.001)),
        (0.90, 0.05, "failed", (0.99, 1.0)),
        (1.50, 0.10, "passed", (0.95, 1.0)),
    ],
)
def test_operating_characteristic(ratio, spread, outcome, at_least):
    """At the threshold at most 0.5 % pass; well above it nearly all do; well below it nearly all fail."""
    generator = np.random.default_rng(20261121)
    runs = 4000
    hits = 0
    for _ in range(runs):
        blocks = (math.log(ratio) + generator.normal(0, spread, PLAN.looks[-1])).tolist()
        decision = next(d for size in PLAN.looks if (d := decide(blocks[:size], PLAN, 1.1)) is not None)
        hits += decision.outcome == outcome
    low, high = at_least
    assert low <= hits / runs <= high
