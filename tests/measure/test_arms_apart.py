"""Nothing of one arm works while another is timed: pods of learners and their graphs run within their windows alone."""

import time

from grader_service.measure.arms import ArmLost, DaliArm, LearnerArm, LoaderReady
from grader_service.measure.blocks import measure
from grader_service.measure.host_effect import Job, measure_host
from grader_service.model.discovery import LoaderFacts
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm
from grader_service.run.progress import Silent
from sandbox.api import Ending
from sandbox.frames import Message
from tests.measure.test_blocks import SteadyArm

PLAN = MeasurementPlan(block_s=0.01)
WINDOW = ({"kind": "mark"}, {"kind": "window_done", "images": 64})
ANSWERS = {
    "window": WINDOW,
    "prepare_own": ({"kind": "prepared_own", "batch_size": 64, "queue_depth": 2},),
}
JOB = Job(files=[], plan={}, batch_size=32, threads=2, device="cpu")


class FrozenPod:
    """A pod that answers only while it runs, and has to be frozen whenever nobody wants anything of it."""

    def __init__(self, *, ends_at=None):
        self.running = False
        self.requests = []
        self._ends_at = ends_at
        self._answers = iter(())

    def send(self, body, blob=b"", *, timeout_s):
        assert self.running, f"{body['kind']} was asked for of a pod that is frozen"
        self.requests.append(body["kind"])
        self._answers = iter(ANSWERS[body["kind"]])
        return Ending.EXITED if body["kind"] == self._ends_at else None

    def receive(self, timeout_s):
        assert self.running
        time.sleep(0.001)
        return Message(next(self._answers), b"")

    def pause(self):
        self.running = False

    def resume(self):
        self.running = True

    def while_others_run(self, number):
        """For `SteadyArm`, in each of its windows."""
        assert not self.running


def test_the_graph_stands_still_while_the_others_are_timed():
    """A deep queue of large batches would be filled on their time."""
    room, own = FrozenPod(), FrozenPod()
    facts = LoaderReady.model_construct(loader=LoaderFacts.model_construct(num_workers=0), queue_depth=0)
    baselines = [LearnerArm(own, facts)]
    baselines += [
        SteadyArm(arm, 1000, during=pod.while_others_run)
        for arm, pod in ((Arm.DECLARED, room), (Arm.FAIR, own), (Arm.FAIR, room))
    ]
    assert measure(DaliArm(room, queue_depth=2), baselines, PLAN, 1.1, Silent()).blocks
    assert not room.running
    assert not own.running


def test_a_graph_that_breaks_leaves_nothing_running():
    """However a window ends."""
    room = FrozenPod(ends_at="window")
    assert isinstance(DaliArm(room, queue_depth=2).window(4, timeout_s=1.0), ArmLost)
    assert not room.running


def test_our_own_graph_stands_still_while_our_loader_is_timed():
    """What a host can show is measured by the same rule."""
    room = FrozenPod()
    fair = SteadyArm(Arm.FAIR, 1000, during=room.while_others_run)
    assert measure_host(room, [fair], JOB, PLAN, lambda _: None) is not None
    assert room.requests[0] == "prepare_own"
    assert not room.running
