"""Blocks interleave the arms, credit sandbagged baselines with the reference, and survive arms that are lost."""

import math

import pytest

from grader_service.grading.arms import ArmLost, Pace
from grader_service.grading.blocks import measure, reports
from grader_service.grading.progress import Silent
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, Window

PLAN = MeasurementPlan()


class SteadyArm:
    """An arm that delivers at a fixed rate on a clock of its own; a real implementation of `TimedArm` for tests."""

    def __init__(self, arm, rate, *, lost_after=None, log=None):
        self.arm = arm
        self.rate = rate
        self.windows = 0
        self._lost_after = lost_after
        self._log = log if log is not None else []

    def window(self, batches, *, timeout_s):
        self.windows += 1
        self._log.append(self.arm)
        if self._lost_after is not None and self.windows > self._lost_after:
            return ArmLost("it stopped")
        return Window(arm=self.arm, images=batches * 32, seconds=batches * 32 / self.rate)

    def batches_for(self, seconds):
        return max(2, math.ceil(self.rate * seconds / 32))


def run(dali, *baselines, threshold=1.1):
    return measure(dali, baselines, PLAN, threshold, Silent())


def test_a_fast_dali_passes_in_four_blocks():
    """A clear difference stops at the first look."""
    timed = run(SteadyArm(Arm.DALI, 1000), SteadyArm(Arm.LEARNER, 500), SteadyArm(Arm.DECLARED, 500))
    assert timed.decision.outcome == "passed"
    assert len(timed.blocks) == 4
    assert timed.decision.ratio == pytest.approx(2.0, rel=0.01)


def test_a_slow_loader_is_replaced_by_the_reference():
    """A sleeping loader gains nothing: 0.95 of the reference is the least baseline."""
    timed = run(SteadyArm(Arm.DALI, 1000), SteadyArm(Arm.LEARNER, 10), SteadyArm(Arm.DECLARED, 1000))
    assert timed.decision.outcome == "failed"
    assert {block.baseline for block in timed.blocks} == {Arm.DECLARED}
    assert timed.decision.ratio == pytest.approx(1 / 0.95, rel=0.01)


def test_a_crippled_configuration_is_replaced_by_the_fair_reference():
    """num_workers=0 everywhere but in the fair reference gains at most 10 %."""
    timed = run(
        SteadyArm(Arm.DALI, 1000),
        SteadyArm(Arm.LEARNER, 100),
        SteadyArm(Arm.DECLARED, 100),
        SteadyArm(Arm.FAIR, 1000),
    )
    assert timed.decision.ratio == pytest.approx(1 / 0.91, rel=0.01)
    assert timed.decision.outcome != "passed"


def test_a_fast_loader_of_the_learner_counts_in_full():
    """Nobody is helped by a learner's own loader being better than ours."""
    timed = run(SteadyArm(Arm.DALI, 1000), SteadyArm(Arm.LEARNER, 900), SteadyArm(Arm.DECLARED, 500))
    assert timed.decision.ratio == pytest.approx(1000 / 900, rel=0.01)


def test_the_order_goes_there_and_back():
    """Every second block runs in reverse, the fair reference in every second one only."""
    log = []
    arms = [SteadyArm(arm, 500, log=log) for arm in (Arm.DALI, Arm.LEARNER, Arm.DECLARED, Arm.FAIR)]
    timed = run(arms[0], *arms[1:])
    assert timed.blocks[0].order == (Arm.DALI, Arm.LEARNER, Arm.DECLARED, Arm.FAIR)
    assert timed.blocks[1].order == (Arm.DECLARED, Arm.LEARNER, Arm.DALI)


def test_a_lost_loader_leaves_the_reference():
    """A learner's loader that dies half-way is noted, and never counts as infinitely slow."""
    timed = run(SteadyArm(Arm.DALI, 1000), SteadyArm(Arm.LEARNER, 400, lost_after=3), SteadyArm(Arm.DECLARED, 500))
    assert timed.lost == {Arm.LEARNER: "it stopped"}
    assert timed.decision.outcome == "passed"
    assert timed.blocks[-1].baseline is Arm.DECLARED


def test_a_lost_dali_arm_gives_no_decision():
    """Without the graph there is nothing to decide."""
    timed = run(SteadyArm(Arm.DALI, 1000, lost_after=3), SteadyArm(Arm.DECLARED, 500))
    assert timed.decision is None
    assert timed.lost[Arm.DALI] == "it stopped"


def test_noise_runs_to_the_last_look():
    """A ratio at the threshold uses all blocks."""
    timed = run(SteadyArm(Arm.DALI, 550), SteadyArm(Arm.LEARNER, 500), SteadyArm(Arm.DECLARED, 300))
    assert timed.decision.outcome in ("inconclusive", "failed", "passed")
    assert len(timed.blocks) in PLAN.looks


def test_reports_give_median_and_range():
    """One row per arm, lost arms with their reason."""
    timed = run(SteadyArm(Arm.DALI, 1000), SteadyArm(Arm.LEARNER, 400, lost_after=0), SteadyArm(Arm.DECLARED, 500))
    rows = {row.arm: row for row in reports(timed, {}, {})}
    assert rows[Arm.DALI].images_per_s == pytest.approx(1000)
    assert rows[Arm.LEARNER].images_per_s is None
    assert "it stopped" in rows[Arm.LEARNER].notes[0]


def test_windows_hold_whole_bursts():
    """With four workers a window is a multiple of four batches, and at least two bursts."""
    pace = Pace(burst=4)
    assert pace.batches_for(1.0) == 8
    pace.saw(batches=8, seconds=0.5)
    assert pace.batches_for(1.1) % 4 == 0
    assert pace.batches_for(1.0) == 16
