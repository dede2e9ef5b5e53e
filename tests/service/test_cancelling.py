"""An operator cancels a submission: its platform is answered, and nothing of it runs on."""

import pytest
from sqlalchemy import delete, update

from checks.registry import Registry
from grader_service.labs.catalogue import load_lab
from grader_service.model.verdict import Status, Verdict
from grader_service.store import cancelling, leases, results
from grader_service.store.ids import Named
from grader_service.store.tables import BlobRow, SubmissionRow
from tests.service.harness import QUICK
from tests.service.local_service import LocalService
from tests.waiting import wait_for


def test_the_verdict_says_that_nothing_is_wrong(tmp_path):
    """It is signed, has no score, and names the reason that was given."""
    local = LocalService(tmp_path)
    submission_id = local.submit()
    cancelling.cancel(local.store, Named(submission_id), "you sent last year's file.", "op")
    verdict = local.judge()
    assert (verdict.status, verdict.code, verdict.score) == (Status.REJECTED, "submission.cancelled", None)
    assert "Their reason: you sent last year's file. It does not count as an attempt" in verdict.feedback
    assert verdict.signature is not None
    assert (verdict.run_id, local.run(submission_id).state) == (local.run(submission_id).run_id, "done")
    assert [kind for kind, _ in local.events(submission_id)][-3:] == ["cancelled", "judge_claimed", "verdict"]


@pytest.mark.parametrize(
    "gone", [{"lab": "gone"}, {"steps": ["gone"]}, {"steps": ["reflection", "gone"]}], ids=["lab", "step", "one of two"]
)
def test_what_can_be_graded_no_more_is_answered(tmp_path, gone):
    """Its lab's text is lost, or a step that it names; so it is not judged, and the verdict is as ever.

    What it was worth nobody knows.
    """
    local = LocalService(tmp_path)
    submission_id = local.submit(learner="ann", cohort="autumn")
    with local.store.transaction() as connection:
        connection.execute(update(SubmissionRow).values(gone))
        if "lab" in gone:
            connection.execute(delete(BlobRow))
    run = leases.claim(local.store, "run", "runner", 60)
    assert results.store_evidence(local.store, run, "evidence", b"{}", {})
    assert local.judge() is None
    assert local.run(submission_id).state == ("judge_queued" if "lab" in gone else "needs_attention")
    verdict = cancelled(local, submission_id)
    assert (verdict.lab, verdict.learner, verdict.cohort) == (gone.get("lab", "dali-pipelines"), "ann", "autumn")
    assert (verdict.provenance.lab_version, verdict.max_score) == (None, None)
    assert (verdict.provenance.filename, verdict.provenance.isolated) == ("submission.py", False)


def test_no_check_is_needed(tmp_path):
    """Where those of the lab do not load; what it was worth is known."""
    local = LocalService(tmp_path)
    submission_id = local.submit()
    local.registry = Registry(points=())
    verdict = cancelled(local, submission_id)
    assert (verdict.provenance.lab_version, verdict.max_score) == (load_lab("dali-pipelines", Registry()).version, 25.0)


def cancelled(local, submission_id):
    """The verdict with which a submission is answered that is cancelled, as it is stored."""
    cancelling.cancel(local.store, Named(submission_id), "the lab is over", "op")
    verdict = local.judge()
    assert (verdict.status, verdict.code, verdict.score) == (Status.REJECTED, "submission.cancelled", None)
    assert "Their reason: the lab is over." in verdict.feedback
    run = local.run(submission_id)
    assert (run.state, run.run_id) == ("done", verdict.run_id)
    assert Verdict.model_validate_json(results.verdict_document(local.store, verdict.verdict_id)) == verdict
    return verdict


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
    assert (again.returncode, f"submission {running} has nothing left to cancel" in again.stderr) == (2, True)
