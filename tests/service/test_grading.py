"""A submission over the queue, from the platform's message to its verdict."""

from grader_service.signing import signed_by
from tests.service.harness import wait_for


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
