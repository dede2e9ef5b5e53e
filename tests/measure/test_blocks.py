"""Blocks interleave the arms, credit sandbagged baselines with the reference, and survive arms and hosts that fail."""

import math

import pytest

from grader_service.host.gpu.monitor import GpuGone
from grader_service.host.gpu.poll import GpuPoll
from grader_service.measure.arms import ArmLost, Pace
from grader_service.measure.blocks import measure, reports, screen
from grader_service.measure.gpu_watch import GpuWatch
from grader_service.measure.interference import InterferenceMonitor, interference_monitor_with
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, KeptReference, Window
from grader_service.run.progress import Silent
from tests.host.gpu.memory import InMemoryGpu
from tests.measure.scripted_host import ScriptedHost
from tests.measure.test_comparison import FAIR

PLAN = MeasurementPlan()


class SteadyArm:
    """An arm that delivers at a fixed rate on a clock of its own; a real implementation of `TimedArm` for tests.

    `during` is called in each window with its 1-based number, so that things happen while the arm runs; a rate that it
    returns holds for this window.
    """

    def __init__(self, arm, rate, *, lost_after=None, log=None, during=None):
        self.arm = arm
        self.rate = rate
        self.windows = 0
        self.seconds = []
        self._lost_after = lost_after
        self._log = log if log is not None else []
        self._during = during

    def window(self, batches, *, timeout_s):
        self.windows += 1
        self._log.append(self.arm)
        rate = (self._during(self.windows) if self._during is not None else None) or self.rate
        if self._lost_after is not None and self.windows > self._lost_after:
            return ArmLost("it stopped")
        return Window(arm=self.arm, images=batches * 32, seconds=batches * 32 / rate)

    def batches_for(self, seconds):
        self.seconds.append(seconds)
        return max(2, math.ceil(self.rate * seconds / 32))


def run(dali, *baselines, threshold=1.1, interference=None):
    return measure(dali, baselines, PLAN, threshold, Silent(), interference=interference)


def run_on(gpu, dali, *baselines):
    """Measures on a GPU that exists in memory, with the real watches; nobody looks but between the windows."""
    notes = []
    with GpuPoll(gpu, every_s=3600.0) as poll:
        return run(dali, *baselines, interference=InterferenceMonitor(GpuWatch(poll, notes.append), poll, notes))


def fast():
    return (SteadyArm(Arm.DALI, 1000), SteadyArm(Arm.LEARNER, 500), SteadyArm(Arm.DECLARED, 400))


SETTLED = 3
"""Windows of a steady DALI arm before the first block; the other arms have two."""


@pytest.mark.parametrize(
    ("rates", "baseline", "ratio", "outcome"),
    [
        ({Arm.LEARNER: 10, Arm.DECLARED: 1000}, Arm.DECLARED, 1 / 0.95, "failed"),
        ({Arm.LEARNER: 100, Arm.DECLARED: 100, Arm.FAIR: 1000}, Arm.FAIR, 1 / 0.91, "failed"),
        ({Arm.LEARNER: 900, Arm.DECLARED: 500}, Arm.LEARNER, 1000 / 900, "passed"),
    ],
    ids=["a slow loader", "a crippled configuration", "a fast loader"],
)
def test_the_best_baseline_counts(rates, baseline, ratio, outcome):
    """A sleeping loader gains nothing: 0.95 of the reference is the least baseline, and 0.91 of the fair one.

    A learner's own loader that is better than ours counts in full.
    """
    timed = run(SteadyArm(Arm.DALI, 1000), *(SteadyArm(arm, rate) for arm, rate in rates.items()))
    assert {block.baseline for block in timed.blocks} == {baseline}
    assert timed.decision.ratio == pytest.approx(ratio, rel=0.01)
    assert timed.decision.outcome == outcome


def test_the_order_goes_there_and_back():
    """Every second block runs in reverse, the fair reference in every second one only."""
    timed = run(*(SteadyArm(arm, 500) for arm in (Arm.DALI, Arm.LEARNER, Arm.DECLARED, Arm.FAIR)))
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


def test_a_ratio_at_the_threshold_uses_all_blocks():
    """Nothing can be shown either way, so the test ends with the extension's look."""

    def shaken(window):
        return 550 * (1.05 if window % 2 else 1 / 1.05)

    timed = run(SteadyArm(Arm.DALI, 550, during=shaken), SteadyArm(Arm.LEARNER, 500), SteadyArm(Arm.DECLARED, 300))
    assert timed.decision.outcome == "inconclusive"
    assert len(timed.blocks) == PLAN.most_blocks


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
    pace.saw(batches=8, seconds=0.5, discarded=8, asked_s=0.9)
    assert pace.batches_for(1.1) % 4 == 0
    assert pace.batches_for(1.0) == 16


def test_a_window_that_was_heard_late_plans_no_endless_one():
    """Both marks were read at once: by that the rate would be millions, by the time since the request it is 40."""
    pace = Pace(burst=1)
    pace.saw(batches=2, seconds=2e-6, discarded=2, asked_s=0.1)
    assert pace.batches_for(1.0) == 40


def test_a_contaminated_block_is_kept_repeated_and_not_counted():
    """Its windows and its reason stay in the record; the decision has as many valid blocks as its look."""
    timed = run(*fast(), interference=InterferenceMonitor(ScriptedHost((None, "the host slept for 2.0 s", None))))
    assert [block.spoiled for block in timed.blocks] == [None, "the host slept for 2.0 s", None, None, None]
    assert [block.index for block in timed.blocks] == [0, 1, 2, 3, 4]
    assert len(timed.blocks[1].windows) == 3
    assert timed.blocks[2].order == timed.blocks[1].order
    assert timed.decision.outcome == "passed"
    assert timed.decision.blocks_used == 4


def test_an_arm_whose_windows_hang_together_hears_of_a_discarded_one():
    """Before its next window begins; nobody else's block is any of its business."""
    dali, told = SteadyArm(Arm.DALI, 1000), []
    dali.settled = True
    dali.discarded = lambda: told.append(dali.windows)
    timed = run(
        dali, SteadyArm(Arm.DECLARED, 500), interference=InterferenceMonitor(ScriptedHost((None, "heat", "heat", None)))
    )
    assert [block.spoiled for block in timed.blocks][:4] == [None, "heat", "heat", None]
    assert told == [2, 3]


@pytest.mark.parametrize("rate", [1.0, 1e6])
def test_a_throttled_block_cannot_decide(rate):
    """A rate that would change the decision is gone with its block, upwards and downwards."""
    gpu = InMemoryGpu()

    def throttled(window):
        gpu.throttled = "heat" if window == SETTLED + 2 else None
        return rate if gpu.throttled else None

    timed = run_on(gpu, SteadyArm(Arm.DALI, 550, during=throttled), *fast()[1:])
    assert [block.spoiled for block in timed.blocks[:3]] == [None, "the GPU's clocks were held down: heat", None]
    assert timed.decision.ratio == pytest.approx(1.1, rel=0.01)
    assert max(report.high for report in reports(timed, {}, {})) < 1000


def test_the_host_is_asked_before_a_rate_is_looked_at():
    """Between the beginning of a block and the host's answer nobody reads a rate."""
    log = []

    class Watched(Window):
        @property
        def images_per_s(self):
            log.append("rate")
            return super().images_per_s

    class Arms(SteadyArm):
        def window(self, batches, *, timeout_s):
            return Watched(**super().window(batches, timeout_s=timeout_s).model_dump())

    class Noted(ScriptedHost):
        def begin(self):
            log.append("begin")
            super().begin()

        def contamination(self):
            log.append("asked")
            return super().contamination()

    timed = run(Arms(Arm.DALI, 1000), Arms(Arm.DECLARED, 500), interference=InterferenceMonitor(Noted((None, "heat"))))
    assert timed.decision.outcome == "passed"
    assert log.count("rate") > 10
    blocks = [index for index, entry in enumerate(log) if entry == "begin"]
    assert len(blocks) == 5
    assert all(log[index + 1] == "asked" for index in blocks)


def test_a_window_of_a_contaminated_block_is_no_baseline_of_later_ones():
    """The fair reference runs in every second block only; a contaminated window of it must not stand in for later."""

    def contaminated_rate(window):
        return 1e6 if window == 2 else None

    timed = run(
        *fast(),
        SteadyArm(Arm.FAIR, 600, during=contaminated_rate),
        interference=InterferenceMonitor(ScriptedHost(("heat", None))),
    )
    assert timed.blocks[0].log_ratio < 0
    assert timed.decision.ratio == pytest.approx(1000 / (0.91 * 600), rel=0.02)


def test_a_host_that_never_settles_decides_nothing():
    """As many contaminated blocks as the last look has end the measurement, with the reasons."""
    timed = run(*fast(), interference=InterferenceMonitor(ScriptedHost(["heat", "heat", None] * 20)))
    assert timed.decision is not None, "four valid blocks came first"
    timed = run(
        *fast(), interference=InterferenceMonitor(ScriptedHost(["heat"] * 10 + ["the host slept for 1.0 s"] * 10))
    )
    assert timed.decision is None
    assert len(timed.blocks) == PLAN.looks[-1]
    assert timed.unsteady == "12 of 12 blocks were discarded: heat (10 blocks); the host slept for 1.0 s (2 blocks)"
    assert timed.lost == {}
    assert reports(timed, {}, {}) == ()


def test_an_arm_lost_in_a_contaminated_block_is_not_held_against_the_learner():
    """Whatever ended the graph, the host was not in order when it ended."""
    dali = SteadyArm(Arm.DALI, 1000, lost_after=SETTLED)
    timed = run(dali, *fast()[1:], interference=InterferenceMonitor(ScriptedHost(("the GPU reported Xid 79",))))
    assert "Xid 79" in timed.unsteady
    assert "it stopped" in timed.unsteady


def test_a_foreign_process_contaminates_blocks_until_it_ends():
    """It came after every arm was warm, so that it is not of this run."""
    # Beyond the largest process id of Linux, so that no process of this host is meant.
    ours, foreign = [5_000_011, 5_000_012], 5_000_099
    gpu = InMemoryGpu(processes=ours)

    def visit(window):
        gpu.processes = [*ours, foreign] if window in (SETTLED + 2, SETTLED + 3) else ours

    timed = run_on(gpu, SteadyArm(Arm.DALI, 1000, during=visit), *fast()[1:])
    assert [block.spoiled is not None for block in timed.blocks] == [False, True, True, False, False, False]
    assert "not of this run" in timed.blocks[1].spoiled
    assert ["foreign" in note for note in timed.notes] == [True], "said once, not in every block"
    assert not any(str(foreign) in note for note in timed.notes), "process ids of the host stay in its log"
    assert not any(str(foreign) in block.spoiled for block in timed.blocks if block.spoiled), "learners see this"


@pytest.mark.parametrize(
    ("xid", "contaminates"), [(13, False), (31, False), (45, False), (48, True), (79, True), (999, True)]
)
def test_only_xids_of_the_hardware_contaminate(xid, contaminates):
    """A learner's own is noted: who writes to illegal addresses is not given new blocks for it."""
    gpu = InMemoryGpu()

    def fault(window):
        if window > SETTLED:
            gpu.xids = [xid]

    timed = run_on(gpu, SteadyArm(Arm.DALI, 1000, during=fault), *fast()[1:])
    assert any(f"Xid {xid}" in note for note in timed.notes)
    assert (timed.unsteady is not None) == contaminates
    assert (timed.decision is None) == contaminates
    if not contaminates:
        assert len(timed.blocks) == 4


def test_an_xid_of_before_the_first_block_contaminates_nothing():
    """What the learner's own run of its code caused is known by the time that blocks begin."""
    gpu = InMemoryGpu(xids=[31])
    timed = run_on(gpu, *fast())
    assert [block.spoiled for block in timed.blocks] == [None] * 4
    assert any(note.startswith("before a block: Xid 31") for note in timed.notes)


@pytest.mark.parametrize("change", [{"gone": True}, {"recovery_action": "a GPU reset"}])
def test_a_gpu_that_is_lost_ends_the_run(change):
    """That is ours: the run is tried again, and no verdict comes of it."""
    gpu = InMemoryGpu()

    def fall(window):
        if window == SETTLED + 1:
            for name, value in change.items():
                setattr(gpu, name, value)

    with pytest.raises(GpuGone):
        run_on(gpu, SteadyArm(Arm.DALI, 1000, during=fall), *fast()[1:])


def test_a_gpu_that_cannot_be_watched_is_noted():
    """Where NVML is not to be had, blocks are taken without it; a clear difference stops at the first look."""
    with interference_monitor_with((0,), InMemoryGpu(gone=True)) as interference:
        timed = run(*fast(), interference=interference)
    assert (timed.decision.outcome, len(timed.blocks)) == ("passed", 4)
    assert timed.uses == ()
    assert "not watched" in timed.notes[0]


def test_dali_settles_until_two_windows_agree():
    """A GPU that needs time to reach its clocks does not spend the first block on it."""

    def warming(window):
        return {1: 300, 2: 500, 3: 700, 4: 900}.get(window)

    log = []
    dali = SteadyArm(Arm.DALI, 1000, during=warming, log=log)
    others = [SteadyArm(Arm.LEARNER, 500, log=log), SteadyArm(Arm.DECLARED, 400, log=log)]
    timed = run(dali, *others)
    assert timed.blocks[0].log_ratio == pytest.approx(math.log(2), abs=0.01)
    assert log[:2] == [Arm.DECLARED, Arm.LEARNER]
    assert log[2:9] == [Arm.DALI] * 7, "six windows to settle, then the first block begins with it"


@pytest.mark.parametrize(
    ("rates", "windows"), [((1000, 2000), 8), ((5, 5), 3)], ids=["a rate that never settles", "a slow graph"]
)
def test_settling_ends(rates, windows):
    """After a fixed number of windows, and after one that takes longer than the whole patience; then come blocks."""
    log = []
    dali = SteadyArm(Arm.DALI, 1000, during=lambda window: rates[window % 2], log=log)
    run(dali, SteadyArm(Arm.DECLARED, 400, log=log))
    assert log[: windows + 2] == [Arm.DECLARED] + [Arm.DALI] * windows + [Arm.DECLARED]


KEPT = KeptReference(images_per_s=1000.0, settings=FAIR, windows=3, age_s=60.0)


def screened(dali, own, interference=None):
    return screen(dali, own, KEPT, PLAN, 1.1, Silent(), interference=interference)


@pytest.mark.parametrize(("own", "ratio", "baseline"), [(400, 8000 / 910, Arm.FAIR), (2000, 4.0, Arm.LEARNER)])
def test_a_pass_by_two_blocks_beside_a_kept_reference_needs_no_other(own, ratio, baseline):
    """Two blocks of the graph and the learner's loader end it; the kept rate is a floor, as a timed one is."""
    timed = screened(SteadyArm(Arm.DALI, 8000), SteadyArm(Arm.LEARNER, own))
    assert timed.decision.outcome == "passed"
    assert timed.decision.ratio == pytest.approx(ratio, rel=0.01)
    assert {block.baseline for block in timed.blocks} == {baseline}
    assert [set(block.order) for block in timed.blocks] == [{Arm.DALI, Arm.LEARNER}] * 2


@pytest.mark.parametrize("rate", [3000, 1000, 100, 10])
def test_nothing_else_is_decided_beside_a_kept_reference(rate):
    """Neither a lesser pass nor any failure: the measurement begins anew, with references of its own."""
    timed = screened(SteadyArm(Arm.DALI, rate), SteadyArm(Arm.LEARNER, 400))
    assert timed.decision is None
    assert len(timed.blocks) == 2


def test_windows_beside_a_kept_reference_are_short():
    """Glaring takes no precision: the graph's are a third as long, and the loader's first one is its first block's."""
    log = []
    dali, own = SteadyArm(Arm.DALI, 8000, log=log), SteadyArm(Arm.LEARNER, 400, log=log)
    timed = screened(dali, own)
    assert log == [Arm.DALI] * SETTLED + [Arm.DALI, Arm.LEARNER, Arm.LEARNER, Arm.DALI]
    seconds = [window.seconds for block in timed.blocks for window in block.windows if window.arm is Arm.DALI]
    assert seconds == pytest.approx([0.3 * PLAN.block_s] * 2, rel=0.02)
    assert max(dali.seconds) <= 0.3 * PLAN.block_s


@pytest.mark.parametrize(("broken", "lost_after"), [(Arm.LEARNER, 1), (Arm.DALI, SETTLED + 1)])
def test_what_breaks_in_the_screen_is_lost_and_decides_nothing(broken, lost_after):
    """Without its loader nothing of this run stands beside the graph; a graph is lost as in any other block."""
    rates = {Arm.DALI: 8000, Arm.LEARNER: 400}
    arms = (SteadyArm(arm, rate, lost_after=lost_after if arm is broken else None) for arm, rate in rates.items())
    timed = screened(*arms)
    assert timed.lost == {broken: "it stopped"}
    assert timed.decision is None


def test_a_host_that_contaminates_the_screen_is_given_up_soon():
    """What a screen saves is not spent on repeating it."""
    interference = InterferenceMonitor(ScriptedHost(["a noisy host"] * 20))
    timed = screened(SteadyArm(Arm.DALI, 8000), SteadyArm(Arm.LEARNER, 400), interference)
    assert timed.decision is None
    assert len(timed.blocks) == 4
