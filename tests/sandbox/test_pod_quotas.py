"""What the kernel counts for each user, or for the host: one pod cannot take it from another."""

import pytest

from grader_service.errors import SandboxUnavailable
from sandbox.api import PodRole, Scratch
from sandbox.docker_runner import DockerRunner
from sandbox.pod_uids import PodUids
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
