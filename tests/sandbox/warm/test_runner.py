"""Prepared runs behave as fresh ones do, are used once, and leave nothing; what is not prepared starts cold."""

import time

import psutil
import pytest

from sandbox.api import PodRole, Scratch
from sandbox.warm.pool import WarmPool
from tests.sandbox.owner import LIMITS, OTHER_LIMITS, ask, drill
from tests.sandbox.prepared_runs import FULL_S, Counting, guests, is_warm, prepared, shown_by_prepared
from tests.sandbox.test_conformance import EVERY, WITHOUT_WALLS


@WITHOUT_WALLS
def test_processes_prepared_ahead(process_runner, behaviour):
    """A prepared pod does what every pod must do."""
    shown_by_prepared(process_runner, behaviour)


@pytest.mark.slow
@EVERY
def test_containers_prepared_ahead(docker_runner, behaviour):
    """All of it, walls included."""
    shown_by_prepared(docker_runner, behaviour)


@pytest.mark.slow
@EVERY
def test_pods_of_a_broker_prepared_ahead(broker_runner, behaviour):
    """And through the broker."""
    shown_by_prepared(broker_runner, behaviour)


def test_a_prepared_run_serves_one_submission(runner, state_dir):
    """No file, no process and no folder of one run is in the next; a closed pool leaves nothing of what waits."""
    folders = []
    with prepared(runner, drill(), drill(PodRole.SCANNER, scratch=Scratch.READ_ONLY)) as (warm, pool):
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
        assert list((state_dir / "runs").iterdir())
    assert not list((state_dir / "runs").iterdir())
    assert runner.sweep() == 0


def test_another_kind_of_pod_starts_cold(runner):
    """In a prepared run, what waits is taken and the rest is started."""
    with prepared(runner, drill()) as (warm, _), warm.open_run("run", LIMITS) as space:
        assert not is_warm(space.start(drill(memory_mib=300)))
        assert is_warm(space.start(drill()))
        assert not is_warm(space.start(drill()))


def test_other_limits_get_a_run_of_their_own(runner):
    """A lab with other scratch sizes is not served from what the last one had; afterwards its runs are prepared."""
    with prepared(runner, drill()) as (warm, pool):
        with warm.open_run("other", OTHER_LIMITS) as space:
            assert not is_warm(space.start(drill()))
        assert pool.waits(FULL_S)
        with warm.open_run("other-again", OTHER_LIMITS) as space:
            assert is_warm(space.start(drill()))


def test_a_waiting_pod_that_died_is_replaced(process_runner):
    """Out of memory on the host, an engine that was restarted: the run starts cold."""
    counting = Counting(process_runner)
    with prepared(counting, drill()) as (warm, _):
        died = guests(counting.pods[-1])
        assert died
        for process in died:
            process.kill()
        psutil.wait_procs(died, timeout=10)
        with warm.open_run("run", LIMITS) as space:
            assert not is_warm(space.start(drill()))


def test_a_pods_time_begins_when_it_is_claimed(process_runner):
    """Waiting is not the learner's time."""
    with prepared(process_runner, drill()) as (warm, _):
        time.sleep(3.0)
        claimed = time.monotonic()
        with warm.open_run("run", LIMITS) as space:
            pod = space.start(drill())
            assert is_warm(pod)
            assert pod.end().wall_s <= time.monotonic() - claimed


def test_a_pool_needs_a_size():
    """Zero is said by having none; in a new one nothing waits."""
    with pytest.raises(ValueError, match="expected 1 or more"):
        WarmPool(0)
    assert not WarmPool(1).waits(0.0)
