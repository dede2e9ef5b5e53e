"""What a run leaves on its host goes once its result is stored and told: nobody waits for folders and volumes."""

import docker
import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.model.verdict import Status
from grader_service.service.pipeline import StageEnd
from grader_service.service.reference_keeping import ReferenceKeeping
from grader_service.service.runner import run_next
from sandbox.docker.runner import DockerRunner
from sandbox.process.runner import ProcessRunner
from tests.service.local_service import containers_of, nothing_left, volumes_of

pytestmark = pytest.mark.integration


@pytest.fixture
def proxied(lab_image, proxy, state_dir):
    """A runner on that engine."""
    client = docker.DockerClient(base_url=proxy.url, timeout=10)
    yield DockerRunner(lab_image, state_dir, client=client)
    client.close()


def test_it_goes_after_those_who_wait_are_told(docker_runner, local, engine):
    """By then its verdict is there and its pods have ended; when the next run may come, nothing of it is left."""
    submission_id, seen = local.submit(), []

    def told(end):
        left = (containers_of(engine, docker_runner.state_dir), volumes_of(engine, docker_runner.state_dir))
        seen.append((end, local.run(submission_id).state, local.judge().status, *map(len, left)))

    turns = ReferenceKeeping(local.deps(sandbox=docker_runner))
    assert turns.run_next(told) is StageEnd.STORED
    assert seen == [(StageEnd.STORED, "judge_queued", Status.PASSED, 0, 3)]
    assert nothing_left(engine, docker_runner.state_dir)


def test_what_cannot_be_removed_is_no_failure_of_the_run(proxied, proxy, engine, local, state_dir):
    """Its result counts, a sweep finds the rest, and the worker takes the next run."""
    first, second = local.submit(), local.submit()
    turns = ReferenceKeeping(local.deps(sandbox=proxied))
    assert turns.run_next(lambda _: proxy.fail("GET .*/containers/json|DELETE .*/volumes", "refuse")) is StageEnd.STORED
    assert local.run(first).state == "judge_queued"
    assert len(volumes_of(engine, state_dir)) == 3
    proxy.heal()
    assert turns.run_next(lambda _: None) is StageEnd.STORED
    assert local.run(second).state == "judge_queued"
    assert proxied.sweep() == 3
    assert nothing_left(engine, state_dir)


def test_a_run_that_fails_is_gone_before_it_is_said(local, tmp_path):
    """Somebody else may have it the next moment."""
    local.submit("raise SystemExit")
    folders = []

    class Broken(ProcessRunner):
        """Its engine fails when the second pod is to start."""

        def open_run(self, run_id, limits):
            space = super().open_run(run_id, limits)
            folders.append(space.submission_dir.parent)
            space.start = refuses
            return space

    def refuses(_):
        raise SandboxUnavailable("no pod today")

    turns = ReferenceKeeping(local.deps(sandbox=Broken(tmp_path / "broken")))
    assert turns.run_next(lambda end: folders.append((end, folders[0].exists()))) is StageEnd.FAILED
    assert folders[1] == (StageEnd.FAILED, False)


def test_alone_a_pod_is_not_frozen(proxied, proxy, local):
    """Nothing of the run comes after the learner's code, so that it cannot be in the way of anything."""
    local.submit()
    assert run_next(local.deps(sandbox=proxied)) is StageEnd.STORED
    assert not [request for request in proxy.requests if "/pause " in request]
    assert [request for request in proxy.requests if "/kill" in request]
