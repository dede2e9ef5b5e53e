"""Who is left when a runner or the pod broker dies: nobody, and no failure becomes the learner's."""

import json
import secrets
import signal
import time

import pytest

from grader_service.errors import Outdated, SandboxUnavailable
from sandbox.api import PodRole, Scratch
from sandbox.broker import health
from sandbox.broker.client import BrokerRunner
from tests.command_line import grader
from tests.sandbox.docker.test_runner import containers, volumes
from tests.sandbox.owner import LIMITS, another_grader, ask, drill, talking
from tests.sandbox.pod_broker import anew, answers, grader_pods, serving
from tests.sandbox.prepared_runs import FULL_S, prepared
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
def run_id():
    """A fresh one."""
    return f"test-{secrets.token_hex(8)}"


def test_a_killed_runners_pods_go_at_once(broker_runner, engine, lab_image, tmp_path, run_id):
    """Its connections end, and with them its pods, its volumes and its folder; others' runs are not touched."""
    path = broker_runner._path
    runs = path.parent / "runs"
    with talking(broker_runner, f"{run_id}-live") as pod:
        with another_grader("broker", tmp_path / "other", run_id, lab_image, str(path)) as owner:
            assert len(containers(engine, run_id)) == 1
            assert len(volumes(engine, run_id)) == 3
            owner.kill()
            owner.wait()
            killed = time.monotonic()
            wait_for(lambda: not (runs / run_id).exists(), 10)
            assert time.monotonic() - killed < 30
        assert (containers(engine, run_id), volumes(engine, run_id)) == ([], [])
        assert ask(pod, kind="echo", value=2).body["value"] == 2
        assert broker_runner.sweep() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told to stop"])
def test_a_broker_that_ends_during_a_run(engine, lab_image, state_dir, tmp_path, run_id, number):
    """The run fails by us, however its pod ends; the next broker removes what is left, and the runner works on."""
    path = state_dir / "broker.sock"
    with grader_pods(state_dir, lab_image) as process:
        runner = BrokerRunner(path, lab_image, tmp_path)
        space = runner.open_run(run_id, LIMITS)
        space.__enter__()
        (space.submission_dir / "mine.py").write_text("1")
        pod, other = space.start(drill()), space.start(drill(PodRole.SCANNER, scratch=Scratch.READ_ONLY))
        ask(pod, kind="echo", value=1)
        process.send_signal(number)
        process.wait(60)
        assert len(containers(engine, run_id)) == (2 if number is signal.SIGKILL else 0)
    with pytest.raises(SandboxUnavailable, match="see that `grader pods` runs"):
        runner.look()
    with grader_pods(state_dir, lab_image):
        wait_for(lambda: containers(engine, run_id) == [], 20)
        with pytest.raises(SandboxUnavailable):
            pod.receive(30)
        assert not other.alive()
        with pytest.raises(SandboxUnavailable):
            space.start(drill())
        with pytest.raises(SandboxUnavailable):
            space.__exit__(None, None, None)
        assert volumes(engine, run_id) == []
        assert runner.sweep() == 1  # its folder, which held the submission
        assert not (state_dir / "runs" / run_id).exists()
        with talking(runner, f"{run_id}-next"):
            pass


def test_a_prepared_run_of_a_broker_that_went(lab_image, state_dir, tmp_path, run_id):
    """Serves nobody: its run space went with its pods, and a fresh one is opened."""
    path = state_dir / "broker.sock"
    with grader_pods(state_dir, lab_image) as process:
        runner = BrokerRunner(path, lab_image, tmp_path)
        with prepared(runner, drill(), look_s=1000) as (warm, pool):
            assert pool.waits(FULL_S)
            process.terminate()
            process.wait(60)
            with grader_pods(state_dir, lab_image):
                with warm.open_run(run_id, LIMITS) as space:
                    assert space._prepared is None
                    ask(space.start(drill()), kind="echo", value=1)
                pool.close()


def test_a_second_broker(lab_image, state_dir):
    """Does not start; the first one goes on."""
    settings = {
        "GRADER_POD_BROKER": str(state_dir / "broker.sock"), "GRADER_LAB_IMAGE": lab_image, "GRADER_GPU": "none",
        "GRADER_LOCK_DIR": str(state_dir),
    }  # fmt: skip
    with grader_pods(state_dir, lab_image):
        done = grader("pods", state_dir=state_dir, **settings)
        assert (done.returncode, "another pod broker serves" in done.stderr) == (2, True)
        assert answers(state_dir / "broker.sock")


def test_the_health_check(lab_image, state_dir, tmp_path, capsys, proxy, monkeypatch):
    """Well while the broker and its engine answer; else it says who does not."""
    path = str(state_dir / "broker.sock")
    monkeypatch.setenv("DOCKER_HOST", proxy.url)
    with serving(lab_image, state_dir):
        assert health.main(path) == 0
        proxy.fail(".*", "drop")
        assert (health.main(path), "Docker engine cannot be reached" in capsys.readouterr().out) == (1, True)
        proxy.heal()
    assert (health.main(path), "does not answer" in capsys.readouterr().out) == (1, True)


def test_the_health_check_of_a_deep_folder(lab_image, state_dir):
    """Whose path is longer than that of a socket may be."""
    deep = state_dir / ("d" * 100)
    deep.mkdir(mode=0o750)
    with serving(lab_image, deep) as path:
        assert health.main(str(path)) == 0


def test_an_image_that_was_built_anew(lab_image, state_dir, tmp_path, engine):
    """A runner that outlived its broker learns that the next one knows another image by that name."""
    name = f"grader-test-{secrets.token_hex(4)}"
    engine.images.get(lab_image).tag(name, "latest")
    try:
        with serving(name, state_dir) as path:
            runner = BrokerRunner(path, name, tmp_path)
        with serving(name, state_dir):
            runner.look()
        anew(engine, lab_image, name)
        with serving(name, state_dir) as path:
            with pytest.raises(Outdated, match="built anew"):
                runner.look()
            BrokerRunner(path, name, tmp_path).look()
    finally:
        engine.images.remove(name)


def test_folders_that_others_may_write_to(lab_image, state_dir):
    """Are refused with the command that closes them: there the engine would mount what somebody else put."""
    settings = {
        "GRADER_POD_BROKER": str(state_dir / "broker.sock"),
        "GRADER_LAB_IMAGE": lab_image,
        "GRADER_GPU": "none",
    }
    (state_dir / "runs").mkdir()
    (state_dir / "runs").chmod(0o775)
    done = grader("pods", state_dir=state_dir, **settings)
    assert done.returncode == 2
    assert f"chmod 750 {state_dir}/runs" in done.stderr.replace("\n", " ")


def test_doctor_says_who_starts_pods(lab_image, state_dir, tmp_path):
    """And whether the broker does; the engine itself is not asked then."""
    settings = {"GRADER_POD_BROKER": str(state_dir / "broker.sock"), "GRADER_LAB_IMAGE": lab_image}
    settings |= {"DOCKER_HOST": f"unix://{tmp_path}/none.sock", "GRADER_LOCK_DIR": str(tmp_path)}

    def told():
        done = grader("doctor", "--json", state_dir=tmp_path, **settings)
        found = {line["topic"]: line for line in map(json.loads, done.stdout.splitlines())}
        assert "Docker engine" not in found
        return done.returncode, found["pods"]["level"], found["pods"]["found"]

    with grader_pods(state_dir, lab_image):
        code, level, found = told()
        assert (code, level) == (0, "ok")
        assert f"started by the pod broker {state_dir}/broker.sock: docker " in found
    code, level, found = told()
    assert (code, level) == (3, "missing")
    assert "see that `grader pods` runs" in found


def test_a_broker_without_a_socket_or_an_engine(tmp_path):
    """Says what is missing, and exits as any command."""
    done = grader("pods", state_dir=tmp_path)
    assert (done.returncode, "GRADER_POD_BROKER" in done.stderr) == (2, True)
    where = {"GRADER_POD_BROKER": f"{tmp_path}/broker.sock", "GRADER_GPU": "none"}
    done = grader("pods", state_dir=tmp_path, DOCKER_HOST=f"unix://{tmp_path}/none.sock", **where)
    assert (done.returncode, "Docker engine cannot be reached" in done.stderr) == (3, True)
