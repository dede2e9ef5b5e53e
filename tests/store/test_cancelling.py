"""What an operator cancels ends, in whatever state it is, and is answered; on both databases."""

from types import SimpleNamespace

import pytest
from sqlalchemy import select, update

from grader_service.errors import UsageError
from grader_service.retry_policy import RetryPolicy
from grader_service.store import cancelling, leases, operations, results
from grader_service.store.attempts import attempt_number
from grader_service.store.cancelling import cancel
from grader_service.store.ids import Named
from grader_service.store.tables import EventRow, RunRow, RunState, VerdictRow
from tests.store.factories import a_submission, a_verdict, accept

WHOLE = Named("s:1")


def run_of(store, submission_id="s:1"):
    with store.transaction() as connection:
        return connection.execute(select(RunRow.__table__).where(RunRow.submission_id == submission_id)).one()


def brought_to(store, state):
    """A submission whose run is in this state; the claim on it, if somebody has one."""
    accept(store, a_submission())
    if state is RunState.RUN_QUEUED:
        return None
    run = leases.claim(store, "run", "host/d/x", 60)
    if state is RunState.RUNNING:
        return run
    if state is RunState.NEEDS_ATTENTION:
        leases.fail(store, run, "ours", RetryPolicy(max_attempts=1, delay_s=0.0))
        return None
    assert results.store_evidence(store, run, "measured", b"{}", {})
    return leases.claim(store, "judge", "judge", 60) if state is RunState.JUDGING else None


@pytest.mark.parametrize("state", sorted(cancelling.UNFINISHED))
def test_whatever_it_is_at_it_goes_to_the_judge(store, state):
    """Who was at work on it has lost it; the judge is told why, and counts none of our failures before."""
    claim = brought_to(store, state)
    assert run_of(store).state == state
    assert cancel(store, WHOLE, "wrong \x1b[2Jfile", "op") == 1
    if claim is not None:
        assert not leases.renew(store, claim, 60)
    if state is RunState.RUNNING:
        assert not results.store_evidence(store, claim, "evidence", b"{}", {})
    if state is RunState.JUDGING:
        assert not results.store_verdict(store, claim, a_verdict())
    run = run_of(store)
    assert (run.state, run.attempts, run.lease_owner) == (RunState.JUDGE_QUEUED, 0, None)
    judge = leases.claim(store, "judge", "judge", 60)
    assert judge.cancelled == run.cancelled
    assert judge.cancelled.startswith("wrong ")
    assert "\x1b" not in judge.cancelled
    assert leases.claim(store, "run", "host/d/x", 60) is None
    assert results.store_verdict(store, judge, a_verdict())
    with store.transaction() as connection:
        told = connection.execute(select(EventRow.actor, EventRow.detail).where(EventRow.kind == "cancelled")).one()
    assert (told.actor, told.detail) == ("op", {"was": state, "reason": run.cancelled})
    assert cancel(store, WHOLE, "", "op") == 0, "it is done"


def test_twice_changes_nothing(store):
    """The first word counts."""
    brought_to(store, RunState.RUN_QUEUED)
    assert [cancel(store, WHOLE, reason, "op") for reason in ("first", "second")] == [1, 0]
    assert run_of(store).cancelled == "first"


def test_the_learners_next_comes_at_once_and_the_time_counts(store):
    """The device was held, whatever came of it."""
    brought_to(store, RunState.RUNNING)
    accept(store, a_submission(2))
    assert leases.claim(store, "run", "host/d/x", 60) is None
    with store.transaction() as connection:
        connection.execute(
            update(RunRow).where(RunRow.submission_id == "s:1").values(started_at=RunRow.started_at - 500.0)
        )
    cancel(store, WHOLE, "", "op")
    run = run_of(store)
    assert 500.0 <= run.held_s < 560.0
    assert run_of(store, "s:2").turn >= run.held_until + 500.0
    assert leases.claim(store, "run", "host/d/x", 60).submission_id == "s:2"


def test_one_run_that_is_named(store):
    """Those of other submissions go on, and an id of a run means that run."""
    for number in (1, 2):
        accept(store, a_submission(number, learner=f"l{number}"))
    assert cancel(store, Named("s:1", "0" * 32), "", "op") == 0
    assert cancel(store, Named("s:1", run_of(store).run_id), "", "op") == 1
    assert run_of(store, "s:2").state == RunState.RUN_QUEUED


def test_it_is_no_attempt(store):
    """Though it was measured before it was cancelled."""
    brought_to(store, RunState.JUDGE_QUEUED)
    accept(store, a_submission(2))
    assert attempt_number(store, "s:2") == 2
    cancel(store, WHOLE, "", "op")
    assert attempt_number(store, "s:2") == 1
    assert results.store_verdict(store, leases.claim(store, "judge", "judge", 60), cancelled_verdict())
    assert attempt_number(store, "s:2") == 1
    with store.transaction() as connection:  # as a batch does that judges the evidence again and is applied
        connection.execute(update(VerdictRow).values(code="grade.passed"))
    assert attempt_number(store, "s:2") == 2


def cancelled_verdict():
    """The judge's answer."""
    return a_verdict().model_copy(update={"code": cancelling.CANCELLED})


def test_tried_again_it_is_judged_and_not_executed(store):
    """The judge failed on it: what an operator cancelled before does not run after all."""
    brought_to(store, RunState.RUN_QUEUED)
    cancel(store, WHOLE, "", "op")
    leases.fail(store, leases.claim(store, "judge", "judge", 60), "ours", RetryPolicy(max_attempts=1, delay_s=0.0))
    assert run_of(store).state == RunState.NEEDS_ATTENTION
    assert operations.retry(store, "op") == 1
    assert run_of(store).state == RunState.JUDGE_QUEUED


def test_one_that_went_on_meanwhile_is_looked_at_again(store, monkeypatch):
    """The look was before somebody claimed it: nothing is changed by that, and the next look finds how it is."""
    brought_to(store, RunState.RUN_QUEUED)
    seen, end = [], cancelling._end

    def at_first_late(connection, run, *rest):
        seen.append(run)
        if len(seen) == 1:
            run = SimpleNamespace(**dict(run._mapping) | {"fence": run.fence - 1})
        return end(connection, run, *rest)

    monkeypatch.setattr(cancelling, "_end", at_first_late)
    assert cancel(store, WHOLE, "", "op") == 1
    assert len(seen) == 2


def test_a_reason_is_short(store):
    """As for batches."""
    brought_to(store, RunState.RUN_QUEUED)
    with pytest.raises(UsageError, match="at most 200 characters, this one has 201"):
        cancel(store, WHOLE, "x" * 201, "op")
    assert run_of(store).cancelled is None
