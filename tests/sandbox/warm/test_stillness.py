"""Real pods that wait beside a measurement: they stand still, go on afterwards, and are replaced when they are dead."""

import psutil
import pytest

from sandbox.docker.engine import DockerHandle
from tests.sandbox.owner import LIMITS, ask, drill
from tests.sandbox.prepared_runs import FULL_S, Counting, guests, is_warm, prepared
from tests.waiting import wait_for


@pytest.mark.integration
@pytest.mark.parametrize("runner", ["process", "docker"], indirect=True)  # of a broker's pod nobody here sees the state
def test_a_second_prepared_run_stands_still(runner):
    """It does so while the first one measures, and serves as well as that one when its own turn comes."""
    counting = Counting(runner)
    with prepared(counting, drill(), size=2) as (warm, pool):
        waiting = counting.pods[-2:]
        with warm.open_run("one", LIMITS) as space:
            first = space.start(drill())
            assert first in waiting
            assert is_warm(first)
            (second,) = (pod for pod in waiting if pod is not first)
            with space.quiet():
                assert _stands_still(second)
                assert not _stands_still(first)
                with warm.open_run("two", LIMITS) as other:
                    assert other.start(drill()) is second
                    assert is_warm(second)
        assert pool.waits(FULL_S)
        assert not any(_stands_still(pod) for pod in counting.pods[-2:])
    assert runner.sweep() == 0


def test_a_dead_container_is_replaced_before_it_is_needed(docker_runner):
    """An engine that was restarted has ended all of them."""
    counting = Counting(docker_runner)
    with prepared(counting, drill(), look_s=0.2) as (warm, pool):
        dead = counting.pods[-1]
        dead._handle._container.kill()
        wait_for(lambda: counting.pods[-1] is not dead and pool.waits(FULL_S), 15.0)
        with warm.open_run("run", LIMITS) as space:
            pod = space.start(drill())
            assert pod is counting.pods[-1]
            assert ask(pod, kind="echo", value=1).body["value"] == 1


def _stands_still(pod):
    handle = pod._handle
    if isinstance(handle, DockerHandle):
        handle._container.reload()
        return handle._container.status == "paused"
    return all(guest.status() == psutil.STATUS_STOPPED for guest in guests(pod))
