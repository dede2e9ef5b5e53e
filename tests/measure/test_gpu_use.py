"""Means by arm: whose window a sample belongs to, and which samples belong to none."""

import time

import pytest

from grader_service.host.gpu.monitor import Utilisation
from grader_service.host.gpu.poll import GpuPoll, Sample
from grader_service.measure import tiers
from grader_service.measure.blocks import measure
from grader_service.measure.gpu_use import Span, use_by_arm
from grader_service.measure.interference import InterferenceMonitor
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm
from grader_service.run.progress import Silent
from tests.host.gpu.memory import InMemoryGpu
from tests.measure.scripted_host import ScriptedHost
from tests.measure.test_blocks import SETTLED, SteadyArm
from tests.waiting import wait_for


def sample(at, sm, *, jpg=0.0, processes=(1, 2)):
    return Sample(at, at, Utilisation(sm, jpg, 1000, processes, None, 0.2), {})


def between(samples):
    return lambda start, end: [one for one in samples if start <= one.at <= end]


def test_means_are_taken_over_each_arms_own_windows():
    """Two windows of DALI with a reference between them."""
    spans = [Span(Arm.DALI, 0.0, 1.0), Span(Arm.DECLARED, 1.0, 2.0), Span(Arm.DALI, 2.0, 3.0)]
    samples = [sample(0.5, 80, jpg=30), sample(1.5, 2), sample(2.5, 60, jpg=20, processes=(1, 2, 3)), sample(3.5, 99)]
    dali, declared = use_by_arm(spans, between(samples))
    assert (dali.arm, dali.samples, dali.sm_percent, dali.jpg_percent, dali.processes) == (Arm.DALI, 2, 70.0, 25.0, 3)
    assert (declared.arm, declared.samples, declared.sm_percent) == (Arm.DECLARED, 1, 2.0)


def test_a_look_that_still_shows_the_arm_before_is_left_out():
    """The driver's mean reaches back in time."""
    spans = [Span(Arm.DECLARED, 1.0, 2.0)]
    samples = [sample(1.1, 90), sample(1.19, 90), sample(1.21, 0), sample(1.9, 0)]
    (declared,) = use_by_arm(spans, between(samples))
    assert (declared.samples, declared.sm_percent) == (2, 0.0)


def test_figures_that_are_not_to_be_had_are_null():
    """No JPEG engine, no SM figure, or no sample at all."""
    spans = [Span(Arm.DALI, 0.0, 1.0), Span(Arm.FAIR, 5.0, 6.0)]
    dali, fair = use_by_arm(spans, between([sample(0.5, None, jpg=None)]))
    assert (dali.sm_percent, dali.jpg_percent, dali.memory_mib) == (None, None, 1000.0)
    assert (fair.samples, fair.memory_mib, fair.processes) == (0, None, None)


class LookedAt(InMemoryGpu):
    """A GPU in memory whose work goes on until it was looked at some times, however slow the host is."""

    looks = 0

    def utilisation(self):
        self.looks += 1
        return super().utilisation()

    def work(self):
        enough = self.looks + 12
        wait_for(lambda: self.looks >= enough, 15.0, every_s=0.001)


def working(arm, rate, gpu, sm):
    """An arm that keeps a GPU in memory as busy in each window as `sm` says, in real time."""

    def during(window):
        gpu.sm_percent = sm(window)
        gpu.work()
        gpu.sm_percent = 0.0

    return SteadyArm(arm, rate, during=during)


def test_a_sampler_in_the_background_tells_the_arms_apart():
    """The thread samples while windows run; blocks that the host contaminated leave no trace in the means."""
    gpu = LookedAt(processes=[5_000_001])
    dali = working(Arm.DALI, 1000, gpu, lambda window: 3.0 if window == SETTLED + 2 else 75.0)
    declared = working(Arm.DECLARED, 500, gpu, lambda _: 4.0)
    with GpuPoll(gpu, every_s=0.002) as poll:
        interference = InterferenceMonitor(ScriptedHost((None, "heat")), poll)
        timed = measure(dali, [declared], MeasurementPlan(), 1.1, Silent(), interference=interference)
    assert timed.blocks[1].spoiled == "heat"
    uses = {use.arm: use for use in timed.uses}
    assert uses[Arm.DALI].samples > 8
    # The edges of a window may show the pause before or after it, never the other arm.
    assert uses[Arm.DALI].sm_percent == pytest.approx(75.0, abs=15)
    assert uses[Arm.DECLARED].sm_percent == pytest.approx(4.0, abs=1)
    assert uses[Arm.DALI].processes == 1


class GoingOn:
    """A learner's code after its trials."""

    def __init__(self, gpu):
        self._gpu = gpu

    def go_on(self, seconds, *, timeout_s):
        start = time.monotonic()
        self._gpu.jpg_percent = 20.0
        self._gpu.work()
        self._gpu.jpg_percent = 0.0
        return Span(Arm.DALI, start, time.monotonic())


def test_code_that_would_pass_is_watched_and_then_a_loader_of_ours():
    """However short the windows of the trials were, both have been looked at."""
    gpu = LookedAt(processes=[5_000_001])
    with GpuPoll(gpu, every_s=0.002) as poll:
        reference = working(Arm.DECLARED, 500, gpu, lambda _: 4.0)
        dali, declared = tiers.watch(InterferenceMonitor(poll=poll), GoingOn(gpu), reference)
    assert (dali.arm, declared.arm) == (Arm.DALI, Arm.DECLARED)
    assert min(dali.samples, declared.samples) > 3
    assert dali.jpg_percent > 10
    assert declared.jpg_percent < 5


def test_nothing_is_watched_without_a_gpu():
    """A rehearsal has no use to report."""
    assert InterferenceMonitor().uses([Span(Arm.DALI, 0.0, 1.0)]) == ()
