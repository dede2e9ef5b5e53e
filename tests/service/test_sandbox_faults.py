"""A Docker engine on a bad day, a missing image, a full disk: ours to repair, never a learner's failure."""

import os
import secrets
import subprocess
import time

import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.model.verdict import Status
from grader_service.service.pipeline import StageEnd
from grader_service.service.runner import run_next
from grader_service.store import operations
from grader_service.store.ids import Named
from sandbox.docker.runner import DockerRunner
from sandbox.process.runner import ProcessRunner
from tests.conftest import missing
from tests.sandbox.pod_broker import anew, grader_pods
from tests.service.harness import SLOW
from tests.service.local_service import containers_of, nothing_left, pods_at_work
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_an_engine_that_goes_away_and_comes_back(docker_service, proxy, engine):
    """(C9) Gone while a run is at work: no verdict from half a run; it is executed again, and everything is removed."""
    service = docker_service
    service.environment["DOCKER_HOST"] = proxy.url
    _, worker = service.both()
    submission_id, _ = service.post(service.message(source=SLOW.format(seconds=4)))
    wait_for(lambda: pods_at_work(engine, service.state_dir), 30)
    proxy.fail(".*", "drop")
    wait_for(lambda: "failed_by_us" in service.events(submission_id), 40)
    assert service.verdicts(submission_id) == []
    assert "run_done" not in service.events(submission_id)
    left = {container.id for container in containers_of(engine, service.state_dir)}
    assert left, "the engine was away: nobody can have removed the container"
    proxy.heal()
    service.one_verdict(submission_id)
    assert wait_for(lambda: nothing_left(engine, service.state_dir), 15)
    (run,) = service.runs(submission_id)
    assert run["attempts"] in (1, 2)
    assert "the Docker engine" in run["last_error"] or "pod" in run["last_error"]
    assert worker.process.poll() is None


def test_a_container_that_was_made_in_silence(docker_service, proxy, engine):
    """(C10) The engine made it and its answer was lost: the next try has a container of its own, and none is left."""
    service = docker_service
    service.environment["DOCKER_HOST"] = proxy.url
    service.both()
    lost = proxy.fail("POST .*/containers/create", "lose", times=1)
    submission_id, _ = service.post()
    service.one_verdict(submission_id)
    assert lost.met == 1
    (run,) = service.runs(submission_id)
    assert (run["attempts"], run["fence"]) == (1, 3)
    assert "pod could not be started" in run["last_error"]
    assert sum("/containers/create" in request for request in proxy.requests) == 2
    assert wait_for(lambda: nothing_left(engine, service.state_dir), 15)


def test_a_pod_broker_that_is_killed_during_a_run(docker_service, lab_image, engine, tmp_path):
    """The runner has no engine. It waits for the next broker, goes on by itself, and the run is executed again."""
    service, pods = docker_service, tmp_path / "pods"
    service.environment |= {
        "GRADER_POD_BROKER": str(pods / "broker.sock"), "DOCKER_HOST": f"unix://{tmp_path}/none.sock",
    }  # fmt: skip
    with grader_pods(pods, lab_image) as broker:
        _, worker = service.both()
        submission_id, _ = service.post(service.message(source=SLOW.format(seconds=4)))
        wait_for(lambda: pods_at_work(engine, pods), 30)
        broker.kill()
        wait_for(lambda: "failed_by_us" in service.events(submission_id), 40)
        assert service.verdicts(submission_id) == []
        assert "run_done" not in service.events(submission_id)
    with grader_pods(pods, lab_image) as broker:
        service.one_verdict(submission_id)
        (run,) = service.runs(submission_id)
        assert run["attempts"] == 1
        assert "pod broker" in run["last_error"]
        assert worker.process.poll() is None
        assert wait_for(lambda: nothing_left(engine, pods), 15)


def test_a_lab_image_that_was_built_anew_before_the_broker_came_back(docker_service, lab_image, engine, tmp_path):
    """The runner ends, so that its supervisor starts another, which works; nothing was counted against a run."""
    service, pods, name = docker_service, tmp_path / "pods", f"grader-test-{secrets.token_hex(4)}"
    service.environment |= {"GRADER_POD_BROKER": str(pods / "broker.sock"), "GRADER_LAB_IMAGE": name}
    engine.images.get(lab_image).tag(name, "latest")
    try:
        with grader_pods(pods, name):
            _, worker = service.both()
            wait_for(lambda: "runner_starts" in worker.log.read_text(), 30)
        anew(engine, lab_image, name)
        with grader_pods(pods, name):
            assert worker.process.wait(60) == 1
            assert "sandbox_outdated" in worker.log.read_text()
            service.runner()
            submission_id, _ = service.post()
            service.one_verdict(submission_id)
            (run,) = service.runs(submission_id)
            assert run["attempts"] == 0
    finally:
        service.stop()
        engine.images.remove(name, force=True)


def test_a_missing_image_is_an_operators_matter(docker_service, local, lab_image, engine):
    """(C11) A worker does not start without it; one that loses it dead-letters its runs, with what to do about it."""
    worker = docker_service.runner(GRADER_LAB_IMAGE="grader-nope")
    runner = DockerRunner(lab_image, local.state_dir)
    present, runner.image_id = runner.image_id, "sha256:" + "0" * 64
    with pytest.raises(SandboxUnavailable, match="grader images build"):
        runner.look()
    submission_id = local.submit()
    deps = local.deps(sandbox=runner)
    assert local.run_all(deps) == [StageEnd.FAILED] * 3
    run = local.run(submission_id)
    assert (run.state, run.attempts) == ("needs_attention", 3)
    assert "grader images build" in run.last_error
    assert local.judge() is None
    assert nothing_left(engine, local.state_dir)

    runner.image_id = present
    runner.look()
    assert operations.retry(local.store, "operator", Named(submission_id, run.run_id)) == 1
    assert run_next(deps) is StageEnd.STORED
    assert local.judge().status is Status.PASSED

    assert worker.process.wait(30) == 3
    assert "grader images build" in worker.log.read_text()


def test_a_run_that_hangs_is_ended(docker_runner, local, engine):
    """(C6) A pod that our own code waits for without end: its container is removed, and the failure is ours."""
    submission_id = local.submit(SLOW.format(seconds=60))
    started = time.monotonic()
    assert run_next(local.deps(sandbox=docker_runner, limit_s=2.0)) is StageEnd.FAILED
    assert time.monotonic() - started < 45, "the learner sleeps for a minute"
    run = local.run(submission_id)
    assert (run.state, run.attempts) == ("run_queued", 1)
    assert "hung: it was not done within 2 s" in run.last_error
    assert nothing_left(engine, docker_runner.state_dir)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 3 MiB: room for our code and twice the submission, as sent and in its workspace."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        missing("no disk can be mounted here (that needs root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("left_kib", [0, 400])
def test_a_full_disk_is_ours(local, small_disk, left_kib):
    """(C12) No room for a run's folder, or none for what it unpacks: tried again, dead-lettered, graded later."""
    filler = small_disk / "filler"
    with filler.open("wb") as file, pytest.raises(OSError, match="No space left"):
        while True:
            os.write(file.fileno(), b"\0" * 4096)
    os.truncate(filler, filler.stat().st_size - (left_kib << 10))
    submission_id = local.submit("# padding\n" * 60_000)
    deps = local.deps(sandbox=ProcessRunner(small_disk))
    assert run_next(deps) is StageEnd.FAILED
    run = local.run(submission_id)
    assert (run.state, run.attempts) == ("run_queued", 1)
    assert "No space left on device" in run.last_error
    assert list((small_disk / "runs").glob("*")) == []
    filler.unlink()
    assert local.run_all(deps) == [StageEnd.STORED]
    assert local.judge().status is Status.FAILED  # it answers nothing: judged on its merits at last
