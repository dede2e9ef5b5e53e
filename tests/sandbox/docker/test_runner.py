"""The Docker runner on a real engine: what it leaves behind, and what an engine may do to it."""

import secrets
import time

import docker
import psutil
import pytest

from grader_service.errors import SandboxUnavailable
from sandbox.api import Ending, PodRole, Scratch
from sandbox.docker import engine as docker_engine
from sandbox.docker.runner import DockerRunner, connect_engine
from sandbox.gpu_access import GpuName
from tests.sandbox.owner import LIMITS, another_grader, ask, drill, talking
from tests.service.local_service import nothing_left

pytestmark = pytest.mark.integration


def containers(engine, run_id):
    return engine.containers.list(all=True, filters={"label": f"org.grader.run={run_id}"}, ignore_removed=True)


def volumes(engine, run_id):
    return engine.volumes.list(filters={"label": f"org.grader.run={run_id}"})


@pytest.fixture
def run_id(engine):
    """A fresh run id; whatever a failed test left of it is removed."""
    name = f"test-{time.time_ns():x}"
    yield name
    for container in containers(engine, name):
        container.remove(force=True)
    for volume in volumes(engine, name):
        volume.remove(force=True)


@pytest.fixture
def shaky_runner(proxy, lab_image, state_dir, monkeypatch):
    """A runner on that engine, with little patience."""
    monkeypatch.setattr(docker_engine, "_REMOVE_S", 2.0)
    monkeypatch.setattr(docker_engine, "_WAIT_S", 2)
    monkeypatch.setattr(docker_engine, "_PAUSE_S", 2.0)
    client = docker.DockerClient(base_url=proxy.url, timeout=6)
    yield DockerRunner(lab_image, state_dir, client=client)
    client.close()


class TestLeftovers:
    """What a grader leaves when it is killed, and who takes it away."""

    @pytest.mark.parametrize("status", ["running", "paused"])
    def test_a_killed_graders_run_is_swept(self, engine, lab_image, docker_runner, state_dir, run_id, status):
        """Its containers stay; a sweep finds them, its volumes and its folder, once it is dead and not before."""
        with another_grader("docker", state_dir, run_id, lab_image) as grader:
            if status == "paused":
                docker_engine.DockerHandle(*containers(engine, run_id)).pause()
            assert [container.status for container in containers(engine, run_id)] == [status]
            assert len(volumes(engine, run_id)) == 3
            assert docker_runner.sweep() == 0
            grader.kill()
            grader.wait()
            assert [container.status for container in containers(engine, run_id)] == [status]
            with talking(docker_runner, f"{run_id}-live") as pod:
                assert docker_runner.sweep() == 5  # a container, three volumes, a folder
                assert containers(engine, run_id) + volumes(engine, run_id) == []
                assert not (state_dir / "runs" / run_id).exists()
                assert ask(pod, kind="echo", value=2).body["value"] == 2
            assert docker_runner.sweep() == 0

    def test_another_state_folders_run_is_not_ours(self, engine, docker_runner, tmp_path, lab_image, run_id):
        """Two services on one engine do not sweep each other."""
        other = DockerRunner(lab_image, tmp_path)
        with other.open_run(run_id, LIMITS) as space:
            space._folder.remove()  # even if it looks dead to the other one
            assert docker_runner.sweep() == 0
            assert len(volumes(engine, run_id)) == 3

    def test_an_exception_leaves_nothing(self, engine, docker_runner, state_dir, run_id):
        """Whatever the pods were doing."""
        with pytest.raises(RuntimeError, match="ours"), docker_runner.open_run(run_id, LIMITS) as space:
            ask(space.start(drill()), kind="daemon", path=f"{space.paths.workspace}/beat")
            space.start(drill(PodRole.SCANNER, scratch=Scratch.READ_ONLY))
            raise RuntimeError("ours")
        assert nothing_left(engine, state_dir)

    def test_somebody_else_removed_the_container(self, engine, docker_runner, run_id):
        """An operator's `docker rm -f` in the middle: the pod ended, nothing raises."""
        with talking(docker_runner, run_id) as pod:
            containers(engine, run_id)[0].remove(force=True)
            assert pod.receive(30) is Ending.EXITED
            assert "could not tell" in pod.end().log_tail
            pod.pause()
            pod.resume()

    def test_somebody_else_killed_the_container(self, engine, docker_runner, run_id):
        """Pausing and resuming what has ended is nothing."""
        with talking(docker_runner, run_id) as pod:
            containers(engine, run_id)[0].kill()
            pod.pause()
            pod.resume()
            assert pod.receive(30) is Ending.EXITED
            assert pod.end().exit_code == 137

    def test_nothing_is_left_open(self, docker_runner, run_id):
        """Each run gives its descriptors back."""

        def run():
            with talking(docker_runner, run_id):
                pass

        for _ in range(3):  # until the client has made as many connections to the engine as it keeps
            run()
        before = psutil.Process().num_fds()
        run()
        assert psutil.Process().num_fds() <= before


class TestMissing:
    """What an operator reads when something of ours is missing."""

    @pytest.mark.parametrize(
        ("host", "advice"),
        [
            ("unix:///nonexistent/docker.sock", "socket is missing: start it"),
            ("tcp://127.0.0.1:1", "does not answer: start it"),
            ("tcp://somewhere:port", "correct or unset it"),
            ("nonsense", "correct or unset it"),
        ],
    )
    def test_no_engine(self, monkeypatch, host, advice):
        """Whatever DOCKER_HOST says."""
        monkeypatch.setenv("DOCKER_HOST", host)
        with pytest.raises(SandboxUnavailable, match=f"cannot be reached.*{advice}"):
            connect_engine(2.0)

    def test_an_engine_that_hangs(self, proxy, monkeypatch):
        """Is noticed in the time that was given."""
        proxy.fail("version|_ping", "hang")
        monkeypatch.setenv("DOCKER_HOST", proxy.url)
        started = time.monotonic()
        with pytest.raises(SandboxUnavailable, match="overloaded or hangs"):
            connect_engine(1.0)
        assert time.monotonic() - started < 10

    def test_a_context_of_the_command_line_is_not_followed(self, monkeypatch, tmp_path):
        """Pods mount folders of this host: another engine than the one that was named would not have them."""
        (tmp_path / "config.json").write_text('{"currentContext": "far-away"}')
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        monkeypatch.setenv("DOCKER_CONTEXT", "far-away")
        connect_engine(10.0).close()

    def test_no_image(self, state_dir):
        """Says how to make it."""
        with pytest.raises(SandboxUnavailable, match="grader images build"):
            DockerRunner("grader-nothing-of-that-name", state_dir)

    def test_no_gpu(self, lab_image, state_dir):
        """A GPU that this host does not have cannot be given to a pod."""
        with pytest.raises(SandboxUnavailable, match=r"no GPU can be given to a container: .*nvidia99 does not exist"):
            DockerRunner(lab_image, state_dir, gpu=GpuName("GPU-99", 99, 99))

    def test_a_folder_that_the_engine_does_not_see(self, docker_runner, run_id, engine, state_dir):
        """As when the grader itself runs in a container: the advice says which paths must agree."""
        with docker_runner.open_run(run_id, LIMITS) as space:
            space.shards_dir.rmdir()
            with pytest.raises(SandboxUnavailable, match="under the same paths"):
                space.start(drill(shards=True))
            assert ask(space.start(drill()), kind="echo", value=1).body["value"] == 1
        assert nothing_left(engine, state_dir)

    def test_a_program_that_is_not_there(self, docker_runner, run_id):
        """A pod whose guest never connects is our failure, with what it wrote."""
        with docker_runner.open_run(run_id, LIMITS) as space:
            pod = space.start(drill(program="no.such.program"))
            with pytest.raises(
                SandboxUnavailable, match=r"(?s)never connected \(exited, exit code 1\).*No module named"
            ):
                pod.receive(30)

    def test_a_state_folder_that_cannot_be_used(self, lab_image, tmp_path):
        """Is our failure, and names the folder."""
        (tmp_path / "state").write_text("a file")
        with pytest.raises(SandboxUnavailable, match="no run can be kept in"):
            DockerRunner(lab_image, tmp_path / "state").open_run("run-1", LIMITS).__enter__()


class TestBadDays:
    """An engine that fails, hangs or goes away in the middle: always `SandboxUnavailable`, never another error."""

    @pytest.mark.parametrize("action", ["refuse", "drop", "hang"])
    @pytest.mark.parametrize("call", ["POST .*/volumes/create", "POST .*/containers/create", "POST .*/start"])
    def test_a_call_fails_at_the_start(self, shaky_runner, proxy, engine, state_dir, run_id, call, action):
        """Nothing is left, also where the engine did what it did not say any more."""
        proxy.fail(call, action)
        with pytest.raises(SandboxUnavailable), shaky_runner.open_run(run_id, LIMITS) as space:
            space.start(drill())
        assert nothing_left(engine, state_dir)

    @pytest.mark.parametrize(
        "call", ["POST .*/kill", "GET .*/logs", "POST .*/wait", "GET .*/containers/[0-9a-f]+/json"]
    )
    def test_a_call_fails_at_the_end(self, shaky_runner, proxy, engine, state_dir, run_id, call):
        """The pod is removed all the same; only how it ended may stay unknown."""
        with talking(shaky_runner, run_id) as pod:
            fault = proxy.fail(call, "refuse")
            record = pod.end()
            assert fault.met
            assert record.ending is Ending.COMPLETED
            assert (record.exit_code is None) == ("/kill" in call or "/json" in call)
            proxy.heal()
        assert nothing_left(engine, state_dir)

    def test_a_removal_needs_several_attempts(self, shaky_runner, proxy, engine, state_dir, run_id):
        """A busy engine is asked again."""
        with talking(shaky_runner, run_id):
            fault = proxy.fail("DELETE .*/containers", "refuse", times=2)
        assert fault.met == 2
        assert nothing_left(engine, state_dir)

    def test_a_pause_is_tried_for_a_while(self, shaky_runner, proxy, run_id):
        """A busy kernel cannot always freeze a pod at once; that it never does is our failure."""
        with talking(shaky_runner, run_id) as pod:
            fault = proxy.fail(r"POST .*/pause", "refuse", times=2)
            pod.pause()
            assert fault.met == 2
            pod.resume()
            assert ask(pod, kind="echo", value=2).body["value"] == 2
            proxy.fail(r"POST .*/pause", "refuse")
            with pytest.raises(SandboxUnavailable, match="pause of a pod failed"):
                pod.pause()
            proxy.heal()

    def test_a_log_that_hangs(self, shaky_runner, proxy, run_id, monkeypatch):
        """Nobody waits for it, whoever reads it; its pod works on, and ends."""
        monkeypatch.setattr(docker_engine, "_OUTPUT_S", 0.5)
        with talking(shaky_runner, run_id) as pod:
            fault = proxy.fail(r"GET .*/logs", "hang")
            started = time.monotonic()
            assert pod.output() == pod.output() == ""
            assert time.monotonic() - started < 5
            assert fault.met == 1  # one at a time
            assert ask(pod, kind="echo", value=2).body["value"] == 2
            proxy.heal()

    def test_a_removal_that_never_works(self, shaky_runner, docker_runner, proxy, engine, state_dir, run_id):
        """Is said, since the pod may still run; the rest is removed, and a sweep finds the pod later."""
        with pytest.raises(SandboxUnavailable, match="could not be removed"), talking(shaky_runner, run_id):
            proxy.fail("DELETE .*/containers", "refuse")
        assert not (state_dir / "runs" / run_id).exists()
        assert len(containers(engine, run_id)) == 1
        assert docker_runner.sweep() >= 1
        assert nothing_left(engine, state_dir)

    def test_the_first_error_is_the_one_that_is_raised(self, shaky_runner, docker_runner, proxy, run_id):
        """What failed while tidying up does not hide why there was something to tidy up."""
        with pytest.raises(RuntimeError, match="ours"), talking(shaky_runner, run_id):
            proxy.fail("DELETE", "refuse")
            raise RuntimeError("ours")
        proxy.heal()
        docker_runner.sweep()

    def test_the_engine_goes_away(self, shaky_runner, docker_runner, proxy, engine, state_dir, run_id):
        """While a pod runs: waiting for it ends with our failure, and so does the run."""
        with pytest.raises(SandboxUnavailable), talking(shaky_runner, run_id) as pod:
            proxy.close()
            with pytest.raises(SandboxUnavailable):
                pod.receive(0.1)
        assert docker_runner.sweep() >= 1
        assert nothing_left(engine, state_dir)

    def test_a_sweep_on_a_bad_day(self, shaky_runner, proxy):
        """Is our failure, too."""
        proxy.fail("GET .*/containers/json", "drop")
        with pytest.raises(SandboxUnavailable, match="leftovers"):
            shaky_runner.sweep()

    def test_a_volume_in_use_waits_for_the_next_sweep(self, engine, lab_image, docker_runner, state_dir, run_id):
        """One that cannot be removed is no failure."""
        with docker_runner.open_run(run_id, LIMITS) as space:
            mount = docker.types.Mount("/x", space._volumes.workspace, type="volume")
            user = engine.containers.create(lab_image, ["true"], mounts=[mount])
        try:
            assert len(volumes(engine, run_id)) == 1
            assert docker_runner.sweep() == 0
        finally:
            user.remove(force=True)
        assert docker_runner.sweep() == 1
        assert nothing_left(engine, state_dir)


def gives_labs_their_images(runner, fixed, engine, name, refusal):
    """A run gets its lab's image, unless the operator has named one for every lab; one that is missing is said."""
    own = runner.facts.image
    engine.images.get(own).tag(name, "latest")
    try:
        assert (runner.of_image(name).facts.image, runner.facts.image) == (name, own)
        assert runner.of_image(own) is runner
        assert fixed.of_image(name) is fixed
        with pytest.raises(SandboxUnavailable, match=refusal):
            runner.of_image("no-such-image")
    finally:
        engine.images.remove(name)


def test_a_lab_may_have_an_image_of_its_own(docker_runner, lab_image, engine, state_dir):
    """See `gives_labs_their_images`."""
    fixed = DockerRunner(lab_image, state_dir, any_lab=True)
    gives_labs_their_images(docker_runner, fixed, engine, "grader-test-other", "'no-such-image' cannot be used")


def test_what_is_anothers_stays(docker_runner, engine, lab_image, run_id, tmp_path):
    """A run of the same id in another state folder, and one whose id begins alike."""
    engine.containers.create(
        lab_image, labels={"org.grader.run": run_id, "org.grader.state": str(tmp_path)}, name=f"{run_id}-other"
    )
    alike = f"alike-{secrets.token_hex(9)}"
    with docker_runner.open_run(f"{alike}-1", LIMITS):
        with docker_runner.open_run(f"{alike}-2", LIMITS), docker_runner.open_run(run_id, LIMITS):
            pass
        assert len(volumes(engine, f"{alike}-1")) == 3
    assert [container.name for container in containers(engine, run_id)] == [f"{run_id}-other"]
