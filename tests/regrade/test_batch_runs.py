"""Runs of a batch that fail, are cancelled or come back late, while operators pause or end the batch."""

import threading

import pytest
from sqlalchemy import select, update

from grader_service.errors import UsageError
from grader_service.model.regrade import BatchState, ItemState
from grader_service.regrade.releasing import release_due
from grader_service.retry_policy import RetryPolicy
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.store import (
    cancelling,
    leases,
    operations,
    regrade_apply,
    regrade_states,
    regrade_work,
    regrades,
    results,
    sweep,
)
from grader_service.store.attempts import attempt_number
from grader_service.store.ids import Named
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import EventRow, EvidenceRow, RunRow, RunState, SubmissionRow, VerdictRow
from tests.command_line import typed
from tests.regrade.deps import COUNT, counts, in_force, overwrite, read, runs_of, started, state
from tests.services.postgres_server import somebody_waits
from tests.store.factories import a_verdict
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


AT_REST = {"pause": regrade_states.pause, "cancel": regrade_states.cancel, "discard": regrade_states.discard}
ENDED = {
    "cancel": regrade_states.cancel,
    "discard": regrade_states.discard,
    "apply": lambda *arguments: regrade_apply.apply(*arguments, unfinished=True),
}


@pytest.fixture
def released(deps, releasing):
    """A running batch, and the claim of a runner on its first run."""
    batch_id = started(deps, level="run")
    assert release_due(releasing) == 2
    return batch_id, leases.claim(deps.store, "run", "runner", 60.0)


def judged(deps):
    return judge_next(JudgeDeps(deps.store, deps.registry, deps.signer, "judge"))


def evidence_for(deps, claim):
    """Kind and document as the first run of the claimed submission left them, under the name of the new run."""
    of_one = (VerdictRow.submission_id == claim.submission_id, VerdictRow.current)
    ((run_id,),) = read(deps.store, VerdictRow.run_id, where=of_one)
    stored = results.load_evidence(deps.store, run_id)
    return stored.kind, stored.document.replace(run_id.encode(), claim.run_id.encode())


def run_states(deps):
    """Run to state, of runs that a batch asked for."""
    rows = read(deps.store, RunRow.run_id, RunRow.state, where=[RunRow.item_id.is_not(None)])
    return {row.run_id: row.state for row in rows}


def give_back(deps, claim):
    return leases.give_back(deps.store, claim, "told to stop")


def fail(deps, claim, max_attempts=3):
    return leases.fail(deps.store, claim, "our fault", RetryPolicy(max_attempts=max_attempts, delay_s=0.0))


def fail_for_good(deps, claim):
    return fail(deps, claim, max_attempts=1)


def store_verdict(deps, claim):
    return results.store_verdict(deps.store, claim, a_verdict(claim.submission_id))


def expire(deps, _):
    return sweep.expire_leases(deps.store, RetryPolicy(max_attempts=3, delay_s=0.0))


def retry(deps, _):
    return operations.retry(deps.store, "bob")


@pytest.mark.parametrize("end", [give_back, fail])
@pytest.mark.parametrize("operation", AT_REST)
def test_a_run_that_comes_back_to_a_batch_at_rest_is_not_made(deps, released, operation, end):
    """Given back or failed through us, it is taken back; only a batch that goes on has it made anew."""
    batch_id, claim = released
    AT_REST[operation](deps.store, batch_id, "ann")
    assert end(deps, claim)
    assert leases.claim(deps.store, "run", "runner", 60.0) is None
    assert regrades.progress(deps.store, batch_id).gpu_used_s > 0, "the device was held"
    if operation == "pause":
        assert counts(deps, batch_id) == {ItemState.WAITING: COUNT}


@pytest.mark.parametrize("operation", ENDED)
def test_a_batch_that_ends_leaves_no_dead_lettered_run(deps, released, operation):
    """A run that nobody could try again is cancelled, and its item goes on to say what failed."""
    batch_id, claim = released
    fail_for_good(deps, claim)
    assert [run["run_id"] for run in operations.queue_state(deps.store).stuck] == [claim.run_id]
    ENDED[operation](deps.store, batch_id, "ann")
    assert operations.queue_state(deps.store).stuck == []
    assert set(run_states(deps).values()) == {RunState.CANCELLED}
    assert counts(deps, batch_id) == {ItemState.NEEDS_ATTENTION: 1, ItemState.CANCELLED: COUNT - 1}
    assert [change.error for change in regrades.changes(deps.store, batch_id) if change.error] == ["our fault"]


@pytest.mark.parametrize("failure", ["run", "judge", "vanished"])
def test_a_run_that_fails_for_the_last_time_after_its_batch_ended_is_cancelled(deps, released, failure):
    """Its item was given up, so that no operator could do anything about a dead-lettered one."""
    batch_id, claim = released
    if failure == "judge":
        assert results.store_evidence(deps.store, claim, *evidence_for(deps, claim), {})
        claim = leases.claim(deps.store, "judge", "judge", 60.0)
    regrade_states.discard(deps.store, batch_id, "ann")
    if failure == "vanished":
        overwrite(deps.store, RunRow, RunRow.run_id == claim.run_id, lease_until=0.0)
        assert sweep.expire_leases(deps.store, RetryPolicy(max_attempts=1, delay_s=0.0)) == 1
    else:
        assert fail_for_good(deps, claim) is RunState.CANCELLED
    assert operations.queue_state(deps.store).stuck == []
    assert run_states(deps)[claim.run_id] == RunState.CANCELLED


def test_a_run_that_is_dead_lettered_while_its_batch_is_paused_can_be_tried_again(deps, released):
    """The batch may go on, so that an operator is asked; who names the run is told of the batch."""
    batch_id, claim = released
    regrade_states.pause(deps.store, batch_id, "ann")
    assert fail_for_good(deps, claim) is RunState.NEEDS_ATTENTION
    url = deps.store.engine.url.render_as_string(hide_password=False)
    with pytest.raises(UsageError, match=f"batch {batch_id}, which is paused; `grader regrade retry {batch_id}`"):
        typed("retry", claim.run_id, GRADER_DATABASE_URL=url)
    assert regrade_states.retry(deps.store, batch_id, "ann") == 1
    assert operations.queue_state(deps.store).stuck == []
    assert counts(deps, batch_id) == {ItemState.WAITING: COUNT}


@pytest.mark.parametrize("begun", [True, False])
def test_a_run_of_a_batch_can_be_cancelled_by_itself(deps, releasing, begun):
    """Its item gets no new verdict; the others go on, and the batch ends once nothing is left."""
    batch_id = started(deps, level="run")
    assert release_due(releasing) == 2
    claim = leases.claim(deps.store, "run", "runner", 60.0) if begun else None
    chosen = [RunRow.item_id.is_not(None), RunRow.state == ("running" if begun else "run_queued")]
    run_id, submission_id = read(deps.store, RunRow.run_id, RunRow.submission_id, where=chosen)[0]
    assert cancelling.cancel(deps.store, Named(submission_id, run_id), "hogs a GPU", "op") == 1
    assert run_states(deps)[run_id] == "cancelled"
    if begun:
        assert not results.store_evidence(deps.store, claim, *evidence_for(deps, claim), {})
    assert judged(deps) is None, "there is nobody to answer"
    assert counts(deps, batch_id)["cancelled"] == 1
    spent = read(deps.store, RegradeItemRow.gpu_s, where=[RegradeItemRow.state == "cancelled"])
    assert (spent[0].gpu_s > 0) is begun, "its batch pays for the time on the device"
    told = read(deps.store, EventRow.actor, EventRow.batch_id, where=[EventRow.kind == "cancelled"])
    assert list(map(tuple, told)) == [("op", batch_id)]
    while state(deps, batch_id) == "running":
        release_due(releasing)
        left = leases.claim(deps.store, "run", "runner", 60.0)
        assert cancelling.cancel(deps.store, Named(left.submission_id, left.run_id), "", "op") == 1
    assert (state(deps, batch_id), set(run_states(deps).values())) == ("finished", {"cancelled"})


def test_what_was_executed_is_not_executed_again(deps, releasing):
    """Of two dead-lettered runs the one that has its evidence is judged again; only the other's item gets a new run."""
    both = (min(in_force(deps)), max(in_force(deps)))
    batch_id = started(deps, level="run", submissions=both)
    assert release_due(releasing) == 2
    executed, lost = (leases.claim(deps.store, "run", "runner", 60.0) for _ in both)
    assert results.store_evidence(deps.store, executed, *evidence_for(deps, executed), {})
    for claim in (leases.claim(deps.store, "judge", "judge", 60.0), lost):
        fail_for_good(deps, claim)
    regrade_work.settle_all(deps.store, "sweeper")
    assert state(deps, batch_id) is BatchState.FINISHED
    assert regrade_states.retry(deps.store, batch_id, "ann") == 2
    assert state(deps, batch_id) is BatchState.RUNNING
    assert run_states(deps) == {executed.run_id: RunState.JUDGE_QUEUED, lost.run_id: RunState.CANCELLED}
    assert counts(deps, batch_id) == {ItemState.WORKING: 1, ItemState.WAITING: 1}
    event = operations.whereabouts(deps.store, executed.submission_id).events[-1]
    assert (event["kind"], event["actor"], event["detail"]) == ("retried", "ann", {"state": "judge_queued"})
    assert judged(deps) is not None
    (change,) = [one for one in regrades.changes(deps.store, batch_id) if one.new is not None]
    assert (change.submission_id, change.new.run_id) == (executed.submission_id, executed.run_id)
    assert release_due(releasing) == 1
    assert leases.claim(deps.store, "run", "runner", 60.0).submission_id == lost.submission_id


@pytest.mark.parametrize(
    ("act", "expected"),
    [(give_back, True), (fail, RunState.RUN_QUEUED), (fail_for_good, RunState.CANCELLED), (retry, 0)],
)
def test_who_waits_for_a_batch_holds_nothing_of_it(deps, released, act, expected):
    """Whoever brings a run back, or tries it again, while an operator ends the batch waits without a deadlock."""
    batch_id, claim = released
    if act is retry:
        fail_for_good(deps, claim)
        overwrite(deps.store, RegradeBatchRow, state=BatchState.FINISHED.value)
    done = []
    if deps.store.is_sqlite:  # where transactions come one after another anyway
        regrade_states.discard(deps.store, batch_id, "ann")
        done.append(act(deps, claim))
    else:
        other = threading.Thread(target=lambda: done.append(act(deps, claim)))
        with deps.store.engine.begin() as operator:
            regrade_states.locked(operator, batch_id, "discarded", (BatchState.RUNNING, BatchState.FINISHED))
            other.start()
            wait_for(lambda: somebody_waits(deps.store.engine), 20.0)
            regrade_states.end(operator, batch_id)
            operator.execute(update(RegradeBatchRow).values(state=BatchState.DISCARDED.value))
        other.join(30.0)
    assert done == [expected]
    assert set(run_states(deps).values()) == {RunState.CANCELLED}
    assert not counts(deps, batch_id).get(ItemState.WORKING)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("act", [store_verdict, expire])
def test_who_holds_a_batch_gets_its_runs(deps, released, act):
    """Whoever stores a verdict, or takes a run back whose lease ended, holds no run while waiting for its batch."""
    batch_id, claim = released
    if act is store_verdict:
        assert results.store_evidence(deps.store, claim, *evidence_for(deps, claim), {})
        claim = leases.claim(deps.store, "judge", "judge", 60.0)
    else:
        overwrite(deps.store, RunRow, RunRow.run_id == claim.run_id, lease_until=0.0)
    done = []
    other = threading.Thread(target=lambda: done.append(act(deps, claim)))
    with deps.store.transaction() as operator:
        regrade_states.locked(operator, batch_id, "cancelled", (BatchState.RUNNING,))
        other.start()
        wait_for(lambda: somebody_waits(deps.store.engine), 20.0)
        operator.execute(select(RunRow.state).where(RunRow.run_id == claim.run_id).with_for_update()).one()
    other.join(30.0)
    assert done == [1]
    assert run_states(deps)[claim.run_id] == (RunState.DONE if act is store_verdict else RunState.RUN_QUEUED)


def test_a_run_that_ends_after_its_item_was_given_up_changes_nothing(deps, released):
    """Its verdict is staged, and belongs to no item."""
    batch_id, claim = released
    former = in_force(deps)
    regrade_apply.apply(deps.store, batch_id, "ann", unfinished=True)
    assert results.store_evidence(deps.store, claim, *evidence_for(deps, claim), {})
    assert judged(deps) is not None
    assert counts(deps, batch_id) == {ItemState.CANCELLED: COUNT}
    regrade_apply.revert(deps.store, batch_id, "ann")
    regrade_apply.apply(deps.store, batch_id, "ann", unfinished=True)
    assert in_force(deps) == former


def test_a_rehearsal_takes_no_official_verdicts_place(deps, released):
    """A run on a host without a GPU needs an operator's attention, and is no new verdict of its submission."""
    batch_id, claim = released
    official, document = evidence_for(deps, claim)
    document = document.replace(b'"device":"cuda"', b'"device":"cpu"')
    assert b'"device":"cpu"' in document
    assert results.store_evidence(deps.store, claim, official, document, {})
    assert judged(deps).mode == "rehearsal"
    (change,) = [one for one in regrades.changes(deps.store, batch_id) if one.submission_id == claim.submission_id]
    assert (change.old.mode, change.new, change.state) == ("official", None, ItemState.NEEDS_ATTENTION)
    assert "rehearsal" in change.error


def test_a_regrade_is_nobodys_attempt(deps, released):
    """Evidence of a run that a batch asked for counts for its learner only when its verdict comes in force."""
    batch_id, claim = released
    other = max(in_force(deps))
    both = [other, claim.submission_id]
    overwrite(deps.store, SubmissionRow, SubmissionRow.submission_id.in_(both), learner="solo")
    overwrite(deps.store, EvidenceRow, runs_of(*both), kind="evidence")
    assert results.store_evidence(deps.store, claim, "measured", evidence_for(deps, claim)[1], {})
    assert attempt_number(deps.store, other) == 1
    assert judged(deps) is not None
    regrade_apply.apply(deps.store, batch_id, "ann", unfinished=True)
    assert attempt_number(deps.store, other) == 2
