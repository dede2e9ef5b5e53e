"""Batches over their life: judged in chunks, interrupted, failed through us, applied, undone; on both databases."""

from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import update

from grader_service.errors import UsageError
from grader_service.model.evidence import RunPlan
from grader_service.model.regrade import BatchState, ItemState
from grader_service.regrade import bulk
from grader_service.regrade.bulk import judge_chunk
from grader_service.regrade.escalating import escalate
from grader_service.regrade.filters import lost_a_decision
from grader_service.regrade.releasing import release_due
from grader_service.retry_policy import RetryPolicy
from grader_service.store import leases, regrade_apply, regrade_states, regrade_work, regrades
from grader_service.store.operations import whereabouts
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.regrades import dead_lettered
from grader_service.store.tables import CompatibilityRow, EvidenceRow, VerdictRow
from tests.regrade.deps import (
    COUNT,
    answers,
    counts,
    in_force,
    judge_all,
    lose,
    overwrite,
    planned,
    read,
    runs_of,
    started,
    state,
    waiting,
    worked_off,
)
from tests.regrade.kinds import transitions
from tests.store.threads import at_once


def test_verdicts_stay_aside_until_they_are_applied(deps, stricter):
    """Every submission has its new verdict, of the kind that was expected, and every old one is in force."""
    former = in_force(deps)
    batch_id = worked_off(deps, stricter)
    assert in_force(deps) == former
    assert answers(deps) == []
    changes = list(regrades.changes(deps.store, batch_id, size=7))
    for change in changes:
        assert change.old.verdict_id == former[change.submission_id]
        assert change.new.run_id == change.old.run_id
    assert Counter((change.old.status, change.new.status) for change in changes) == transitions(COUNT)


def test_apply_and_revert(deps, stricter):
    """All at once in force, those whose verdict says something else are told, and all of it can be undone."""
    former = in_force(deps)
    batch_id = worked_off(deps, stricter)
    changed = {change.submission_id for change in regrades.changes(deps.store, batch_id) if change.changed}
    told = waiting(deps, changed)
    assert 0 < len(changed) < COUNT
    assert told
    done = regrade_apply.apply(deps.store, batch_id, "ann")
    assert (done.in_force, done.notified, done.outdated, done.unfinished) == (COUNT, told, 0, 0)
    latter = in_force(deps)
    assert not set(latter.values()) & set(former.values())
    assert set(answers(deps)) <= {latter[submission_id] for submission_id in changed}
    one = min(changed)
    assert whereabouts(deps.store, one).events[-1]["kind"] == "regraded"

    undone = regrade_apply.revert(deps.store, batch_id, "bob")
    assert (undone.restored, undone.notified, undone.outdated) == (COUNT, told, 0)
    assert in_force(deps) == former
    assert len(answers(deps)) == 2 * told
    trail = [(event.kind, event.actor) for event in regrades.events(deps.store, batch_id)]
    assert [pair for pair in trail if pair[1] in {"ann", "bob"}] == [
        ("regrade_planned", "ann"),
        ("regrade_started", "ann"),
        ("regrade_applied", "ann"),
        ("regrade_reverted", "bob"),
    ]
    assert regrade_apply.apply(deps.store, batch_id, "ann", notify="none").in_force == COUNT, "and again"
    assert in_force(deps) == latter


@pytest.mark.parametrize(("notify", "share"), [("none", 0), ("all", 1)])
def test_who_is_told_can_be_said(deps, notify, share):
    """Nobody, or everybody who waits, although no verdict says anything else."""
    batch_id = worked_off(deps)
    assert not any(change.changed for change in regrades.changes(deps.store, batch_id))
    everybody = waiting(deps, list(in_force(deps)))
    done = regrade_apply.apply(deps.store, batch_id, "ann", notify=notify)
    assert (done.in_force, done.notified) == (COUNT, share * everybody)


def test_what_changed_meanwhile_is_left_alone(deps, stricter):
    """A submission that another batch has given a verdict keeps it, when this one is applied or undone."""
    former = in_force(deps)
    early, late = worked_off(deps, stricter), worked_off(deps, stricter, statuses=("passed",))
    of_late = {change.submission_id: change.new.verdict_id for change in regrades.changes(deps.store, late)}
    regrade_apply.apply(deps.store, late, "ann", notify="none")
    assert sum(change.outdated for change in regrades.changes(deps.store, early)) == len(of_late)
    done = regrade_apply.apply(deps.store, early, "ann", notify="none")
    assert (done.in_force, done.outdated) == (COUNT - len(of_late), len(of_late))
    now = in_force(deps)
    assert {key: now[key] for key in of_late} == of_late
    assert not former.items() & now.items()
    undone = regrade_apply.revert(deps.store, late, "ann", notify="none")
    assert (undone.restored, undone.outdated) == (len(of_late), 0)
    regrade_apply.revert(deps.store, early, "ann", notify="none")
    assert in_force(deps) == former


def test_a_pause_hands_nothing_out(deps):
    """What is in hand is finished and kept; a resumed batch goes on where it was."""
    batch_id = started(deps)
    assert judge_chunk(deps, size=10) == 10
    regrade_states.pause(deps.store, batch_id, "ann")
    assert judge_chunk(deps) is None
    assert counts(deps, batch_id) == {ItemState.DONE: 10, ItemState.WAITING: COUNT - 10}
    regrade_states.resume(deps.store, batch_id, "ann")
    assert judge_all(deps) == COUNT - 10
    assert state(deps, batch_id) is BatchState.FINISHED


def test_a_worker_that_is_told_to_stop_gives_back(deps):
    """What it has judged is kept, the rest waits again at no cost."""
    batch_id = started(deps)
    asked = iter([False, False, True])
    assert judge_chunk(deps, lambda: next(asked), size=10) == 2
    assert counts(deps, batch_id) == {ItemState.DONE: 2, ItemState.WAITING: COUNT - 2}
    assert {row.attempts for row in read(deps.store, RegradeItemRow.attempts)} == {0}


def test_a_version_that_the_schema_left_behind_claims_nothing(deps):
    """Newer workers do."""
    started(deps)
    with deps.store.transaction() as connection:
        connection.execute(update(CompatibilityRow).values(oldest="9998"))
    assert regrade_work.claim_chunk(deps.store, "old", 60.0, 10) is None


def test_a_worker_that_vanished_is_replaced(deps):
    """Its items come back when their leases end; what it would store later is refused."""
    batch_id = started(deps)
    chunk = regrade_work.claim_chunk(deps.store, "ghost", 60.0, 10)
    assert _vanish(deps, max_attempts=2) == 10
    judge_all(deps)
    assert counts(deps, batch_id) == {ItemState.DONE: COUNT}
    before = read(deps.store, VerdictRow.verdict_id)
    late = [bulk._answer(deps, chunk, job) for job in chunk.jobs]
    assert regrade_work.store_answers(deps.store, chunk, late, RetryPolicy(max_attempts=2, delay_s=0.0)) == 0
    assert not regrade_work.renew_chunk(deps.store, chunk, 60.0)
    assert len(read(deps.store, VerdictRow.verdict_id)) == len(before)


def _vanish(deps, max_attempts):
    """Whoever holds items is gone, and somebody has noticed; returns how many items that were."""
    overwrite(deps.store, RegradeItemRow, RegradeItemRow.lease_owner.is_not(None), lease_until=0)
    return regrade_work.expire_items(deps.store, RetryPolicy(max_attempts=max_attempts, delay_s=0.0))


def test_an_item_that_kills_its_process_is_alone_when_it_is_tried_again(deps):
    """Those that were claimed beside it lose one try, and are judged."""
    batch_id = started(deps)
    sick = sorted(in_force(deps))[3]
    claimed_with_it = []
    while (chunk := regrade_work.claim_chunk(deps.store, "judge", 60.0, 25)) is not None:
        if sick in {job.submission.submission_id for job in chunk.jobs}:
            claimed_with_it.append(len(chunk.jobs))
            _vanish(deps, max_attempts=3)
        else:
            found = [bulk._answer(deps, chunk, job) for job in chunk.jobs]
            regrade_work.store_answers(deps.store, chunk, found, RetryPolicy(max_attempts=3, delay_s=0.0))
    assert claimed_with_it == [25, 1, 1]
    assert counts(deps, batch_id) == {ItemState.DONE: COUNT - 1, ItemState.NEEDS_ATTENTION: 1}


def test_a_vanished_worker_is_in_the_audit_trail(deps):
    """Every try that it cost is an event of the submission, under the worker's name."""
    first = min(in_force(deps))
    batch_id = started(deps, submissions=(first,))
    tokens = []
    for _ in range(2):
        tokens.append(regrade_work.claim_chunk(deps.store, "ghost", 60.0, 10).token)
        _vanish(deps, max_attempts=2)
    assert counts(deps, batch_id) == {ItemState.NEEDS_ATTENTION: 1}
    events = whereabouts(deps.store, first).events[-2:]
    assert [(event["kind"], event["actor"]) for event in events] == [
        ("regrade_failed_by_us", tokens[0]),
        ("regrade_needs_attention", tokens[1]),
    ]
    assert [event["detail"]["attempts"] for event in events] == [1, 2]
    assert "stopped renewing its lease" in events[-1]["detail"]["error"]


def test_nothing_is_judged_twice_by_many(deps, stricter):
    """Several workers share a batch: every item has exactly one verdict, and the batch ends."""
    batch_id = started(deps, stricter, repeats=3)
    each = [replace(deps, owner=f"worker-{number}", labs={}) for number in range(4)]
    done = at_once(4, lambda number: judge_all(each[number], size=7))
    regrade_work.settle_all(deps.store, "ann")
    assert sum(done) == 3 * COUNT
    assert state(deps, batch_id) is BatchState.FINISHED
    assert len(read(deps.store, VerdictRow.verdict_id, where=[VerdictRow.batch_id == batch_id])) == 3 * COUNT
    for change in regrades.changes(deps.store, batch_id):
        assert len(change.repeats) == 3
        assert len({one.status for one in change.repeats}) == 1, "stored evidence gives the same answer every time"


def test_our_failures_wait_for_an_operator(deps):
    """Items whose evidence is gone are dead-lettered after their tries; the batch ends, and is applied when told so."""
    first, second = sorted(in_force(deps))[:2]
    batch_id = started(deps)
    lose(deps, first, second)
    judge_all(deps)
    assert counts(deps, batch_id) == {ItemState.DONE: COUNT - 2, ItemState.NEEDS_ATTENTION: 2}
    assert state(deps, batch_id) is BatchState.FINISHED
    errors = {change.submission_id: change.error for change in regrades.changes(deps.store, batch_id) if change.error}
    assert set(errors) == {first, second}
    assert all("not stored any more" in error for error in errors.values())
    former = in_force(deps)
    with pytest.raises(UsageError, match="2 of its submissions have no new verdict"):
        regrade_apply.apply(deps.store, batch_id, "ann")
    assert in_force(deps) == former
    assert regrade_states.retry(deps.store, batch_id, "ann") == 2
    assert state(deps, batch_id) is BatchState.RUNNING
    judge_all(deps)
    done = regrade_apply.apply(deps.store, batch_id, "ann", unfinished=True)
    assert (done.in_force, done.unfinished) == (COUNT - 2, 2)
    assert {key for key, verdict in in_force(deps).items() if verdict == former[key]} == {first, second}


def test_later_repetitions_that_need_attention_are_named(deps):
    """In order, with the failure; no more than asked for, and none of another batch."""
    first, second = sorted(in_force(deps))[:2]
    batch_id, other = started(deps, repeats=3), started(deps)
    assert judge_chunk(deps, size=COUNT) == COUNT
    assert counts(deps, batch_id) == {ItemState.DONE: COUNT, ItemState.WAITING: 2 * COUNT}
    lose(deps, first, second)
    judge_all(deps)
    found = dead_lettered(deps.store, batch_id)
    assert [(item.submission_id, item.repetition) for item in found] == [
        (first, 2),
        (first, 3),
        (second, 2),
        (second, 3),
    ]
    assert all(item.attempts == 2 and "not stored any more" in item.error for item in found)
    assert dead_lettered(deps.store, batch_id, limit=3) == found[:3]
    assert [(item.submission_id, item.repetition) for item in dead_lettered(deps.store, other)] == [
        (first, 1),
        (second, 1),
    ]


def test_an_unfinished_batch_is_applied_only_when_told(deps):
    """A running batch is refused; told so, what waits is given up and nobody works on it afterwards."""
    batch_id = started(deps)
    judge_chunk(deps, size=10)
    with pytest.raises(UsageError, match=f"{COUNT - 10} of its submissions have no new verdict"):
        regrade_apply.apply(deps.store, batch_id, "ann")
    done = regrade_apply.apply(deps.store, batch_id, "ann", unfinished=True)
    assert (done.in_force, done.unfinished) == (10, COUNT - 10)
    assert judge_chunk(deps) is None


def test_a_cancelled_batch_can_be_looked_at(deps):
    """Its verdicts are there, nothing more is judged; a discarded one never comes in force."""
    batch_id = started(deps)
    judge_chunk(deps, size=10)
    regrade_states.cancel(deps.store, batch_id, "ann")
    assert judge_chunk(deps) is None
    assert counts(deps, batch_id) == {ItemState.DONE: 10, ItemState.CANCELLED: COUNT - 10}
    assert sum(change.new is not None for change in regrades.changes(deps.store, batch_id)) == 10
    regrade_states.discard(deps.store, batch_id, "ann")
    with pytest.raises(UsageError, match="is discarded"):
        regrade_apply.apply(deps.store, batch_id, "ann", unfinished=True)


def test_what_judging_leaves_open_is_run_again(deps, stricter, releasing):
    """Where evidence says little about the new threshold a run follows, by the lab of the batch; others keep theirs."""
    batch_id = worked_off(deps, stricter)
    lost = [change for change in regrades.changes(deps.store, batch_id) if lost_a_decision(change)]
    assert {(change.old.status, change.new.status) for change in lost} == {("passed", "inconclusive")}
    assert escalate(deps.store, batch_id, "ann") == len(lost)
    assert counts(deps, batch_id) == {ItemState.DONE: COUNT - len(lost), ItemState.WAITING: len(lost)}
    assert state(deps, batch_id) is BatchState.RUNNING
    assert judge_chunk(deps) is None, "there is nothing to judge before they have run"
    released = release_due(releasing)
    assert 1 <= released <= len(lost)
    claim = leases.claim(deps.store, "run", "runner", 60.0)
    run = RunPlan.model_validate(claim.plan)
    assert claim.submission_id in {change.submission_id for change in lost}
    assert (run.threshold, run.lab.sha256) == (1.3, regrades.batch(deps.store, batch_id).labs[0].sha256)


STATES = {
    "planned": ((), {"start", "cancel", "discard"}),
    "running": (("start",), {"pause", "cancel", "discard", "retry"}),
    "paused": (("start", "pause"), {"resume", "cancel", "discard", "retry"}),
    "finished": (("start", "judge"), {"apply", "discard", "retry"}),
    "cancelled": (("start", "cancel"), {"discard"}),
    "applied": (("start", "judge", "apply"), {"revert"}),
    "reverted": (("start", "judge", "apply", "revert"), {"apply"}),
    "discarded": (("start", "discard"), set()),
}
"""What leads to each state of a batch, and what may be done in it."""
ACTIONS = {
    **{name: getattr(regrade_states, name) for name in ("start", "pause", "resume", "cancel", "discard", "retry")},
    **{name: getattr(regrade_apply, name) for name in ("apply", "revert")},
}


@pytest.mark.parametrize("name", STATES)
def test_each_state_allows_what_makes_sense(deps, name):
    """Everything else is refused with the state, and changes nothing."""
    steps, allowed = STATES[name]
    batch_id = planned(deps).batch_id
    for step in steps:
        if step == "judge":
            judge_all(deps)
        else:
            ACTIONS[step](deps.store, batch_id, "ann")
    assert state(deps, batch_id) == name
    former = in_force(deps)
    for action in sorted(ACTIONS.keys() - allowed):
        with pytest.raises(UsageError, match=f"{batch_id} is {name}"):
            ACTIONS[action](deps.store, batch_id, "ann")
    assert state(deps, batch_id) == name
    assert in_force(deps) == former


@pytest.mark.parametrize("action", ACTIONS)
def test_a_batch_that_is_not_there(store, action):
    """Is named, with the command that lists those there are."""
    with pytest.raises(UsageError, match=r"no batch 'rg-nothing'.*grader regrade list"):
        ACTIONS[action](store, "rg-nothing", "ann")


@pytest.mark.parametrize(
    ("table", "values", "said"),
    [
        pytest.param(EvidenceRow, {"sha256": "0" * 64}, "does not match its digest", id="other-evidence"),
        pytest.param(EvidenceRow, {"document": b"damaged"}, "is damaged", id="evidence"),
        pytest.param(VerdictRow, {"summary": "{}"}, "for VerdictSummary", id="verdict"),
    ],
)
def test_one_damaged_row_is_ours_and_stops_nobody_else(deps, table, values, said):
    """Evidence that is not what was written, or a verdict that cannot be read, is one item that needs attention."""
    first, *others = sorted(in_force(deps))
    of_first = runs_of(first) if table is EvidenceRow else VerdictRow.submission_id == first
    batch_id = started(deps)
    overwrite(deps.store, table, of_first, **values)
    judge_all(deps)
    assert state(deps, batch_id) is BatchState.FINISHED
    assert counts(deps, batch_id) == {ItemState.DONE: len(others), ItemState.NEEDS_ATTENTION: 1}
    ((item,),) = read(deps.store, RegradeItemRow.last_error, where=[RegradeItemRow.submission_id == first])
    assert said in item
