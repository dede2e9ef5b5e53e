"""`grader devices` as an operator types it: one device, or a host before it is shut down."""

import threading

import pytest
from sqlalchemy import update

from grader_service.cli import devices as devices_cli
from grader_service.errors import UsageError
from grader_service.store import devices
from grader_service.store.engine import Store
from grader_service.store.tables import RunRow, RunState, written
from tests import command_line
from tests.service.bench import Bench


@pytest.fixture
def bench(tmp_path):
    """Two devices of one host, and one of another."""
    made = Bench(tmp_path)
    for name, host in (("GPU-a", "big"), ("GPU-b", "big"), ("GPU-c", "small")):
        devices.see(made.store, name, host, "H200")
    yield made
    made.store.close()


def typed(bench, *words):
    """What `grader devices …` printed; what it refuses is raised."""
    env = {"GRADER_DATABASE_URL": bench.url, "GRADER_STATE_DIR": str(bench.state_dir), "GRADER_OPERATOR": "ann"}
    return command_line.typed("devices", *words, **env)


def states(bench):
    """Of every device."""
    return {one.device_id: (one.state, one.reason) for one in devices.devices(bench.store)}


def test_a_host_is_drained_and_put_back(bench):
    """Devices of other hosts go on; each move is kept with who made it, and why."""
    assert typed(bench, "drain", "--host", "big", "-m", "new driver") == ["GPU-a: draining", "GPU-b: draining"]
    drained = ("draining", "new driver")
    assert states(bench) == {"GPU-a": drained, "GPU-b": drained, "GPU-c": ("ready", None)}
    assert typed(bench, "ready", "--host", "big") == ["GPU-a: ready", "GPU-b: ready"]
    assert set(states(bench).values()) == {("ready", None)}
    kinds = [(kind, detail["device"]) for kind, detail in bench.events()]
    assert kinds == [
        ("device_draining", "GPU-a"), ("device_draining", "GPU-b"), ("device_ready", "GPU-a"), ("device_ready", "GPU-b")
    ]  # fmt: skip


def test_what_its_steward_closed_stays_closed(bench):
    """A host that comes back brings no GPU with it that nobody has looked at; it is said, and why."""
    devices.quarantine(bench.store, "GPU-b", "Xid 79", "steward")
    stays = "GPU-b stays quarantined: Xid 79"
    assert typed(bench, "drain", "--host", "big") == ["GPU-a: draining", stays]
    assert typed(bench, "ready", "--host", "big") == ["GPU-a: ready", stays]
    assert states(bench)["GPU-b"] == ("quarantined", "Xid 79")
    assert typed(bench, "ready", "GPU-b") == ["GPU-b: ready"]


@pytest.mark.parametrize("action", ["drain", "ready"])
def test_nothing_is_moved_by_a_slip(bench, action):
    """Neither one nor the other named, both, or one that is not there."""
    for words in ((), ("GPU-a", "--host", "big")):
        with pytest.raises(UsageError, match="name a device, or a host with --host"):
            typed(bench, action, *words)
    with pytest.raises(UsageError, match="no worker has announced a device of host bigg"):
        typed(bench, action, "--host", "bigg")
    with pytest.raises(UsageError, match="no worker has announced a device GPU-z"):
        typed(bench, action, "GPU-z")
    assert set(states(bench).values()) == {("ready", None)}


@pytest.mark.parametrize("drained_before", [False, True])
def test_waiting_ends_when_the_last_run_does(bench, monkeypatch, drained_before):
    """A run of the host that is at work is finished first; one elsewhere is nobody's matter. Also when it is asked
    a second time."""
    if drained_before:
        typed(bench, "drain", "--host", "big")
    monkeypatch.setattr(devices_cli, "_LOOK_S", 0.05)
    here, elsewhere = bench.run(bench.submit()).run_id, bench.run(bench.submit()).run_id
    at_work(bench.url, here, "big/GPU-b/1")
    at_work(bench.url, elsewhere, "small/GPU-c/1")
    ended = []

    def finish():
        ended.append(here)
        at_work(bench.url, here, None)

    thread = threading.Timer(1.0, finish)
    thread.start()
    assert typed(bench, "drain", "--host", "big", "--wait")[-1] == "nothing runs there"
    assert ended
    thread.join()


def at_work(url, run_id, owner):
    """As a runner's claim leaves it, or its end."""
    state = RunState.JUDGE_QUEUED if owner is None else RunState.RUNNING
    store = Store(url)
    with store.transaction() as connection:
        change = update(RunRow).where(RunRow.run_id == run_id)
        connection.execute(change.values(state=written(state), lease_owner=owner))
    store.close()
