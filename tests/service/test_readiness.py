"""A worker that cannot do its work claims nothing, says why to everybody who asks, and burns no run's tries."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.queue.chores import common_chores, unless_away
from grader_service.service import pulse
from grader_service.service.pipeline import StageEnd
from grader_service.service.readiness import (
    BROKER,
    RESULTS,
    Readiness,
    Requirement,
    database_requirement,
    device_requirement,
    problems,
)
from grader_service.service.run_spaces import RUN_SPACE, HostFitness, RunSpaceTrial, WatchedHost
from grader_service.settings import Settings
from grader_service.store import devices, workers
from grader_service.store.engine import Store
from sandbox.process.runner import ProcessRunner
from tests.service.faults import scrape
from tests.services.kept_port import kept_port
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@contextlib.contextmanager
def no_runs(state_dir):
    """Nothing can be put into the state folder's `runs`, as on a disk that is broken, whoever asks."""
    runs = state_dir / "runs"
    kept = runs.rename(state_dir / "runs-kept") if runs.exists() else None
    runs.write_text("no folder")
    try:
        yield
    finally:
        runs.unlink()
        if kept is not None:
            kept.rename(runs)


class TestOneHost:
    """A runner's host, step by step."""

    @pytest.fixture
    def fitness(self):
        return HostFitness()

    @pytest.fixture
    def deps(self, local, fitness):
        sandbox = ProcessRunner(local.state_dir)
        return local.deps(sandbox=sandbox, host=WatchedHost(fitness, sandbox, local.state_dir), owner="a/GPU-1/x")

    @pytest.fixture
    def trial(self, local, fitness):
        return RunSpaceTrial(ProcessRunner(local.state_dir), local.state_dir, fitness, lambda: True, every_s=0.0)

    def test_nothing_is_claimed_before_a_run_space_was_made(self, local, deps, trial):
        """At the start nobody has looked yet."""
        submission_id = local.submit()
        assert local.run_all(deps) == []
        trial.look()
        assert local.run_all(deps) == [StageEnd.STORED]
        assert local.run(submission_id).attempts == 0
        assert list((local.state_dir / "runs").iterdir()) == []

    def test_a_run_that_cannot_be_begun_is_given_back_and_costs_no_try(self, local, deps, trial):
        """The host is found unfit in that moment, and claims nothing until a run space was made again."""
        trial.look()
        submission_id = local.submit()
        with no_runs(local.state_dir):
            assert local.run_all(deps) == [StageEnd.GIVEN_BACK]
            run = local.run(submission_id)
            assert (run.state, run.attempts, run.failed_host) == ("run_queued", 0, None)
            assert problems([Requirement(RUN_SPACE, trial.look)]).keys() == {RUN_SPACE}
            assert local.run_all(deps) == []
        assert local.run_all(deps) == []  # nobody has looked
        trial.look()
        assert local.run_all(deps) == [StageEnd.STORED]
        kinds = [kind for kind, _ in local.events(submission_id)]
        assert kinds == ["accepted", "run_claimed", "given_back", "run_claimed", "run_done"]

    def test_a_failure_on_a_host_that_is_fit_is_counted(self, local, deps, trial):
        """Or a run that no host can begin would wander for ever."""
        trial.look()
        submission_id = local.submit()
        opened = deps.sandbox.open_run

        def refuse(run_id, limits):
            if run_id.startswith("trial-"):
                return opened(run_id, limits)
            (local.state_dir / "runs" / run_id).mkdir()  # it exists already, of all names
            return opened(run_id, limits)

        deps.sandbox.open_run = refuse
        assert local.run_all(deps) == [StageEnd.FAILED] * 3
        run = local.run(submission_id)
        assert (run.state, run.attempts, run.failed_host) == ("needs_attention", 3, "a")
        assert "no run can be kept" in run.last_error

    def test_nothing_is_tried_out_beside_a_run(self, local, fitness):
        """What was found last stands meanwhile, unless the host is in doubt."""
        idle = [True]
        trial = RunSpaceTrial(ProcessRunner(local.state_dir), local.state_dir, fitness, lambda: idle[0], every_s=0.0)
        trial.look()
        idle[0] = False
        with no_runs(local.state_dir):
            trial.look()
            assert fitness.fit
            fitness.doubt()
            assert problems([Requirement(RUN_SPACE, trial.look)])
            assert not fitness.fit


class TestTheWord:
    """What a worker says of itself."""

    def readiness(self, local, *requirements):
        identity = workers.Identity(workers.RUN, "host", "GPU-1")
        return Readiness(identity, local.store, local.state_dir, (pulse.ANY,), requirements)

    def test_is_said_in_the_store_and_in_a_file(self, local):
        """What is wrong by the name of its requirement; nothing, once it is mended."""
        devices.see(local.store, "GPU-1", "host", "H100")
        devices.quarantine(local.store, "GPU-1", "Xid 79", "steward")
        readiness = self.readiness(local, database_requirement(local.store), device_requirement(local.store, "GPU-1"))
        readiness.look()
        (worker,) = workers.workers(local.store)
        assert worker.state == "not_ready"
        assert worker.reason == "device: GPU-1 is quarantined: Xid 79; mend that, then `grader devices ready GPU-1`"
        assert pulse.last(local.state_dir).problems == (worker.reason,)
        (told,) = problems([device_requirement(local.store, "GPU-1", canary=True)]).values()
        assert told.startswith("GPU-1 is quarantined: Xid 79; a canary puts it back by itself")
        devices.set_state(local.store, "GPU-1", devices.DRAINING, "new driver", "ann")
        readiness.look()  # an operator's wish is no fault
        assert [one.state for one in workers.workers(local.store)] == ["ready"]
        assert pulse.last(local.state_dir).problems == ()
        readiness.end()
        assert workers.workers(local.store) == []

    def test_goes_on_without_a_database(self, local, tmp_path):
        """The file says it; what hangs on the database is not told as well."""
        away = Store(f"sqlite:///{tmp_path}/never-migrated.db")
        identity = workers.Identity(workers.RUN, "host", "GPU-1")
        requirements = (
            database_requirement(away),
            device_requirement(away, "GPU-1"),
            Requirement("broker", lambda: 1 / 0),
        )
        Readiness(identity, away, local.state_dir, (pulse.ANY,), requirements).look()
        found = pulse.last(local.state_dir).problems
        assert [problem.partition(":")[0] for problem in found] == ["database", "broker"]
        assert "grader store migrate" in found[0]
        away.close()

    @pytest.mark.parametrize(("away", "chore"), [(BROKER, "announce"), (RESULTS, "deliver")])
    def test_waits_once_for_a_redis_that_is_away(self, local, away, chore):
        """Each further chore that asked it would wait as long, until the worker seemed silent."""
        up = [False, True]
        readiness = self.readiness(local, Requirement(away, lambda: 1 / up.pop(0)))
        nowhere = None  # a Redis that must not be asked
        common = common_chores(Settings(), local.store, nowhere, readiness)
        chores = dict([*common, ("deliver", unless_away(RESULTS, readiness, lambda: nowhere.send_task("verdict")))])
        readiness.look()
        chores[chore]()
        readiness.look()
        with pytest.raises(AttributeError):
            chores[chore]()

    def test_is_heard_where_the_disk_is_full(self, local, monkeypatch):
        """No file can be made; the one that is there has room for what is said."""
        readiness = self.readiness(local, Requirement(RUN_SPACE, lambda: 1 / 0))
        pulse.beat(local.state_dir)

        def full(_path, _data):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        readiness.look()
        assert pulse.last(local.state_dir).problems == (f"{RUN_SPACE}: ZeroDivisionError: division by zero",)

    def test_grows_old_where_it_cannot_be_written(self, local):
        """As if the loop hung, which a health check finds; the store is told all the same."""
        readiness = self.readiness(local)
        readiness.look()
        (local.state_dir / pulse.ANY).unlink()
        (local.state_dir / pulse.ANY).mkdir()
        readiness.look()
        assert pulse.last(local.state_dir) is None
        assert [one.state for one in workers.workers(local.store)] == ["ready"]


def asked(service, *words, state_dir=None):
    """A health check, as a container runs it."""
    env = service.env() if state_dir is None else service.env(GRADER_STATE_DIR=str(state_dir))
    command = [sys.executable, "-m", "grader_service.health", *words]
    return subprocess.run(command, env=env, check=False, capture_output=True, text=True, timeout=60)


def two_runners(service, tmp_path, **first):
    """A judge and two runners, each with a state folder of its own, all of them ready; the second one's folder."""
    other = tmp_path / "other"
    other.mkdir()
    service.environment["GRADER_ARTIFACT_STORE"] = f"file://{service.state_dir}/artifacts"
    service.environment["GRADER_LEASE_S"] = "60"  # nobody waits for the end of one; a lost one would be a try more
    service.judge()
    both = service.runner(0, **first), service.runner(1, GRADER_STATE_DIR=str(other))
    wait_for(lambda: states(service) == ["ready"] * 3 and len(devices.devices(service.store)) == 2, 60)
    return other, both


def states(service):
    """What workers say."""
    return [one.state for one in workers.workers(service.store)]


@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_a_stack_of_two_runners_one_of_which_cannot_grade(service, tmp_path, number):
    """Every submission is graded, no try is burnt, and the broken runner says why to all who ask."""
    other, _ = two_runners(service, tmp_path)
    with no_runs(other), kept_port() as port:
        posted = [service.post() for _ in range(number)]
        service.start("metrics", "--port", str(port))
        wait_for(lambda: "not_ready" in states(service), 60)
        told = service.command("doctor", "--service")
        assert told.returncode == 1
        assert "run space: no run can be kept in" in " ".join(told.stdout.split())
        broken, sound = (asked(service, "ready", state_dir=folder) for folder in (other, service.state_dir))
        assert (broken.returncode, sound.returncode) == (1, 0)
        assert broken.stdout.startswith("not ready: run space: no run can be kept in")
        assert asked(service, "alive", state_dir=other).returncode == 0
        for submission_id, task_id in posted:
            assert service.result(task_id, 60 + 2 * number)["status"] == "passed"
            assert [run["attempts"] for run in service.runs(submission_id)] == [0]
        figures = scrape(port)
        ready = {name: value for name, value in figures.items() if name.startswith("grader_worker_ready")}
        assert sorted(ready.values()) == [0.0, 1.0, 1.0]
        assert sorted(value for name, value in figures.items() if name.startswith("grader_device_out")) == [0.0, 1.0]
        folders = [name.partition('"')[2].partition('"')[0] for name in figures if name.startswith("grader_disk_ratio")]
        assert sorted(folders) == ["artifacts", "state", "state", "state"]
    wait_for(lambda: asked(service, "ready", state_dir=other).returncode == 0, 30)
    assert service.command("doctor", "--service").returncode == 0


def test_a_run_that_failed_on_one_runner_is_tried_on_the_other(service, tmp_path):
    """The one that takes it finds no artifact; it leaves the second try to the other, though that one is slow."""
    _, (first, second) = two_runners(service, tmp_path, GRADER_ARTIFACT_STORE=f"file://{tmp_path}/empty")
    halted = second.pid, second.child()
    for pid in halted:
        os.kill(pid, signal.SIGSTOP)
    submission_id, task_id = service.post()
    wait_for(lambda: "failed_by_us" in service.events(submission_id), 60)
    for pid in halted:
        os.kill(pid, signal.SIGCONT)
    assert service.result(task_id)["status"] == "passed"
    (run,) = service.runs(submission_id)
    assert (run["attempts"], run["failed_device"].rpartition(":")[2]) == (1, "0")
    assert first.process.poll() is None


def test_a_runner_that_does_not_come_up_is_missed(service):
    """It ended as it should, and its successor fails at each start: one device of several may be out for weeks."""
    first = service.runner(0)
    wait_for(lambda: devices.devices(service.store), 60)
    assert first.end() == 0
    assert states(service) == []
    failed = service.runner(0, GRADER_SANDBOX="docker", DOCKER_HOST=f"unix://{service.state_dir}/no.sock")
    assert failed.process.wait(60) != 0
    (worker,) = workers.workers(service.store)
    assert (worker.state, worker.reason) == ("not_ready", "it has not come up yet; where it does not, its log says why")


def test_a_runner_whose_loop_hangs_is_not_healthy(service):
    """Its last word is shown beside, and a folder without any worker says so."""
    assert asked(service, "ready").stdout.strip() == "no worker has looked round"
    (service.state_dir / pulse.ANY).write_text(json.dumps(["broker: Redis does not answer"]))
    os.utime(service.state_dir / pulse.ANY, (1, 1))
    for command in ("alive", "ready"):
        hung = asked(service, command)
        assert hung.returncode == 1
        assert hung.stdout.startswith("no worker has looked round for ")
        assert hung.stdout.rstrip().endswith("broker: Redis does not answer")
    gone = asked(service, "ready", state_dir=service.state_dir / pulse.ANY)
    assert gone.stdout.startswith("no worker has looked round; state folder: ")
    assert "is no folder" in gone.stdout


def test_a_health_check_costs_little(service):
    """Every worker of a host is asked several times a minute: nothing of the service's packages is loaded for it."""
    code = "import sys; from grader_service import health; health.main(['ready']); print(*sys.modules)"
    asking = subprocess.run([sys.executable, "-c", code], env=service.env(), check=True, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in asking.stdout.splitlines()[-1].split()}
    assert not loaded & {"pydantic", "typer", "rich", "structlog", "sqlalchemy", "celery", "redis"}


def test_a_service_without_workers_says_so(service):
    """One that nobody started is not ready."""
    told = service.command("doctor", "--service", "--json")
    assert told.returncode == 1
    absent = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(one["role"], one["state"]) for one in absent] == [("run", "absent"), ("judge", "absent")]
    assert "grader worker run" in absent[0]["reason"]
