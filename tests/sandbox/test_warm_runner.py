"""Prepared runs behave as fresh ones do, are used once, and leave nothing; what is not prepared starts cold."""

import contextlib
import os
import signal
import textwrap
import time

import psutil
import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.grading import learner
from grader_service.grading.dialogue import Stopped
from grader_service.ingest.artifact import measure, prepare
from grader_service.labs.specs import lab_text, read_lab
from sandbox.api import PodRole, PodSpec, Scratch, SpaceLimits
from sandbox.conformance import BEHAVIOURS, NEEDS_ISOLATION
from sandbox.warm_pool import WarmPool
from sandbox.warm_runner import WarmRunner
from tests.sandbox.owner import LIMITS, ask, drill

FULL_S = 60.0


@contextlib.contextmanager
def pooled(runner, size=1):
    """A warm runner over this one, and its pool."""
    pool = WarmPool(size)
    try:
        yield WarmRunner(runner, pool), pool
    finally:
        pool.close()


@contextlib.contextmanager
def prepared(runner, *specs, size=1):
    """The same, after one run that started these pods and when as many runs are prepared as there should be."""
    with pooled(runner, size) as (warm, pool):
        with warm.open_run("teacher", LIMITS) as space:
            for spec in specs:
                space.start(spec)
        assert pool.waits(FULL_S)
        yield warm, pool


class Counting:
    """A runner that counts the pods it was asked for, and can be told to fail."""

    def __init__(self, runner):
        self.runner = runner
        self.facts = runner.facts
        self.started = 0
        self.broken = False

    def open_run(self, run_id, limits):
        space = self.runner.open_run(run_id, limits)
        start = space.start

        def counted(spec):
            if self.broken:
                raise SandboxUnavailable("the engine is away")
            self.started += 1
            return start(spec)

        space.start = counted
        return space

    def of_image(self, image):
        del image
        return self

    def sweep(self):
        return self.runner.sweep()


def is_warm(pod):
    """Whether the pod was started ahead: only such a learner's pod has modules named to it."""
    return "GRADER_AHEAD" in ask(pod, kind="facts").body["environment"]


@pytest.mark.parametrize(
    "behaviour",
    [behaviour for behaviour in BEHAVIOURS if behaviour.name not in NEEDS_ISOLATION],
    ids=lambda behaviour: behaviour.name,
)
def test_processes_prepared_ahead(process_runner, behaviour):
    """A prepared pod does what every pod must do."""
    _twice(process_runner, behaviour)


@pytest.mark.docker
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.name)
def test_containers_prepared_ahead(docker_runner, behaviour):
    """All of it, walls included."""
    _twice(docker_runner, behaviour)


def _twice(runner, behaviour):
    counting = Counting(runner)
    with pooled(counting) as (warm, pool):
        behaviour.check(warm)
        assert pool.waits(FULL_S)
        before = counting.started
        behaviour.check(warm)
        assert pool.waits(FULL_S)
        assert counting.started > before  # the second pass took what was prepared, and it was prepared anew
    assert runner.sweep() == 0


def test_the_first_run_is_cold_and_the_second_is_not(runner):
    """What a run starts is what the next one finds."""
    with pooled(runner) as (warm, pool):
        with warm.open_run("one", LIMITS) as space:
            assert not is_warm(space.start(drill()))
        assert pool.waits(FULL_S)
        with warm.open_run("two", LIMITS) as space:
            assert is_warm(space.start(drill()))


def test_a_prepared_run_serves_one_submission(runner):
    """No file, no process and no folder of one run is in the next."""
    folders = []
    with prepared(runner, drill()) as (warm, pool):
        for number in range(3):
            with warm.open_run(f"run-{number}", LIMITS) as space:
                pod = space.start(drill())
                assert is_warm(pod)
                path = f"{space.paths.workspace}/mark"
                assert ask(pod, kind="size", path=path).body["value"] == -1
                ask(pod, kind="write", path=path, size=1)
                folders.append(space.shards_dir)
            assert not folders[-1].parent.exists()
            assert pool.waits(FULL_S)
        assert len(set(folders)) == 3
    assert runner.sweep() == 0


def test_another_kind_of_pod_starts_cold(runner):
    """In a prepared run, what waits is taken and the rest is started."""
    with prepared(runner, drill()) as (warm, _), warm.open_run("run", LIMITS) as space:
        assert not is_warm(space.start(drill(memory_mib=300)))
        assert is_warm(space.start(drill()))
        assert not is_warm(space.start(drill()))


def test_other_limits_get_a_run_of_their_own(runner):
    """A lab with other scratch sizes is not served from what the last one had; afterwards its runs are prepared."""
    other = SpaceLimits(workspace_mib=32, workspace_inodes=500, shm_mib=16)
    with prepared(runner, drill()) as (warm, pool):
        with warm.open_run("other", other) as space:
            assert not is_warm(space.start(drill()))
        assert pool.waits(FULL_S)
        with warm.open_run("other-again", other) as space:
            assert is_warm(space.start(drill()))


def test_a_waiting_pod_that_died_is_replaced(process_runner):
    """Out of memory on the host, an engine that was restarted: the run starts cold."""
    with prepared(process_runner, drill()) as (warm, _):
        guests = [
            process
            for process in psutil.Process().children(recursive=True)
            if "drill" in process.cmdline() and process.is_running()
        ]
        assert guests
        for process in guests:
            os.kill(process.pid, signal.SIGKILL)
        psutil.wait_procs(guests, timeout=10)
        with warm.open_run("run", LIMITS) as space:
            assert not is_warm(space.start(drill()))


def test_nothing_is_prepared_beside_a_run(process_runner):
    """A measurement has no company."""
    counting = Counting(process_runner)
    with pooled(counting, size=2) as (warm, pool):
        with warm.open_run("one", LIMITS) as space:
            space.start(drill())
        with warm.open_run("two", LIMITS) as space:
            space.start(drill())
            before = counting.started
            time.sleep(1.0)
            assert counting.started == before
        assert pool.waits(FULL_S)


def test_as_many_as_asked_for(process_runner):
    """Each of the prepared runs serves without a pause between them."""
    with prepared(process_runner, drill(), size=3) as (warm, _):
        for number in range(3):
            with warm.open_run(f"run-{number}", LIMITS) as space:
                assert is_warm(space.start(drill()))


def test_an_engine_that_fails_while_preparing(process_runner):
    """Nobody hears of it but the log: the next run starts cold, and with it preparing begins again."""
    counting = Counting(process_runner)
    with pooled(counting) as (warm, pool):
        with warm.open_run("one", LIMITS) as space:
            space.start(drill())
            counting.broken = True
        assert not pool.waits(1.0)
        counting.broken = False
        with warm.open_run("two", LIMITS) as space:
            assert not is_warm(space.start(drill()))
        assert pool.waits(FULL_S)
        with warm.open_run("three", LIMITS) as space:
            assert is_warm(space.start(drill()))


def test_a_closed_pool_leaves_nothing(runner, state_dir):
    """Whatever waits is ended and removed."""
    with prepared(runner, drill(), drill(PodRole.SCANNER, scratch=Scratch.READ_ONLY)):
        assert list((state_dir / "runs").iterdir())
    assert not list((state_dir / "runs").iterdir())
    assert runner.sweep() == 0


def test_a_pods_time_begins_when_it_is_claimed(process_runner):
    """Waiting is not the learner's time."""
    with prepared(process_runner, drill()) as (warm, _):
        time.sleep(1.0)
        with warm.open_run("run", LIMITS) as space:
            pod = space.start(drill())
            assert is_warm(pod)
            assert pod.end().wall_s < 1.0


def test_a_pool_needs_a_size():
    """Zero is said by having none."""
    with pytest.raises(ValueError, match="expected 1 or more"):
        WarmPool(0)


def test_a_submission_finds_its_imports_done(process_runner, tmp_path):
    """The learner's pod has torch, torchvision and DALI loaded, and what stands in for a GPU still applies."""
    lab = read_lab(lab_text("dali-pipelines"), "lab")
    spec = PodSpec(
        PodRole.LEARNER,
        "learner.main",
        memory_mib=4096,
        pids=256,
        cpus=(0, 1),
        scratch=Scratch.READ_WRITE,
        submission=True,
    )
    source = tmp_path / "submission.py"
    source.write_text(
        textwrap.dedent(
            """
            import sys
            where_dali_wins = [f"{name}:{name in sys.modules}" for name in ("torch", "torchvision", "nvidia.dali.fn")]
            import torch
            where_dali_wins.append(f"cuda:{torch.cuda.is_available()}")
            """
        )
    )
    found = []
    with pooled(process_runner) as (warm, pool):
        for number in range(2):
            with warm.open_run(f"run-{number}", LIMITS) as space:
                submission = prepare(measure(source), space.submission_dir)
                found.append(learner.discover(space.start(spec), submission, space.paths, lab.limits, "cpu"))
            assert pool.waits(FULL_S)
    cold, ahead = found
    assert not isinstance(cold, Stopped)
    assert not isinstance(ahead, Stopped)
    assert _said(cold) == ["torch:False", "torchvision:False", "nvidia.dali.fn:False", "cuda:True"]
    assert _said(ahead) == ["torch:True", "torchvision:True", "nvidia.dali.fn:True", "cuda:True"]
    assert ahead.discovery.versions["torch"] == cold.discovery.versions["torch"]


def _said(found):
    return list(found.discovery.where_dali_wins.items)
