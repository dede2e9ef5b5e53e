"""How often the decision is right, over many simulated runs, as `bench/decision.py` tabulates it."""

import numpy as np
import pytest

from bench import decision as simulator
from grader_service.measure.sequential_test import replay
from grader_service.model.lab import MeasurementPlan

pytestmark = pytest.mark.integration  # it needs no service: ten seconds of arithmetic are too long for `make check`
PLAN = MeasurementPlan()
RUNS = 40_000


def ends(ratio, sd, *, attempt=1, plan=PLAN, **noise):
    generator = np.random.default_rng([simulator.SEED, attempt, round(ratio * 1000), round(sd * 1000)])
    blocks = simulator.Noise("", sd, **noise).blocks(generator, ratio, (RUNS, plan.most_blocks))
    return simulator.simulate(blocks, plan, 1.1, attempt)


@pytest.mark.parametrize("plan", [PLAN, MeasurementPlan(looks=(3, 5, 9), extension_blocks=0, clear_share=0.0)])
@pytest.mark.parametrize("attempt", [1, 2, 7])
@pytest.mark.parametrize("sd", [0.02, 0.05, 0.1, 0.2])
def test_the_simulator_is_the_test(plan, attempt, sd):
    """Run by run the vectorised twin has the outcome and the block of the real one."""
    generator = np.random.default_rng([attempt, round(sd * 100)])
    seen = set()
    for ratio in (0.9, 1.0, 1.1, 1.2, 1.35, 1.6):
        blocks = simulator.Noise("", sd, tail_share=0.1).blocks(generator, ratio, (60, plan.most_blocks))
        twin = simulator.simulate(blocks, plan, 1.1, attempt)
        for row, outcome, used in zip(blocks, twin.outcome, twin.blocks, strict=True):
            decision = replay(row.tolist(), plan, 1.1, attempt=attempt)
            word = {1: "passed", -1: "failed", 0: "inconclusive"}[int(outcome)]
            assert (decision.outcome, decision.blocks_used) == (word, used)
            seen.add(word)
    assert {"passed", "failed"} <= seen


@pytest.mark.parametrize(
    ("sd", "noise"), [*((sd, {}) for sd in (0.02, 0.05, 0.10, 0.15, 0.3, 0.4)), (0.05, {"tail_share": 0.1})]
)
def test_at_the_threshold_at_most_one_in_two_hundred_passes(sd, noise):
    """False accepts at a true ratio of 1.10 stay within 0.5 %, also on hosts noisier than the plan assumes.

    The same when every tenth block scatters four times as much.
    """
    assert ends(1.1, sd, **noise).share(1) <= 0.005


def test_at_the_threshold_most_runs_are_inconclusive():
    """At exactly 1.10 and SD 5 % about 98 % are inconclusive; the rest nearly all fail, within that budget."""
    found = ends(1.1, 0.05)
    assert 0.97 <= found.share(0) <= 0.995
    assert 0.0 < found.share(-1) <= PLAN.alpha_fail


@pytest.mark.parametrize(
    ("sd", "noise", "inconclusive"), [(0.05, {}, 0.001), (0.05, {"tail_share": 0.1}, 0.03), (0.10, {}, 0.03)]
)
def test_who_is_clearly_faster_is_not_failed(sd, noise, inconclusive):
    """At 1.30 false rejects stay within 1 %, and so do, at SD 5 %, undecided runs: 0.1 %; 3 % in worse noise."""
    found = ends(1.3, sd, **noise)
    assert found.share(-1) <= 0.01
    assert found.share(0) <= inconclusive
    assert found.share(1) >= 0.97


@pytest.mark.parametrize("ratio", [1.5, 1.75, 2.0, 3.0])
def test_an_honest_ratio_is_decided_within_four_blocks(ratio):
    """From 1.5 on, at SD 5 %, 99 % of runs end with the first look, and they pass."""
    found = ends(ratio, 0.05)
    early = (found.blocks <= 4) & (found.outcome == 1)
    assert early.mean() >= 0.99


def test_without_the_clear_case_four_blocks_are_not_enough():
    """Why there is that rule: Student's t alone ends fewer than nine in ten runs of ratio 1.5 at the first look."""
    plan = MeasurementPlan(clear_share=0.0, look_share=1.0)
    found = ends(1.5, 0.05, plan=plan)
    assert (found.blocks <= 4).mean() < 0.9


@pytest.mark.parametrize("sd", [0.05, 0.15, 0.3, 0.4])
def test_resubmitting_gains_nothing(sd):
    """The false accepts of twenty attempts at 1.10 add up to at most 0.5 %."""
    total = sum(ends(1.1, sd, attempt=attempt).share(1) for attempt in range(1, 21))
    assert total <= 0.005


def test_ever_passing_rises_with_attempts_and_stays_bounded():
    """The chance within twenty attempts is that of all of them together, not of one."""
    generator = np.random.default_rng(5)
    chances = simulator.ever_passed(generator, simulator.Noise("", 0.05), 1.1, PLAN, 1.1, 10_000)
    assert chances == sorted(chances)
    assert 0 < chances[0] < chances[-1] <= 0.005


def test_later_attempts_still_pass_who_is_fast():
    """The tenth attempt of an honest graph at 1.5 is not lost: nearly all pass, with more blocks."""
    found = ends(1.5, 0.05, attempt=10)
    assert found.share(1) >= 0.999
    assert found.blocks.mean() <= 8


def test_a_graph_many_times_as_fast_takes_two_blocks():
    """At a true ratio of 5 nearly every run ends before the first look, even at SD 10 %."""
    assert (ends(5.0, 0.10).blocks == 2).mean() >= 0.98


@pytest.mark.parametrize("sd", [0.05, 0.3, 0.6])
def test_nobody_at_the_threshold_is_beyond_the_two_block_bound(sd):
    """Two blocks never pass a ratio of 1.10 but by noise that no host has."""
    found = ends(1.1, sd)
    assert ((found.blocks == 2) & (found.outcome == 1)).mean() <= 0.001
