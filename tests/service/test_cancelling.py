"""An operator cancels a submission: its platform is answered, and nothing of it runs on."""

import pytest

from grader_service.model.verdict import Status
from grader_service.store import cancelling
from grader_service.store.ids import Named
from tests.service.bench import Bench
from tests.service.harness import QUICK
from tests.waiting import wait_for


def test_the_verdict_says_that_nothing_is_wrong(tmp_path):
    """It is signed, has no score, and names the reason that was given."""
    bench = Bench(tmp_path)
    submission_id = bench.submit()
    cancelling.cancel(bench.store, Named(submission_id), "you sent last year's file.", "op")
    verdict = bench.judge()
    assert (verdict.status, verdict.code, verdict.score) == (Status.REJECTED, "submission.cancelled", None)
    assert "Their reason: you sent last year's file. It does not count as an attempt" in verdict.feedback
    assert verdict.signature is not None
    assert (verdict.run_id, bench.run(submission_id).state) == (bench.run(submission_id).run_id, "done")
    assert [kind for kind, _ in bench.events(submission_id)][-3:] == ["cancelled", "judge_claimed", "verdict"]


@pytest.mark.integration
def test_one_under_way_and_one_that_waits(service):
    """Both are answered within moments, the device goes on with the next, and a repetition brings the same answer."""
    service.both()
    _, running, first = service.gated()
    waiting = service.message(learner="ann")
    _, second = service.post(waiting)
    wait_for(lambda: service.state(waiting["submission_id"]) == "run_queued", 20)
    for submission_id in (waiting["submission_id"], running):
        done = service.command("cancel", submission_id, "-m", "the course moved")
        assert (done.returncode, done.stdout.strip()) == (0, "1 run is cancelled"), done.stderr
    for task in (first, second):
        answer = service.result(task)
        assert (answer["status"], answer["code"], answer["score"]) == ("rejected", "submission.cancelled", None)
        assert "Their reason: the course moved." in answer["feedback"]
    after = service.message(source=QUICK)
    assert service.result(service.post(after)[1])["status"] == "passed"
    assert service.result(service.post(waiting)[1])["code"] == "submission.cancelled"
    assert service.events(waiting["submission_id"]).count("run_claimed") == 0
    again = service.command("cancel", running)
    assert (again.returncode, f"nothing of submission {running} is left to cancel" in again.stderr) == (2, True)
