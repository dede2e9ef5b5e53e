"""Runs and the measuring of our reference take turns on a device."""

import threading
import time
from contextlib import contextmanager

import pytest

from grader_service.host.gpu.steward import GpuUnfit
from grader_service.labs.catalogue import load_lab
from grader_service.measure.kept_references import LEAST_LEARNERS, JobKey, KeptReferences
from grader_service.measure.reference_run import ReferenceTask, TimedReference
from grader_service.model.measurement import Arm, LoaderSettings, Window
from grader_service.service.pipeline import StageEnd
from grader_service.service.reference_keeping import ReferenceKeeping
from tests.factories import OpenGate
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

SETTINGS = LoaderSettings(batch_size=32, num_workers=2, pin_memory=True, persistent_workers=True, prefetch_factor=2)
NEVER_S = 3600.0


class Log(list):
    """What happened, in order."""

    def timed(self, _task):
        """Stands for the pod of the reference."""
        self.append("reference")
        return TimedReference((Window(arm=Arm.FAIR, images=500, seconds=1.0),), 1000.0)

    @contextmanager
    def quiet(self):
        """Stands for the pool of prepared runs."""
        self.append("quiet")
        yield
        self.append("loud")

    def after(self, end):
        """Stands for those who are told."""
        self.append(end)


class Gate(OpenGate):
    """A device that an operator may close."""

    def __init__(self):
        self.closed = False
        self.opened = 0
        self.released = 0

    def open(self):
        """See `DeviceGate.open`."""
        self.opened += 1
        return not self.closed

    def free(self):
        """See `DeviceGate.free`."""
        return not self.closed

    def release(self):
        """See `DeviceGate.release`."""
        self.released += 1


@pytest.fixture
def log():
    """A fresh one."""
    return Log()


@pytest.fixture
def keeping(local, log):
    """Makes a worker's turns; where it is due, runs before have shown a job."""
    made = []

    def make(gate, *, due=True, fresh_s=1800.0, look_s=NEVER_S):
        references = KeptReferences(log.timed, fresh_s, quiet=log.quiet)
        key = JobKey(None, "{}", SETTINGS, (0,), 1.0)
        task = ReferenceTask(load_lab("dali-pipelines", local.registry), None, (0,), {}, SETTINGS, (), 128)
        for number in range(LEAST_LEARNERS if due else 0):
            references.saw(key, task, f"learner-{number}", 1000.0)
        made.append(ReferenceKeeping(local.deps(gate, references=references), look_s=look_s))
        return made[-1]

    yield make
    for turns in made:
        turns._turn.acquire()  # their threads end with the process only, and the store goes before


def test_the_reference_comes_after_the_run_and_after_those_who_wait(local, log, keeping):
    """Nothing is prepared while it is measured; the device is released for both."""
    local.submit()
    gate = Gate()
    assert keeping(gate).run_next(log.after) is StageEnd.STORED
    assert log == [StageEnd.STORED, "quiet", "reference", "loud"]
    assert gate.released == 2


@pytest.mark.parametrize(("due", "submissions"), [(False, 1), (True, 0)])
def test_without_a_job_or_without_a_run_nothing_is_measured(local, log, keeping, due, submissions):
    """A wake-up for a run that somebody else took is no reason."""
    for _ in range(submissions):
        local.submit()
    keeping(Gate(), due=due).run_next(log.after)
    assert "reference" not in log


def test_a_closed_device_is_left_alone(log, keeping):
    """What its steward put aside, or an operator drains."""
    gate = Gate()
    turns = keeping(gate)
    gate.closed = True
    assert not turns.refresh()
    assert log == []


def test_a_closed_device_is_not_knocked_at_while_nothing_runs(log, keeping):
    """Nobody waits: its steward is not asked to judge who is on it, and no log says every ten seconds that it is
    closed."""
    gate = Gate()
    turns = keeping(gate, fresh_s=0.2, look_s=0.02)
    gate.closed = True
    turns.run_next(log.after)
    opened = gate.opened
    time.sleep(0.5)
    assert gate.opened == opened
    gate.closed = False
    wait_for(lambda: "reference" in log, 20.0)


@pytest.mark.parametrize("failure", [OSError("no space left on device"), GpuUnfit("it fell off the bus")])
def test_what_goes_wrong_there_is_not_the_runs(local, log, keeping, failure):
    """Whose result is stored and told by then: its end is what the worker hears."""
    local.submit()
    gate = Gate()

    def fails():
        if log.count("reference"):
            raise failure

    gate.release = fails
    assert keeping(gate).run_next(log.after) is StageEnd.STORED
    assert "reference" in log


def test_a_runner_without_references_only_runs(local, log):
    """The default."""
    local.submit()
    turns = ReferenceKeeping(local.deps())
    assert turns.run_next(log.after) is StageEnd.STORED
    assert log == [StageEnd.STORED]
    assert not turns.refresh()


def test_it_is_kept_fresh_while_nothing_runs_and_never_beside_a_run(local, log, keeping):
    """The first wake-up starts the look-out; a run that is open holds it up."""
    gate = Gate()
    turns = keeping(gate, fresh_s=0.2, look_s=0.05)
    turns.run_next(log.after)
    wait_for(lambda: log.count("reference") >= 2, 20.0)

    local.submit()
    seen = []

    def after(end):
        before = log.count("reference")
        time.sleep(0.6)
        seen.append((end, log.count("reference") - before))

    run = threading.Thread(target=turns.run_next, args=(after,))
    run.start()
    run.join(60.0)
    assert seen == [(StageEnd.STORED, 0)]
