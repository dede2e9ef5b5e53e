"""The reference's rate from between runs: kept for one job, for minutes, and only where it cannot flatter a graph."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from checks.registry import Registry
from grader_service.errors import SandboxUnavailable
from grader_service.labs.catalogue import load_lab
from grader_service.measure import graph_timing
from grader_service.measure.kept_references import LEAST_LEARNERS, JobKey, KeptReferences, comparable
from grader_service.measure.reference_run import ReferenceTask, TimedReference
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, Window
from tests.hand_clock import HandClock
from tests.measure.test_comparison import FAIR

TWO_LOOKS = MeasurementPlan(looks=(2,), extension_blocks=0, glaring=2.0)
PIXELS = 500 * 375


class RecordedReferences:
    """Kept references whose windows are written down beforehand, and what was measured."""

    def __init__(self, fresh_s=1800.0):
        self.clock = HandClock()
        self.answers = [[400.0, 500.0, 450.0]]
        self.measured = []
        self.timed_pixels = PIXELS
        self.kept = KeptReferences(self._time, fresh_s, clock=self.clock)
        self.lab = load_lab("dali-pipelines", Registry())

    def _time(self, task):
        self.measured.append(task)
        answer = self.answers[min(len(self.measured), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        windows = answer and tuple(Window(arm=Arm.FAIR, images=round(rate), seconds=1.0) for rate in answer)
        return windows and TimedReference(windows, self.timed_pixels)

    def key(self, size=224, digest="sha256:1", cpus=(0, 1)):
        return JobKey(digest, comparable({"size": size, "crop": "random"}), FAIR, cpus, 1.0)

    def run(self, learners=("ada", "grace"), pixels=PIXELS, rate=None, **which):
        for learner in learners:
            key = self.key(**which)
            task = ReferenceTask(self.lab, key.image_digest, key.cpus, {"size": which.get("size", 224)}, FAIR, (), 128)
            self.kept.saw(key, task, learner, pixels, rate)

    def measure(self, **job):
        self.run(**job)
        self.kept.refresh()


@pytest.fixture
def recorded():
    return RecordedReferences()


def test_a_job_that_one_learner_had_is_not_measured(recorded):
    """One learner's odd job costs the others nothing, however often he sends it; what two had may be the cohort's."""
    recorded.run(["ada"] * 3 * LEAST_LEARNERS)
    assert not recorded.kept.due()
    assert not recorded.kept.refresh()
    recorded.run(["grace"])
    assert recorded.kept.due()
    assert recorded.kept.refresh()
    assert len(recorded.measured) == 1


def test_the_fastest_window_stands(recorded):
    """Whatever slowed a window down must not make a graph look better."""
    recorded.measure()
    recorded.clock.now += 60.0
    kept = recorded.kept.rate(recorded.key(), PIXELS)
    assert kept.images_per_s == 500.0
    assert kept.windows == 3
    assert kept.age_s == 60.0
    assert kept.settings == FAIR


def test_it_is_fresh_or_it_is_nothing(recorded):
    """Measured again when it is half as old as it may get; used until it is that old, and not a second longer."""
    recorded.measure()
    recorded.clock.now += 900.0
    assert not recorded.kept.due()
    recorded.clock.now += 1.0
    assert recorded.kept.due()
    recorded.clock.now += 899.0
    assert recorded.kept.rate(recorded.key(), PIXELS) is not None
    recorded.clock.now += 1.0
    assert recorded.kept.rate(recorded.key(), PIXELS) is None


@pytest.mark.parametrize("other", [{"size": 256}, {"digest": "sha256:2"}, {"cpus": (0, 1, 2)}])
def test_another_job_image_or_cpu_set_has_a_rate_of_its_own(recorded, other):
    """Nothing is carried over."""
    recorded.measure()
    assert recorded.kept.rate(recorded.key(**other), PIXELS) is None
    assert recorded.kept.rate(recorded.key(), PIXELS) is not None


@pytest.mark.parametrize(("share", "known"), [(0.92, True), (1.08, True), (0.88, False), (1.12, False)])
def test_images_of_another_size_are_another_job(recorded, share, known):
    """Larger images take longer to decode."""
    recorded.measure()
    assert (recorded.kept.rate(recorded.key(), share * PIXELS) is not None) is known


def test_the_size_is_that_of_the_images_that_were_timed(recorded):
    """Sizes are drawn anew for the reference: what counts is what it had, and not what the run before it had."""
    recorded.timed_pixels = 1.5 * PIXELS
    recorded.measure()
    assert recorded.kept.rate(recorded.key(), PIXELS) is None
    assert recorded.kept.rate(recorded.key(), 1.45 * PIXELS) is not None


@pytest.mark.parametrize(
    ("in_a_run", "pixels", "believed"),
    [(700.0, PIXELS, True), (720.0, PIXELS, False), (720.0, 0.8 * PIXELS, True), (None, PIXELS, True)],
)
def test_a_rate_that_runs_contradict_is_not_believed(recorded, in_a_run, pixels, believed):
    """Runs time the same loader beside everything else: one that is slower by itself had company. Of images of another
    size a run says nothing."""
    recorded.measure(pixels=pixels, rate=in_a_run)
    assert (recorded.kept.rate(recorded.key(), PIXELS) is not None) is believed


@pytest.mark.parametrize(
    ("failure", "wait_s", "told"),
    [
        (None, 900.0, nullcontext()),
        (SandboxUnavailable("not done within 20 s"), 3600.0, nullcontext()),
        (OSError("no space left on device"), 3600.0, pytest.raises(OSError, match="no space")),
    ],
)
def test_what_was_contaminated_or_failed_leaves_no_rate(recorded, failure, wait_s, told):
    """An old rate is not kept on instead. It is not tried again at once, and what failed only after four times as long:
    a job that somebody made slow must not make others wait. A bug counts as a failure, and is the caller's to log."""
    recorded.answers = [[400.0], failure, [300.0]]
    recorded.measure()
    recorded.clock.now += 1000.0
    with told:
        assert recorded.kept.refresh()
    assert recorded.kept.rate(recorded.key(), PIXELS) is None
    recorded.clock.now += wait_s
    assert not recorded.kept.due()
    recorded.clock.now += 1.0
    assert recorded.kept.refresh()
    assert recorded.kept.rate(recorded.key(), PIXELS).images_per_s == 300.0


def test_the_newest_job_comes_first_and_old_ones_make_room(recorded):
    """A worker keeps a few; who floods it with jobs only loses what is kept for himself and others, never a grade."""
    for size in (100, 200):
        recorded.run(size=size)
        recorded.clock.now += 1.0
    recorded.kept.refresh()
    assert recorded.measured[0].plan == {"size": 200}
    for size in range(300, 304):
        recorded.run(["ada"], size=size)
    assert recorded.kept.rate(recorded.key(size=200), PIXELS) is None
    assert not recorded.kept.due()


def test_a_job_of_yesterday_is_left_alone(recorded):
    """No GPU is used for what nobody hands in any more."""
    recorded.run()
    recorded.clock.now += 86400.0
    assert not recorded.kept.due()


def test_nothing_is_prepared_meanwhile(recorded):
    """A pod that imports torch would slow the reference down."""
    quiet = []

    @contextmanager
    def held():
        quiet.append(True)
        yield
        quiet.append(len(recorded.measured))

    recorded.kept.quiet = held
    recorded.measure()
    assert quiet == [True, 1]


@pytest.mark.parametrize(
    ("plan", "attempt", "keeps"),
    [
        (MeasurementPlan(), 1, True),
        (MeasurementPlan(), 2, False),
        (MeasurementPlan(glaring=None), 1, False),
        (TWO_LOOKS, 1, False),
    ],
)
def test_rates_are_kept_where_they_may_be_used(plan, attempt, keeps):
    """A job that no plan may end by is not measured between runs either."""
    session = SimpleNamespace(attempt=attempt, pod_set=SimpleNamespace(lab=SimpleNamespace(measurement=plan)))
    assert graph_timing._keeps(session) is keeps
