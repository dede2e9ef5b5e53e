"""GPUs that are shared, dirty, faulty or gone: runs wait or go elsewhere, and no learner pays for it.

The GPUs are in memory; steward, gate, lock, store and runs are the real ones.
"""

import dataclasses
import functools
import json
import signal
import threading
from dataclasses import dataclass

import pytest

from grader_service.errors import NotBegun, SandboxUnavailable
from grader_service.host.facts import Gpu, find_gpus
from grader_service.host.gpu.nvml import NvmlGpu
from grader_service.host.gpu.steward import Steward
from grader_service.model.verdict import Status
from grader_service.queue import run_worker
from grader_service.queue.app import make_app
from grader_service.retry_policy import RetryPolicy
from grader_service.run.progress import Silent
from grader_service.service.gate import DeviceGate
from grader_service.service.pipeline import StageEnd
from grader_service.service.reference_keeping import ReferenceKeeping
from grader_service.service.run_spaces import HostFitness
from grader_service.service.runner import RunnerDeps, run_next
from grader_service.settings import Settings
from grader_service.store import devices, leases, operations
from grader_service.store.ids import Named
from grader_service.store.results import load_evidence
from grader_service.store.sweep import expire_leases, to_announce
from grader_service.store.tables import EventRow
from tests.command_line import grader
from tests.host.gpu.memory import InMemoryGpu
from tests.host.gpu.nvml_memory import InMemoryCard, InMemoryInstance, InMemoryNvml
from tests.service.harness import QUICK, SLOW
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


@dataclass
class Card:
    """A GPU, the worker that has it, and what happens to it during a run."""

    gpu: InMemoryGpu
    deps: RunnerDeps
    during: list

    def run(self):
        return run_next(self.deps)


def deps_of(local, facts, gpu, during):
    """Dependencies of a worker on a GPU that a steward watches; what happens during its runs may change until then."""
    retire = functools.partial(devices.quarantine, local.store, facts.uuid, actor="local")
    gate = DeviceGate(local.store, facts.uuid, "host", facts.model, Steward(gpu, retire, patience_s=0.2))

    def progress(_):
        for change in during:
            change()
        return Silent()

    return local.deps(gate, gpu=facts, owner=f"host/{facts.uuid}", progress=progress)


@pytest.fixture
def card(local):
    """Makes GPUs with a worker each."""

    def make(number):
        facts, during = Gpu(number, "H100", f"GPU-{number:08d}", "580.1", 80_000), []
        gpu = InMemoryGpu(facts.uuid)
        return Card(gpu, deps_of(local, facts, gpu, during), during)

    return make


def device(local, card):
    return next(found for found in devices.devices(local.store) if found.device_id == card.gpu.uuid)


def gpu_of(local, submission_id):
    """What the evidence of a run says of its GPU."""
    stored = load_evidence(local.store, local.run(submission_id).run_id)
    return json.loads(stored.document)["run"]["gpu"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"processes": [4711]}, "processes 4711"),
        ({"memory_used_mib": 30_000}, "30000 MiB"),
        ({"recovery_action": "a GPU reset"}, "a GPU reset"),
        ({"xids": [48]}, "Xid 48"),
        ({"gone": True}, "does not answer"),
    ],
)
def test_a_gpu_that_is_not_clean_gets_no_run_and_another_one_does(local, card, change, reason):
    """(E3', E5', E7') It is quarantined with the reason before anything is claimed; the run costs no try of ours."""
    first, second = card(1), card(2)
    submission_id = local.submit()
    for name, value in change.items():
        setattr(first.gpu, name, value)
    assert first.run() is StageEnd.CLOSED
    assert (device(local, first).state, local.run(submission_id).attempts) == (devices.QUARANTINED, 0)
    assert reason in device(local, first).reason
    assert [kind for kind, _ in local.events()] == ["device_quarantined"]
    assert second.run() is StageEnd.STORED
    assert local.judge().status is Status.PASSED
    assert device(local, second).state == devices.READY


def test_a_look_at_the_gate_opens_and_closes_nothing(local, card):
    """What can wait keeps away from a device that a person uses or an operator drains, and nobody is told."""
    only = card(1)
    gate = only.deps.gate
    assert not gate.free()  # no worker has said yet that it is here
    assert gate.open()
    assert gate.free()
    only.gpu.processes = [4711]
    assert not gate.free()
    only.gpu.processes = []
    devices.set_state(local.store, only.gpu.uuid, devices.DRAINING, None, "admin")
    assert not gate.free()
    devices.set_state(local.store, only.gpu.uuid, devices.READY, None, "admin")
    assert gate.free()


def test_an_application_error_stays_with_its_run(local, card):
    """(E4') Xid 31 is recorded beside the result, which stands; the GPU takes the next run."""
    only = card(1)
    only.during.append(lambda: only.gpu.xids.append(31))
    submission_id = local.submit()
    assert only.run() is StageEnd.STORED
    health = gpu_of(local, submission_id)["health"]
    assert health["xids"] == [31]
    assert "illegal address" in health["notes"][0]
    assert local.judge().status is Status.PASSED
    only.during.clear()
    next_id = local.submit()
    assert only.run() is StageEnd.STORED
    assert gpu_of(local, next_id)["health"]["xids"] == []
    assert device(local, only).state == devices.READY


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda gpu: gpu.xids.extend([31, 79]), "Xid 79"),
        (lambda gpu: setattr(gpu, "recovery_action", "a node reboot"), "a node reboot"),
        (lambda gpu: setattr(gpu, "gone", True), "does not answer"),
    ],
)
@pytest.mark.parametrize("source", [QUICK, "raise RuntimeError('CUDA error: an illegal memory access')"])
def test_a_fault_of_the_hardware_parks_the_run(local, card, fault, reason, source):
    """(E4', E7') Whatever the learner's code made of it: nothing is stored, the GPU goes, and no other one gets the run
    before an operator has looked at it; nothing is counted against the learner."""
    first, second = card(1), card(2)
    first.during.append(lambda: fault(first.gpu))
    submission_id = local.submit(source)
    assert first.run() is StageEnd.FAILED
    run = local.run(submission_id)
    assert run.state == "needs_attention"
    assert f"{first.gpu.uuid} was taken out of service" in run.last_error
    assert reason in run.last_error
    assert load_evidence(local.store, run.run_id) is None
    assert device(local, first).state == devices.QUARANTINED
    assert first.run() is StageEnd.CLOSED  # nothing more is claimed by it
    assert second.run() is StageEnd.NOTHING
    (stuck,) = operations.queue_state(local.store).stuck
    assert stuck["run_id"] == run.run_id

    assert operations.retry(local.store, "operator", Named(submission_id, run.run_id)) == 1
    assert second.run() is StageEnd.STORED
    assert local.judge().status is (Status.PASSED if source == QUICK else Status.FAILED)


BROKE_OFF = pytest.mark.parametrize(
    ("error", "left", "state"),
    [
        (SandboxUnavailable, {"processes": [4711]}, "needs_attention"),
        (SandboxUnavailable, {"xids": [79]}, "needs_attention"),
        (RuntimeError, {"memory_used_mib": 30_000}, "needs_attention"),
        (SandboxUnavailable, {}, "run_queued"),
        (NotBegun, {"xids": [79]}, "run_queued"),
    ],
    ids=["a process is left", "its fault is told later", "a defect of ours", "the GPU is clean", "no code of its ran"],
)


@BROKE_OFF
def test_a_run_that_broke_off_is_dead_lettered_where_it_left_the_gpu_unfit(local, card, error, left, state):
    """The pods that died of the fault are told of first: whether it is one shows in a look as before the next run."""
    first, second = card(1), card(2)

    def breaks():
        for name, value in left.items():
            setattr(first.gpu, name, value)
        raise error("the clean room's pod ended")

    first.during.append(breaks)
    submission_id = local.submit()
    assert first.run() is StageEnd.FAILED
    run = local.run(submission_id)
    assert (run.state, run.attempts) == (state, 1)
    assert ("taken out of service" in run.last_error) == (state == "needs_attention")
    assert second.run() is (StageEnd.STORED if state == "run_queued" else StageEnd.NOTHING)


def test_a_run_that_hung_is_dead_lettered_where_the_gpu_failed(local, card):
    """It is no case for another try, though a run that hangs is."""
    only = card(1)
    only.during.append(lambda: only.gpu.xids.append(79))
    submission_id = local.submit(SLOW.format(seconds=60))
    deps = dataclasses.replace(only.deps, limit_s=4.0, lease_s=12.0)  # its code has begun by then, on a busy host too
    assert run_next(deps) is StageEnd.FAILED
    run = local.run(submission_id)
    assert run.state == "needs_attention"
    assert "Xid 79" in run.last_error


@pytest.mark.parametrize("unfit", [True, False])
def test_a_run_whose_runner_died_is_dead_lettered_where_it_left_the_gpu_unfit(local, card, unfit):
    """The runner in its place looks at the device before the lease ends; a clean one is no reason."""
    only = card(1)
    submission_id = local.submit()
    only.deps.gate.seen()
    assert leases.claim(local.store, "run", f"host/{only.gpu.uuid}/dead", 0.0) is not None
    only.gpu.recovery_action = "a GPU reset" if unfit else None
    ReferenceKeeping(only.deps).judge_what_was_left()
    assert device(local, only).state == (devices.QUARANTINED if unfit else devices.READY)
    assert expire_leases(local.store, RetryPolicy(max_attempts=3, delay_s=0.0)) == 1
    run = local.run(submission_id)
    assert (run.state, run.attempts) == ("needs_attention" if unfit else "run_queued", 1)
    assert (f"{only.gpu.uuid} was taken out of service" in run.last_error) == unfit


def test_a_new_runner_judges_nobody_where_no_run_was_left(local, card):
    """Somebody may use the GPU while nothing waits for it."""
    only = card(1)
    only.deps.gate.seen()
    only.gpu.processes.append(4711)
    ReferenceKeeping(only.deps).judge_what_was_left()
    assert device(local, only).state == devices.READY


def test_when_the_last_gpu_is_gone_the_queue_waits(local, card):
    """(E6') No tries are spent and no learner fails; `grader devices ready` lets the work go on."""
    only = card(1)
    waiting = [local.submit() for _ in range(2)]
    only.gpu.processes.append(4711)
    assert [only.run() for _ in range(5)] == [StageEnd.CLOSED] * 5
    assert local.judge() is None
    assert [(local.run(one).state, local.run(one).attempts) for one in waiting] == [("run_queued", 0)] * 2
    only.gpu.processes.clear()
    assert only.run() is StageEnd.CLOSED  # clean again, but neither a canary nor a person has tried it
    assert "4711" in grader("devices", "list", state_dir=local.state_dir, COLUMNS="200").stdout
    assert grader("devices", "ready", only.gpu.uuid, state_dir=local.state_dir).returncode == 0
    assert local.run_all(only.deps) == [StageEnd.STORED] * 2
    assert {local.judge().status for _ in waiting} == {Status.PASSED}


@pytest.mark.slow
def test_a_device_has_one_worker_and_obeys_the_operator(service):
    """(E1', E6') A second worker refuses to start; a drained device takes nothing, and goes on when it is put back."""
    _, first = service.both()
    name = wait_for(lambda: [found.device_id for found in devices.devices(service.store)], 30)[0]
    second = service.runner()
    assert second.process.wait(30) == 2
    assert "another grader of this host holds" in second.log.read_text()

    assert service.command("devices", "drain", name).returncode == 0
    wait_for(lambda: first.said("leaving_wake_ups_to_others"), 10)
    waiting = [service.post()[0] for _ in range(2)]
    for one in waiting:
        service.await_state(one, "run_queued")
    third = service.runner(1)
    for one in waiting:
        service.one_verdict(one)  # by the other device
    assert {run["lease_owner"] for one in waiting for run in service.runs(one)} == {None}
    assert third.end(signal.SIGTERM) == 0

    last, _ = service.post()
    service.await_state(last, "run_queued")
    assert service.command("devices", "ready", name).returncode == 0
    service.one_verdict(last, timeout_s=15)
    rows = sorted(service.rows(EventRow, EventRow.kind == "run_claimed"), key=lambda row: row["id"])
    claims = [row["actor"] for row in rows]
    assert ["cpu:" in actor and actor.split("/")[1].endswith(":0") for actor in claims] == [False, False, True]
    assert {run["attempts"] for one in (*waiting, last) for run in service.runs(one)} == {0}


def test_a_gpu_of_a_dead_worker_is_waited_for(local, card):
    """(E2') What the dead worker's run still holds is freed within the steward's patience; then the next run starts."""
    only = card(1)
    only.gpu.processes.append(4711)
    only.deps.gate._steward.patience_s = 10.0
    threading.Timer(0.5, only.gpu.processes.clear).start()
    submission_id = local.submit()
    assert only.run() is StageEnd.STORED
    assert device(local, only).state == devices.READY
    assert local.run(submission_id).attempts == 0


def test_a_gpu_that_vanished_before_its_worker_looked_is_taken_out_of_service(local, monkeypatch):
    """(E7') Gone between the worker's start and its first run: quarantined, and its wake-up is sent again."""
    monkeypatch.setattr(run_worker, "Steward", functools.partial(Steward, patience_s=0.2))
    settings = Settings(state_dir=local.state_dir, sandbox="process")
    facts = Gpu(0, "H100", "GPU-00000009", "580.1", 80_000)
    fitness = HostFitness()
    fitness.trust()
    child = run_worker.Child(settings, make_app(settings), facts, facts.uuid, "host/GPU-00000009", fitness)
    submission_id = local.submit()
    (wake_up,) = to_announce(local.store, silent_s=None)
    assert child(wake_up.run_id) is StageEnd.CLOSED
    (found,) = devices.devices(local.store)
    assert (found.state, found.device_id) == (devices.QUARANTINED, facts.uuid)
    assert "GPU-00000009 does not answer" in found.reason
    assert local.run(submission_id).state == "run_queued"
    assert to_announce(local.store, silent_s=None) == [wake_up]


def test_a_run_on_one_instance_beside_a_busy_and_failing_neighbour(local):
    """Its evidence names instance, profile and parent; the neighbour's faults reach its own steward only."""
    ours, neighbour = InMemoryInstance("MIG-ours"), InMemoryInstance("MIG-neighbour", gpu_instance=8, processes=[4711])
    card = InMemoryCard("GPU-parted", mig=True, instances={0: ours, 1: neighbour})
    nvml = InMemoryNvml(card)
    first, second = find_gpus(nvml)
    faults = [lambda: card.report(48, 8, 0)]
    deps = [deps_of(local, facts, NvmlGpu(facts.uuid, nvml), faults) for facts in (second, first)]
    submission_id = local.submit()
    # The neighbour's leftover is its own matter.
    assert [run_next(deps) for deps in deps] == [StageEnd.CLOSED, StageEnd.STORED]
    gpu = gpu_of(local, submission_id)
    assert gpu.pop("health") == {"memory_used_before_mib": 20, "xids": [], "notes": []}
    assert gpu == first.facts()
    assert (gpu["parent"], gpu["profile"], gpu["uuid"]) == ("GPU-parted", "1g.18gb", "MIG-ours")
    assert local.judge().provenance.gpu["parent"] == "GPU-parted"
    assert {found.device_id: (found.state, found.model) for found in devices.devices(local.store)} == {
        "MIG-ours": (devices.READY, "NVIDIA H200 MIG 1g.18gb"),
        "MIG-neighbour": (devices.QUARANTINED, "NVIDIA H200 MIG 1g.18gb"),
    }
