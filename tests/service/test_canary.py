"""A device that its steward took out of service comes back by a canary, and never against an operator's word.

The GPU is in memory; store, steward, gate and, where one is graded, the grading are the real ones.
"""

import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import func, select, text, update

from grader_service.errors import InfrastructureError
from grader_service.host.gpu.steward import Steward
from grader_service.service import canary_grading
from grader_service.service.canary import Canary
from grader_service.service.canary_grading import grade_canary, unexpected
from grader_service.service.gate import DeviceGate
from grader_service.service.pipeline import StageEnd
from grader_service.service.reference_keeping import ReferenceKeeping
from grader_service.store import devices
from grader_service.store.tables import DeviceRow, RunRow, ShareRow, SubmissionRow
from tests.command_line import invoked
from tests.factories import a_batch, a_clean_room, a_discovery, a_scan, an_evidence
from tests.host.gpu.memory import InMemoryGpu
from tests.service.canary_worker import FACTS
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

FIRST_S = 600.0
NAME = "GPU-1"
XID = "Xid 79: a fault of the GPU, its memory or its bus"


class World:
    """A GPU in quarantine, and its canary; `grading` is what happens in place of a submission, and may change."""

    def __init__(self, local):
        self.store = local.store
        self.gpu = InMemoryGpu(NAME)
        self.graded = 0
        self.grading = lambda: None
        devices.see(self.store, NAME, "host", "H100")
        self.quarantine()
        self.canary = self.of(self._grade)

    def of(self, grade):
        """A canary that grades otherwise, or that of a worker which was started anew."""
        return Canary(self.store, NAME, self.gpu, grade, first_s=FIRST_S, owner=f"host/{NAME}/1", patience_s=0.1)

    def quarantine(self, reason=XID):
        devices.quarantine(self.store, NAME, reason, "steward")

    def later(self, seconds):
        """As if so much time had passed."""
        with self.store.transaction() as connection:
            connection.execute(update(DeviceRow).values(canary_from=DeviceRow.canary_from - seconds))

    @property
    def device(self):
        (found,) = devices.devices(self.store)
        return found

    def _grade(self):
        self.graded += 1
        self.grading()


@pytest.fixture
def world(local):
    return World(local)


def wrong():
    raise InfrastructureError("a product of matrices comes out wrong")


def test_a_device_that_can_grade_again_comes_back(local, world):
    """By a real grading, once it is due; nothing of that is kept but who put it back, and why."""
    canary = world.of(lambda: grade_canary(local.deps().sandbox, "cpu", None, local.state_dir))
    assert not canary.look()
    world.later(FIRST_S)
    assert canary.look()
    assert (world.device.state, world.device.reason) == (devices.READY, None)
    kind, detail = local.events()[-1]
    assert kind == "device_ready"
    assert "canary" in detail["reason"]
    assert XID in detail["reason"]
    with local.store.transaction() as connection:
        for table in (SubmissionRow, RunRow, ShareRow):
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 0
    assert not canary.look()
    assert list((local.state_dir / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("right", "changed", "said"),
    [
        ("product = left @ right", "product = left @ right + 1", "a product of matrices comes out wrong"),
        ("first_batch.cpu().float()", "first_batch.cpu().float() + 3", "DALI's pixels lie 3"),
    ],
)
def test_a_gpu_that_computes_otherwise_does_not(local, world, monkeypatch, right, changed, said):
    """What it decodes and computes is held against the CPU."""
    assert canary_grading.SUBMISSION.count(right) == 1
    monkeypatch.setattr(canary_grading, "SUBMISSION", canary_grading.SUBMISSION.replace(right, changed))
    world.later(FIRST_S)
    assert world.of(lambda: grade_canary(local.deps().sandbox, "cpu", None, local.state_dir)).look()
    assert world.device.state == devices.QUARANTINED
    assert said in world.device.reason


AS_EXPECTED = {"scan": a_scan(distinct=64), "clean_room": a_clean_room()}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"discovery": None}, "said nothing"),
        ({"discovery": a_discovery(ran="timed_out")}, "timed_out"),
        ({"scan": a_scan(distinct=63)}, "counted 63"),
        ({"scan": None}, "counted none"),
        ({"clean_room": None}, "nothing was heard"),
        ({"clean_room": a_clean_room(batch=None, problem="crashed", problem_text="it crashed")}, "it crashed"),
        ({"clean_room": a_clean_room(batch=a_batch(device="cpu"))}, "on cpu"),
        ({"clean_room": a_clean_room(batch=a_batch(finite=False))}, "expected pictures"),
        ({"clean_room": a_clean_room(batch=a_batch(constant=True))}, "expected pictures"),
    ],
)
def test_what_a_canary_must_leave_behind(changes, said):
    """Every part of its evidence."""
    found = unexpected(an_evidence(**{**AS_EXPECTED, **changes}))
    assert found is None if said is None else said in found


def test_patience_grows_with_each_failure(local, world):
    """Ten minutes, twenty, forty, up to four hours; the list says when the last one failed, how, and when one comes."""
    world.grading = wrong
    for number, minutes in enumerate((10, 20, 40, 80, 160, 240, 240), start=1):
        world.later(60 * minutes - 30)
        assert not world.canary.look()
        world.later(60)
        assert world.canary.look()
        assert world.graded == number
        if number == 1:
            listed = invoked("devices", "list", GRADER_STATE_DIR=str(local.state_dir), COLUMNS="400").stdout
            assert "its canary failed at " in listed
            assert "the next one comes 20 min later: a product of matrices comes out wrong" in listed
    assert world.device.state == devices.QUARANTINED
    assert world.device.reason.count("canary") == 1
    assert world.device.reason.startswith(XID)
    assert [kind for kind, _ in local.events()] == ["device_quarantined", *["canary_failed"] * 7]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"processes": [4711]}, "4711"),
        ({"memory_used_mib": 9000}, "9000 MiB"),
        ({"recovery_action": "a GPU reset"}, "a GPU reset"),
        ({"gone": True}, "does not answer"),
        ({"xids": [63]}, "Xid 63"),
    ],
)
def test_nothing_is_graded_on_a_gpu_that_is_not_clean(world, change, reason):
    """Its steward has the first word; once it is content, the next canary puts it back."""
    before = {name: getattr(world.gpu, name) for name in change}
    for name, value in change.items():
        setattr(world.gpu, name, value)
    world.later(FIRST_S)
    assert world.canary.look()
    assert (world.device.state, world.graded) == (devices.QUARANTINED, 0)
    assert reason in world.device.reason
    for name, value in before.items():
        setattr(world.gpu, name, value)
    world.later(2 * FIRST_S)
    assert world.canary.look()
    assert (world.device.state, world.graded) == (devices.READY, 1)


@pytest.mark.parametrize("xid", [31, 79])
@pytest.mark.parametrize("grading", [lambda: None, wrong])
def test_a_fault_during_the_canary_counts_once(world, xid, grading):
    """Our own code makes no illegal access either; the next one begins anew."""

    def faulty():
        world.gpu.xids.append(xid)
        grading()

    world.grading = faulty
    world.later(FIRST_S)
    assert world.canary.look()
    assert world.device.state == devices.QUARANTINED
    assert f"Xid {xid}" in world.device.reason or (xid == 31 and "product" in world.device.reason)
    world.grading = lambda: None
    world.later(2 * FIRST_S)
    assert world.canary.look()
    assert world.device.state == devices.READY


def drained(world):
    devices.set_state(world.store, NAME, devices.DRAINING, "new driver", "operator:ann")


def mended_and_broken_again(world):
    devices.set_state(world.store, NAME, devices.READY, None, "operator:ann")
    world.quarantine("Xid 48")


@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [(drained, (devices.DRAINING, "new driver")), (mended_and_broken_again, (devices.QUARANTINED, "Xid 48"))],
)
@pytest.mark.parametrize("end", [lambda: None, wrong])
def test_what_was_decided_meanwhile_stands(world, meanwhile, expected, end):
    """Whatever became of the canary that had begun before."""

    def grading():
        meanwhile(world)
        end()

    world.grading = grading
    world.later(FIRST_S)
    assert world.canary.look()
    assert (world.device.state, world.device.reason) == expected


def test_a_drained_device_gets_no_canary(world):
    """Nor does one that failed while it was drained: an operator is at work on it."""
    drained(world)
    world.quarantine()
    world.later(30 * 86_400)
    assert not world.canary.look()
    assert world.device.state == devices.QUARANTINED
    devices.set_state(world.store, NAME, devices.READY, None, "operator:ann")
    world.quarantine()
    world.later(FIRST_S)
    assert world.canary.look()
    assert world.device.state == devices.READY


def test_a_relapse_waits_longer_until_a_day_was_good(world):
    """A device that only our submission comes through on takes few runs of learners with it."""
    for minutes in (10, 20, 40):
        world.later(60 * minutes - 30)
        assert not world.of(wrong).look()  # also of a worker that was started anew
        world.later(60)
        assert world.canary.look()
        assert world.device.state == devices.READY
        world.quarantine()
    world.later(60 * 80)
    assert world.canary.look()
    world.later(86_400)
    world.quarantine()
    world.later(FIRST_S)
    assert world.canary.look()
    assert world.device.state == devices.READY


def test_without_a_database_nothing_is_tried(world):
    """And nothing is raised: the look comes again."""
    world.later(FIRST_S)
    with world.store.transaction() as connection:
        connection.execute(text("alter table device rename to away"))
    assert not world.canary.look()
    assert world.graded == 0


def test_no_run_is_claimed_while_a_canary_is_at_work(local, world):
    """Not even where an operator put the device back meanwhile: the run comes after it."""
    begun, go_on = threading.Event(), threading.Event()
    happened = []

    def grading():
        begun.set()
        assert go_on.wait(30)
        happened.append("canary")

    world.grading = grading
    world.later(FIRST_S)
    steward = Steward(world.gpu, lambda reason: devices.quarantine(world.store, NAME, reason, "steward"))
    gate = DeviceGate(world.store, NAME, "host", "H100", steward)
    turns = ReferenceKeeping(local.deps(gate, owner=f"host/{NAME}/1"), world.canary, look_s=0.05)
    turns.watch()
    assert begun.wait(20)
    devices.set_state(world.store, NAME, devices.READY, None, "operator:ann")
    submission_id = local.submit()
    run = threading.Thread(target=turns.run_next, args=(happened.append,))
    run.start()
    run.join(1.0)
    assert local.run(submission_id).state == "run_queued"
    go_on.set()
    run.join(60)
    assert happened == ["canary", StageEnd.STORED]
    turns._turn.acquire()  # its thread ends with the process only, and the store goes before


@pytest.mark.slow
def test_a_worker_that_starts_on_a_quarantined_device_brings_it_back(service):
    """No wake-up reaches it before: its child begins by itself, grades ours, and then takes the next submission."""
    devices.see(service.store, FACTS.uuid, "host", FACTS.model)
    devices.quarantine(service.store, FACTS.uuid, XID, "steward")
    service.judge()
    worker = service.start(
        str(Path(__file__).with_name("canary_worker.py")),
        program=sys.executable,
        GRADER_CANARY_MINUTES="0.01",
        GRADER_LOCK_DIR=str(service.state_dir / "locks"),
    )
    wait_for(lambda: devices.state_and_reason(service.store, FACTS.uuid) == (devices.READY, None), 60)
    wait_for(lambda: worker.said("canary"), 20)  # which comes after the device is ready
    submission_id, _ = service.post()
    service.one_verdict(submission_id)
    assert worker.process.poll() is None
