"""Requests that none of our code sends: the pod broker refuses them, and starts nothing."""

import json
from contextlib import contextmanager

import pytest

from sandbox.broker import wire
from sandbox.broker.client import CALL_S
from tests.sandbox.test_broker import own, started

pytestmark = pytest.mark.integration


RUN = {"workspace_mib": 64, "workspace_inodes": 1000, "shm_mib": 16}


POD = {
    "role": "learner", "program": "drill", "memory_mib": 256, "pids": 64, "cpus": [0], "shm_mib": 64, "scratch": "none",
    "submission": True, "shards": True, "gpu": False, "environment": {},
}  # fmt: skip


class Hostile:
    """A runner that sends what it likes."""

    def __init__(self, path):
        self.connection = wire.make_socket()
        self.connection.settimeout(CALL_S)
        self.connection.connect(str(path))

    def asks(self, **request):
        """The answer."""
        self.connection.send(json.dumps(request).encode())
        return self.hears()

    def hears(self):
        answer, given = wire.receive_answer(self.connection)
        if given is not None:
            given.close()
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


@pytest.fixture
def served(broker_runner, engine):
    """A broker that started nothing by the end that was refused."""
    yield broker_runner
    assert started(engine, broker_runner) == []


@contextmanager
def opened(runner, **changes):
    """A hostile runner with a run space, and what it needs to start pods in it."""
    with Hostile(runner._path) as hostile:
        request = {"run_id": own("hostile"), "image_id": runner.facts.image_digest, "limits": RUN}
        yield hostile, hostile.asks(ask="open", **{**request, **changes})


OTHER_PODS = {
    "an unknown field": {"privileged": True},
    "another field of the engine's": {"mounts": ["/:/host"]},
    "a program that is not there": {"program": "nothing"},
    "a module that is no program": {"program": "boot"},
    "a path as the program": {"program": "../../etc/passwd"},
    "an option as the program": {"program": "-c"},
    "a program with a line end": {"program": "drill\n"},
    "a variable of the loader's": {"environment": {"LD_PRELOAD": "/grader/submission/x.so"}},
    "a variable of ours": {"environment": {"GRADER_LINK": "/grader/submission/x"}},
    "no modules": {"environment": {"GRADER_AHEAD": "os; import x"}},
    "many modules": {"environment": {"GRADER_AHEAD": "a" * 501}},
    "processors that are not there": {"cpus": [99999]},
    "no processors": {"cpus": []},
    "processors as text": {"cpus": "0-7"},
    "a GPU where there is none": {"gpu": True},
    "a GPU for the scanner": {"gpu": True, "role": "scanner"},
    "an unknown role": {"role": "root"},
    "too much memory": {"memory_mib": 4097},
    "negative memory": {"memory_mib": -1},
    "too many processes": {"pids": 4097},
    "processes without end": {"pids": -1},
    "too much shared memory": {"shm_mib": 4097},
    "scratch of a volume": {"scratch": "/"},
    "a number as text": {"pids": "64"},
}


@pytest.mark.parametrize("changes", OTHER_PODS.values(), ids=OTHER_PODS)
def test_a_pod_that_none_of_our_code_asks_for(served, changes):
    """Is refused in words, and so is everything after it on that connection; the space goes on."""
    with opened(served) as (holder, space), Hostile(served._path) as hostile:
        refused = hostile.asks(ask="start", space=space.space, pod={**POD, **changes})
        assert isinstance(refused, wire.Refused)
        assert any(name.split(".")[0] in refused.why for name in changes)
        assert hostile.hears() is None
        assert isinstance(holder.asks(ask="close"), wire.Done)


OTHER_RUNS = {
    "a folder above": {"run_id": "../x"},
    "an absolute path": {"run_id": "/etc"},
    "slashes": {"run_id": "a/b"},
    "a dot": {"run_id": "."},
    "a long id": {"run_id": "a" * 129},
    "a line end": {"run_id": "a\n"},
    "another image": {"image_id": "sha256:" + "0" * 64},
    "an image by its name": {"image_id": "grader-service"},
    "a large workspace": {"limits": {**RUN, "workspace_mib": 4097}},
    "a large shared memory": {"limits": {**RUN, "shm_mib": 4097}},
    "many files": {"limits": {**RUN, "workspace_inodes": 100_001}},
    "options of a mount": {"limits": {**RUN, "o": "bind"}},
    "a volume of a folder": {"device": "/"},
}


@pytest.mark.parametrize("changes", OTHER_RUNS.values(), ids=OTHER_RUNS)
def test_a_run_space_that_none_of_our_code_asks_for(served, changes):
    """Is refused, and nothing of it is left."""
    with opened(served, **changes) as (_, refused):
        assert isinstance(refused, wire.Refused)
    runs = served._path.parent / "runs"
    assert not runs.exists() or list(runs.iterdir()) == []


@pytest.mark.parametrize(
    "request_",
    [
        {"ask": "destroy"},
        {"ask": "alive"},
        {"ask": "close"},
        {"ask": "start", "space": "0" * 32, "pod": POD},
        {"ask": "start", "space": "../../x", "pod": POD},
        {"ask": "facts", "image": "debian"},
        {"ask": "exec"},
        {"containers": "all"},
        [],
    ],
    ids=str,
)
def test_what_is_not_this_connections(served, request_):
    """No pod, no run space but its own, and no image but the lab's."""
    with Hostile(served._path) as hostile:
        hostile.connection.send(json.dumps(request_).encode())
        assert isinstance(hostile.hears(), wire.Refused)


def test_bytes_that_are_no_request(served):
    """Neither broken JSON nor a packet of more than we read ends the broker."""
    for packet in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"ask": "look", "image_id": "' + b"a" * 140_000 + b'"}'):
        with Hostile(served._path) as hostile:
            hostile.connection.send(packet)
            assert isinstance(hostile.hears(), wire.Refused)
    served.look()


def test_a_pod_asks_for_nothing_of_a_run_space(broker_runner):
    """And a run space for nothing of a pod."""
    with opened(broker_runner) as (holder, space), Hostile(broker_runner._path) as hostile:
        assert isinstance(hostile.asks(ask="start", space=space.space, pod=POD), wire.Started)
        assert isinstance(hostile.asks(ask="sweep"), wire.Refused)
        assert isinstance(holder.asks(ask="destroy"), wire.Refused)


def test_a_pod_whose_run_space_has_ended(broker_runner):
    """Nothing is told of how it ended, which was not its own doing: its runner must not take it for that."""
    with opened(broker_runner) as (holder, space), Hostile(broker_runner._path) as hostile:
        assert isinstance(hostile.asks(ask="start", space=space.space, pod=POD), wire.Started)
        assert isinstance(holder.asks(ask="close"), wire.Done)
        told = hostile.asks(ask="destroy")
        assert (type(told), "has ended" in told.why) == (wire.Refused, True)
