"""What the kernel counts for each user, or for the host: one pod cannot take it from another."""

import os
import socket
import tempfile
from pathlib import Path

import docker
import pytest

from grader_service.errors import SandboxUnavailable
from sandbox.api import PodRole, Scratch
from sandbox.docker import engine as docker_engine
from sandbox.docker.pod_uids import PodUids
from sandbox.docker.runner import DockerRunner
from tests.sandbox.owner import LIMITS, ask, drill

FULL_PIPE = 65536


@pytest.fixture
def few(tmp_path):
    """Two ids."""
    return PodUids(tmp_path, 70001, 70002)


def test_no_id_is_taken_twice(few):
    """The lowest free one comes first; where none is free, that is said with the range."""
    first, second = few.take(), few.take()
    assert (first.uid, second.uid) == (70001, 70002)
    with pytest.raises(SandboxUnavailable, match=r"from 70001 to 70002 is taken.*fewer graders"):
        few.take()
    first.free()
    first.free()
    assert few.take().uid == 70001


def test_a_folder_that_is_not_there(tmp_path):
    """The setting is named."""
    with pytest.raises(SandboxUnavailable, match="GRADER_LOCK_DIR"):
        PodUids(tmp_path / "nowhere").take()


def test_an_id_is_free_although_its_descriptor_lives_on(few):
    """As in a process that was forked meanwhile."""
    taken = few.take()
    copy = os.dup(taken._descriptor)
    taken.free()
    assert few.take().uid == 70001
    os.close(copy)


def test_names_that_are_no_lock_files_are_passed_over(tmp_path, monkeypatch):
    """Whoever may write to the folder may have put them there."""
    names = [tmp_path / f"grader-uid-{uid}.lock" for uid in range(70001, 70005)]
    names[0].mkdir()
    names[1].symlink_to(tmp_path / "elsewhere")
    os.mkfifo(names[2])
    with socket.socket(socket.AF_UNIX) as planted:
        monkeypatch.chdir(tmp_path)  # an address has a hundred characters at most
        planted.bind(names[3].name)
        assert PodUids(tmp_path, 70001, 70005).take().uid == 70005
    assert not (tmp_path / "elsewhere").exists()


@pytest.fixture
def shared():
    """A folder that everybody may write to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        yield Path(name)


def test_files_of_other_users_are_counted(shared):
    """They stay when their grader is gone, and say nothing of whether it is."""
    (shared / "grader-uid-70001.lock").touch(0o000)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        few = PodUids(shared, 70001, 70002)
        taken = few.take()
        assert taken.uid == 70002
        with pytest.raises(
            SandboxUnavailable, match=r"; 1 belong to graders of other users: remove .* range of its own"
        ):
            few.take()
    finally:
        os.seteuid(before)


@pytest.fixture
def one_id(tmp_path):
    """One that the engine can map."""
    return PodUids(tmp_path, 60900, 60900)


@pytest.fixture
def shaky_runner(proxy, lab_image, state_dir, one_id, monkeypatch):
    """A runner with this id on an engine that can be made to fail."""
    monkeypatch.setattr(docker_engine, "_REMOVE_S", 0.2)
    monkeypatch.setattr(docker_engine, "_WAIT_S", 2)
    client = docker.DockerClient(base_url=proxy.url, timeout=6)
    yield DockerRunner(lab_image, state_dir, client=client, uids=one_id)
    client.close()


@pytest.mark.integration
def test_a_run_without_pods_keeps_no_id(shaky_runner, docker_runner, proxy, one_id):
    """Whether the engine can be reached at its end or not."""
    with pytest.raises(SandboxUnavailable), shaky_runner.open_run("quota-5", LIMITS):
        proxy.fail(".*", "refuse")
    one_id.take().free()
    with pytest.raises(SandboxUnavailable, match="scratch"), shaky_runner.open_run("quota-6", LIMITS):
        pass
    one_id.take().free()
    docker_runner.sweep()


@pytest.mark.integration
@pytest.mark.parametrize("by_sweep", [True, False])
def test_an_id_is_kept_until_no_pod_is_left(shaky_runner, docker_runner, proxy, one_id, by_sweep):
    """Where the engine could not be asked at the end of a run, it is when the next begins, or at a sweep."""
    with pytest.raises(SandboxUnavailable), shaky_runner.open_run("quota-7", LIMITS) as space:
        space.start(drill())
        proxy.fail("DELETE .*/containers", "refuse")
    shaky_runner.open_run("quota-8", LIMITS)  # the pod is there
    proxy.heal()
    proxy.fail("GET .*/containers/json", "refuse", times=1)
    shaky_runner.open_run("quota-8", LIMITS)  # the engine does not say
    with pytest.raises(SandboxUnavailable, match="is taken"):
        one_id.take()
    if by_sweep:
        shaky_runner.sweep()
    else:
        docker_runner.sweep()
        shaky_runner.open_run("quota-8", LIMITS)
    one_id.take().free()


def uid(pod):
    """Of the pod's process, as the pod sees it."""
    return ask(pod, kind="facts").body["uid"]


@pytest.mark.integration
def test_users_of_pods(docker_runner):
    """Pods that share files share a user, which is no other pod's, of this run or of another; it has a name."""
    with docker_runner.open_run("quota-1", LIMITS) as one, docker_runner.open_run("quota-2", LIMITS) as other:
        learner = one.start(drill())
        scanner = one.start(drill(PodRole.SCANNER, scratch=Scratch.READ_ONLY))
        room = one.start(drill(PodRole.CLEAN_ROOM, scratch=Scratch.NONE))
        neighbour = other.start(drill())
        assert uid(learner) == uid(scanner)
        assert len({uid(learner), uid(room), uid(neighbour), 0}) == 4
        ask(learner, kind="write", path="/workspace/own", size=1)
        assert ask(scanner, kind="size", path="/workspace/own").body["value"] == 1
    assert docker_runner.sweep() == 0


@pytest.mark.integration
def test_a_pod_that_takes_every_quota(docker_runner):
    """2,000 pipes are more than one user may have in full; a neighbour's are full all the same. The rest is refused."""
    with docker_runner.open_run("quota-3", LIMITS) as one, docker_runner.open_run("quota-4", LIMITS) as other:
        hostile, neighbour = one.start(drill()), other.start(drill())
        assert ask(hostile, kind="take_quotas", pipes=2000).body == {
            "kind": "taken",
            "pipes": 2000,
            "inotify": 0,
            "aio": 0,
        }
        assert ask(hostile, kind="pipe_size").body["value"] < FULL_PIPE
        assert ask(neighbour, kind="pipe_size").body["value"] == FULL_PIPE


@pytest.mark.integration
def test_an_unknown_oci_runtime(lab_image, state_dir):
    """Is told at the start, with those that there are."""
    with pytest.raises(SandboxUnavailable, match=r"GRADER_OCI_RUNTIME: expected .*runc.*, got 'nothing'"):
        DockerRunner(lab_image, state_dir, runtime="nothing")
