"""The story of a batch, as an operator lives it: planned, interrupted, looked at, put in force, and taken back."""

import json
import random
import signal
from collections import Counter

import pytest

from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.signer.signatures import signed_by
from grader_service.store import leases, regrade_states, regrades, results
from grader_service.store.acceptance import Accepted, Arrival, IntakeLimits, accept_all
from grader_service.store.outbox import Waiter
from grader_service.store.tables import EventRow, OutboxRow, VerdictRow
from tests.regrade.kinds import TRANSITIONS, evidence_of, kinds, transitions
from tests.regrade.stored import WAITING_EVERY, Maker, fill, fill_through_service, places
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

COUNT = 300
CHANGED = {kind for kind, (old, new) in TRANSITIONS.items() if old != new}


def documents(rows):
    """Submission to its verdict, word for word."""
    return {key: row["document"] for key, row in rows.items()}


def test_a_threshold_changes_from_1_1_to_1_3(operated):
    """Plan, start, a killed worker, another one, diff, apply, revert: exactly what was expected, and nothing twice."""
    ids = fill(operated.store, COUNT, signer=operated.signer())
    former = operated.in_force()
    batch = operated.plan("--lab-file", str(operated.stricter_lab()))
    batch_id = batch["batch_id"]
    assert (batch["state"], batch["estimate"]["items"], batch["estimate"]["gpu_s"]) == ("planned", COUNT, 0)
    assert operated.in_force() == former

    operated.regrade("start", batch_id)
    finished = _interrupted(operated, batch_id)
    late = _handed_in_again(operated)
    operated.regrade("apply", batch_id, status=2)
    operated.regrade_worker()
    operated.await_batch(batch_id, "finished")
    _nothing_twice(operated, batch_id, finished)
    assert operated.in_force() == former | {late["submission_id"]: late}, "old verdicts stay until the batch is applied"
    assert operated.outbox() == [late["verdict_id"]], "nobody is told before the batch is applied"

    _diff_is_as_expected(operated, batch_id)
    operated.regrade("apply", batch_id)
    operated.regrade("apply", batch_id, status=2)
    told = _new_verdicts_in_force(operated, batch_id, ids, late)

    operated.regrade("revert", batch_id)
    assert documents(operated.in_force()) == documents(former | {late["submission_id"]: late})
    _everybody_who_was_told_is_told_again(operated, told)
    _audited(operated, batch_id, ids)


def _interrupted(operated, batch_id):
    """A worker that dies in the middle; returns submission to verdict of what it had finished."""
    held = operated.hold(COUNT // 3)
    worker = operated.regrade_worker()
    operated.await_done(batch_id, COUNT // 5)
    worker.end(signal.SIGKILL)
    operated.give_back(held)
    done = {key: item["verdict_id"] for key, item in operated.items(batch_id).items() if item["state"] == "done"}
    assert COUNT // 5 <= len(done) < COUNT
    return done


def _handed_in_again(operated):
    """A learner of the cohort is graded anew while the batch runs; returns the new verdict's row."""
    place = next(place for place in places(COUNT) if place.learner is not None and place.kind == "between")
    maker = Maker(operated.signer())
    maker.keep_lab(operated.store)
    submission = maker.submission("late:1", place)
    arrival = Arrival(submission, maker.plan, "live", Waiter("task-late:1"))
    assert isinstance(accept_all(operated.store, [arrival], IntakeLimits(), "intake")[0], Accepted)
    claim = leases.claim(operated.store, "run", "runner", 60.0)
    evidence = evidence_of("between", place.attempt + 1, claim.run_id, random.Random(7))
    assert results.store_evidence(operated.store, claim, "measured", evidence.model_dump_json().encode(), {})
    verdict = judge_next(JudgeDeps(operated.store, maker.registry, maker.signer, "judge"))
    assert verdict.status == "passed", "live submissions are graded by the lab that they were accepted with"
    return operated.in_force()["late:1"]


def _nothing_twice(operated, batch_id, finished):
    """What was done before the worker died was kept, and each submission has one new verdict, signed, aside."""
    made = operated.rows(VerdictRow, VerdictRow.batch_id == batch_id)
    assert Counter(row["submission_id"] for row in made) == dict.fromkeys(operated.items(batch_id), 1)
    assert len(made) == COUNT
    assert {key: item["verdict_id"] for key, item in operated.items(batch_id).items() if key in finished} == finished
    assert not any(row["current"] for row in made)
    key = operated.signer().public_key
    assert all(signed_by(json.loads(row["document"])) == key for row in made)


def _diff_is_as_expected(operated, batch_id):
    diff = json.loads(operated.regrade("diff", batch_id, "--json", "-", status=1))
    found = {(row["old"], row["new"]): row["submissions"] for row in diff["statuses"]}
    assert found == transitions(COUNT)
    assert diff["kinds"]["outdated"] == diff["kinds"]["pending"] == 0
    checks = {check["check"]: check["changed"] for check in diff["checks"]}
    changed = sum(kind in CHANGED for kind in kinds(COUNT))
    assert checks == {"jpeg_dataset": 0, "cuda_batch": 0, "throughput_ratio": changed, "reflections": 0}
    assert diff["newer"] > 0
    assert f"{COUNT} submissions, {changed} would change" in operated.regrade("diff", batch_id, status=1)
    operated.regrade("diff", batch_id, "--check", "reflections", "--changed", status=0)


def _new_verdicts_in_force(operated, batch_id, ids, late):
    """Of every submission of the batch, and of no other; whoever waited for a changed one is told, and nobody else."""
    now = operated.in_force()
    items = operated.items(batch_id)
    expected = dict(zip(ids, (TRANSITIONS[kind][1] for kind in kinds(COUNT)), strict=True))
    assert {key: row["status"] for key, row in now.items()} == expected | {late["submission_id"]: "passed"}
    assert {key: now[key]["verdict_id"] for key in ids} == {key: items[key]["verdict_id"] for key in ids}
    told = {
        submission_id: items[submission_id]["verdict_id"]
        for number, (submission_id, kind) in enumerate(zip(ids, kinds(COUNT), strict=True))
        if kind in CHANGED and number % WAITING_EVERY == 0
    }
    assert sorted(operated.outbox()) == sorted([late["verdict_id"], *told.values()])
    operated.judge()
    wait_for(lambda: not operated.undelivered(), 60)
    submission_id, verdict_id = next(iter(told.items()))
    assert operated.answer(submission_id)["verdict_id"] == verdict_id
    return told


def _everybody_who_was_told_is_told_again(operated, told):
    wait_for(lambda: not operated.undelivered(), 60)
    former = operated.in_force()
    for submission_id in told:
        assert operated.answer(submission_id)["verdict_id"] == former[submission_id]["verdict_id"]


def _audited(operated, batch_id, ids):
    """Who did what and why is on record, for the batch and for each submission."""
    happened = regrades.events(operated.store, batch_id)
    kinds_of = [event.kind for event in happened]
    assert [kind for kind in kinds_of if kind != "regrade_finished"] == [
        "regrade_planned",
        "regrade_started",
        "regrade_applied",
        "regrade_reverted",
    ]
    assert happened[0].detail["reason"] == "the threshold was too low"
    assert all(event.actor for event in happened)
    told = operated.rows(EventRow, EventRow.submission_id == ids[0], EventRow.batch_id == batch_id)
    assert [row["kind"] for row in sorted(told, key=lambda row: row["id"])] == ["regraded", "regrade_undone"]
    assert "regraded" in operated.grader("status", ids[0])


def test_a_batch_that_is_paused_and_given_up(operated):
    """Pausing and resuming loses nothing; a cancelled batch is applied only when told so, a discarded one never."""
    fill(operated.store, 200, signer=operated.signer())
    former = operated.in_force()
    batch_id = operated.plan("--lab-file", str(operated.stricter_lab()))["batch_id"]
    for early in ("pause", "resume", "apply", "revert"):
        assert batch_id in operated.regrade(early, batch_id, status=2)
    operated.regrade("start", batch_id)
    first = operated.hold(75)
    operated.hold(25)  # for good
    operated.regrade_worker()
    operated.await_done(batch_id, 25)
    regrade_states.pause(operated.store, batch_id, "operator")  # a command would take longer than the worker
    operated.await_idle(batch_id, held=100)
    operated.give_back(first)
    done = regrades.progress(operated.store, batch_id).done
    assert 25 <= done <= 100
    operated.regrade("diff", batch_id, status=4)
    assert regrades.progress(operated.store, batch_id).done == done, "a paused batch is not worked on"
    operated.regrade("resume", batch_id)
    operated.await_done(batch_id, done + 25)
    regrade_states.cancel(operated.store, batch_id, "operator")
    operated.await_idle(batch_id)  # what was in hand is taken out of it
    done = regrades.progress(operated.store, batch_id).done
    assert 50 <= done <= 175
    assert "--unfinished" in operated.regrade("apply", batch_id, status=2)
    assert operated.in_force() == former
    operated.regrade("apply", batch_id, "--unfinished", "--notify", "none")
    assert sum(row["batch_id"] == batch_id for row in operated.in_force().values()) == done
    assert operated.rows(OutboxRow) == []
    assert "is applied" in operated.regrade("discard", batch_id, status=2)
    operated.regrade("revert", batch_id, "--notify", "none")
    assert documents(operated.in_force()) == documents(former)


def test_a_cohort_from_the_service_itself(operated):
    """Submissions that the service's own code accepted and judged move as the stored ones do."""
    fill_through_service(operated.store, 50, operated.signer())
    batch_id = operated.plan("--lab-file", str(operated.stricter_lab()))["batch_id"]
    operated.regrade("start", batch_id)
    operated.regrade_worker()
    operated.await_batch(batch_id, "finished")
    diff = json.loads(operated.regrade("diff", batch_id, "--json", "-", status=1))
    assert {(row["old"], row["new"]): row["submissions"] for row in diff["statuses"]} == transitions(50)
