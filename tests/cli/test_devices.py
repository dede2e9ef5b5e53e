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
from tests.service.local_service import LocalService


@pytest.fixture
def local(tmp_path):
    """Two devices of one host, and one of another."""
    made = LocalService(tmp_path)
    for name, host in (("GPU-a", "big"), ("GPU-b", "big"), ("GPU-c", "small")):
        devices.see(made.store, name, host, "H200")
    yield made
    made.store.close()


def typed(local, *words):
    """What `grader devices …` printed; what it refuses is raised."""
    env = {"GRADER_DATABASE_URL": local.url, "GRADER_STATE_DIR": str(local.state_dir), "GRADER_OPERATOR": "ann"}
    return command_line.typed("devices", *words, **env)


def states(local):
    """Of every device."""
    return {one.device_id: (one.state, one.reason) for one in devices.devices(local.store)}


def test_a_host_is_drained_and_put_back(local):
    """Devices of other hosts go on; each move is kept with who made it, and why."""
    assert typed(local, "drain", "--host", "big", "-m", "new driver") == ["GPU-a: draining", "GPU-b: draining"]
    drained = ("draining", "new driver")
    assert states(local) == {"GPU-a": drained, "GPU-b": drained, "GPU-c": ("ready", None)}
    assert typed(local, "ready", "--host", "big") == ["GPU-a: ready", "GPU-b: ready"]
    assert set(states(local).values()) == {("ready", None)}
    kinds = [(kind, detail["device"]) for kind, detail in local.events()]
    assert kinds == [
        ("device_draining", "GPU-a"), ("device_draining", "GPU-b"), ("device_ready", "GPU-a"), ("device_ready", "GPU-b")
    ]  # fmt: skip


def test_what_its_steward_closed_stays_closed(local):
    """A host that comes back brings no GPU with it that nobody has looked at; it is said, and why."""
    devices.quarantine(local.store, "GPU-b", "Xid 79", "steward")
    stays = "GPU-b stays quarantined: Xid 79"
    assert typed(local, "drain", "--host", "big") == ["GPU-a: draining", stays]
    assert typed(local, "ready", "--host", "big") == ["GPU-a: ready", stays]
    assert states(local)["GPU-b"] == ("quarantined", "Xid 79")
    assert typed(local, "ready", "GPU-b") == ["GPU-b: ready"]


@pytest.mark.parametrize("action", ["drain", "ready"])
def test_nothing_is_moved_by_a_slip(local, action):
    """Neither one nor the other named, both, or one that is not there."""
    for words in ((), ("GPU-a", "--host", "big")):
        with pytest.raises(UsageError, match="name a device, or a host with --host"):
            typed(local, action, *words)
    with pytest.raises(UsageError, match="no worker has announced a device of host bigg"):
        typed(local, action, "--host", "bigg")
    with pytest.raises(UsageError, match="no worker has announced a device GPU-z"):
        typed(local, action, "GPU-z")
    assert set(states(local).values()) == {("ready", None)}


@pytest.mark.parametrize("drained_before", [False, True])
def test_waiting_ends_when_the_last_run_does(local, monkeypatch, drained_before):
    """A run of the host that is at work is finished first; one elsewhere is nobody's matter. Also when it is asked
    a second time."""
    if drained_before:
        typed(local, "drain", "--host", "big")
    monkeypatch.setattr(devices_cli, "_LOOK_S", 0.05)
    here, elsewhere = local.run(local.submit()).run_id, local.run(local.submit()).run_id
    at_work(local.url, here, "big/GPU-b/1")
    at_work(local.url, elsewhere, "small/GPU-c/1")
    ended = []

    def finish():
        ended.append(here)
        at_work(local.url, here, None)

    thread = threading.Timer(1.0, finish)
    thread.start()
    assert typed(local, "drain", "--host", "big", "--wait")[-1] == "nothing runs there"
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
