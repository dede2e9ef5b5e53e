"""A submission over the queue, from the platform's message to its verdict."""

import pytest

from grader_service.signing import signed_by
from tests.service.bench import containers_of, nothing_left
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


def test_a_message_is_answered_with_its_verdict(service):
    """As the result of the task, and as a message to the queue that it names."""
    service.judge()
    service.runner()
    message = service.message("s:1", reply_to={"queue": "platform", "task": "lab.verdict_ready"})
    _, task_id = service.post(message)
    verdict = service.result(task_id)
    assert (verdict["submission_id"], verdict["status"]) == ("s:1", "passed")
    assert signed_by(verdict) is not None
    raw = wait_for(lambda: service.redis.client().lindex("platform", 0), 10)
    assert b"lab.verdict_ready" in raw
    assert f"verdict-{verdict['verdict_id']}".encode() in raw
    assert service.one_verdict("s:1") == verdict
    assert service.events("s:1") == ["accepted", "run_claimed", "run_done", "judge_claimed", "verdict"]
    assert wait_for(lambda: not service.undelivered(), 10)


def test_a_worker_that_prepares_runs(docker_service, engine):
    """The second submission finds its pods waiting; a worker that ends takes along what waits."""
    service = docker_service
    service.judge()
    runner = service.runner(GRADER_WARM_RUNS="1")
    service.post(service.message("s:cold"))
    cold = service.one_verdict("s:cold")
    learners = wait_for(
        lambda: [one for one in containers_of(engine, service.state_dir) if one.name.endswith("-learner")], 30
    )
    service.post(service.message("s:warm"))
    warm = service.one_verdict("s:warm")
    assert warm["provenance"]["timings_s"]["start"] < cold["provenance"]["timings_s"]["start"]
    assert learners[0].id not in {one.id for one in containers_of(engine, service.state_dir)}
    wait_for(lambda: containers_of(engine, service.state_dir), 30)  # it prepares the next one
    assert runner.end() == 0
    assert nothing_left(engine, service.state_dir)
