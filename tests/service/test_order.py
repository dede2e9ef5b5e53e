"""Who comes first, who comes next, and who is asked to come later."""

from itertools import pairwise

import pytest

from grader_service.store import devices
from grader_service.store.tables import EventRow, RunRow, SubmissionRow
from tests.service.faults import explained
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def moment(service, submission_id, kind):
    """When this happened to it."""
    rows = service.rows(EventRow, EventRow.submission_id == submission_id, EventRow.kind == kind)
    assert len(rows) == 1
    return rows[0]["at"]


def test_live_comes_before_regrade_and_limits_are_said(service):
    """Live overtakes every regrade in intake and at the runner; a full queue and a flooding learner are told so."""
    old, new = (service.post(queue="regrade")[0] for _ in range(2))
    first, second = (service.post()[0] for _ in range(2))
    service.environment["GRADER_SWEEP_S"] = "60"  # a sweep that looks at a row holds it for an instant
    service.judge(GRADER_INTAKE_THREADS="1", GRADER_MAX_QUEUED="7", GRADER_LEARNER_PER_HOUR="2")
    wait_for(lambda: len(service.rows(SubmissionRow)) == 4, 20)
    came = {row["submission_id"]: row["created_at"] for row in service.rows(RunRow)}
    assert sorted(came, key=came.__getitem__) == [first, second, old, new]

    (third, _), (fourth, _), (_, flooded) = (service.post(service.message(learner="ann")) for _ in range(3))
    answer = service.result(flooded)
    assert (answer["status"], answer["code"], answer["score"]) == ("rejected", "queue.rate_limited", None)
    assert "does not count" in answer["feedback"]
    fifth, _ = service.post()
    late = service.message(learner="bob")
    answer = service.result(service.post(late)[1])
    assert (answer["status"], answer["code"], answer["score"]) == ("rejected", "queue.full", None)
    assert len(service.rows(SubmissionRow)) == 7

    service.runner()
    order = [first, second, third, fifth, fourth, old, new]  # `third` and `fourth` are of one learner
    for submission_id in order:
        service.one_verdict(submission_id)
    assert sorted(order, key=lambda one: moment(service, one, "run_claimed")) == order
    assert service.result(service.post(late)[1])["status"] == "passed", "a refusal leaves the id free"
    explained(service, late["submission_id"])


def test_one_learner_has_one_run_at_a_time_and_the_next_follows_at_once(service):
    """Two runners: another learner overtakes, and the learner's next run starts when the one before it ends."""
    service.environment["GRADER_SWEEP_S"] = "60"  # what follows at once follows without a sweep
    service.both()
    service.runner(slot=1)
    wait_for(lambda: len(devices.devices(service.store)) == 2, 60)
    gate = service.gate()
    mine = [service.post(service.message(source=gate.source, learner="ann"))[0] for _ in range(3)]
    gate.await_begun()
    other, _ = service.post(service.message(learner="bob"))
    service.one_verdict(other)
    gate.open()
    for submission_id in mine:
        service.one_verdict(submission_id)
    spans = sorted((moment(service, one, "run_claimed"), moment(service, one, "run_done")) for one in mine)
    gaps = [later[0] - earlier[1] for earlier, later in pairwise(spans)]
    assert all(0 <= gap < 15 for gap in gaps), gaps
    assert moment(service, other, "verdict") < spans[0][1]
    owners = {row["actor"].split("/")[1] for row in service.rows(EventRow, EventRow.kind == "run_claimed")}
    assert len(owners) == 2


def test_one_with_many_submissions_holds_up_nobody(service):
    """One device, thirty of one learner: another's single submission waits for the run that is under way, no more."""
    service.both()
    gate = service.gate()
    first, _ = service.post(service.message(source=gate.source, learner="ann"))
    gate.await_begun()
    many = [service.post(service.message(learner="ann"))[0] for _ in range(30)]
    wait_for(lambda: len(service.rows(RunRow)) == 31, 30)
    single, _ = service.post(service.message(learner="bob"))
    wait_for(lambda: service.state(single) == "run_queued", 30)
    assert "1 ahead of it" in service.command("status", single).stdout
    gate.open()
    service.one_verdict(single)
    claimed = service.rows(EventRow, EventRow.kind == "run_claimed")
    order = [row["submission_id"] for row in sorted(claimed, key=lambda row: row["id"])]
    assert order[:2] == [first, single]
    for submission_id in many[:3]:
        service.one_verdict(submission_id)
