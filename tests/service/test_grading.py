"""Runs that are prepared before their submissions come."""

import pytest

from tests.service.local_service import containers_of, learners_pods, nothing_left
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


def test_a_worker_that_prepares_runs(docker_service, engine):
    """The second submission finds its pods waiting; a worker that ends takes along what waits."""
    service = docker_service
    service.judge()
    runner = service.runner(GRADER_WARM_RUNS="1")
    service.post(service.message("s:cold"))
    cold = service.one_verdict("s:cold")
    learners = wait_for(lambda: learners_pods(engine, service.state_dir), 30)
    service.post(service.message("s:warm"))
    warm = service.one_verdict("s:warm")
    assert warm["provenance"]["timings_s"]["start"] < cold["provenance"]["timings_s"]["start"]
    assert learners[0].id not in {one.id for one in containers_of(engine, service.state_dir)}
    wait_for(lambda: containers_of(engine, service.state_dir), 30)  # it prepares the next one
    assert runner.end() == 0
    assert nothing_left(engine, service.state_dir)
