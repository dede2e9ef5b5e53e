"""What goes wrong around a batch: damaged rows, runs that come back late, a broker that is away, operators who meet."""

import json
import threading

import pytest
from sqlalchemy import select, update

from grader_service.errors import InfrastructureError, UsageError
from grader_service.model.regrade import BatchState, ItemState, Selection
from grader_service.regrade import bulk
from grader_service.regrade.bulk import judge_chunk
from grader_service.regrade.releasing import ReleaseDesk, release_due
from grader_service.service.judge import JudgeDesk, judge_next
from grader_service.store import (
    leases,
    operations,
    outbox,
    regrade_apply,
    regrade_states,
    regrade_work,
    regrades,
    results,
)
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.attempts import attempt_number
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import EvidenceRow, RunRow, SubmissionRow, VerdictRow
from tests.regrade.desk import COUNT, answers, counts, in_force, lose, started, state, worked_off

AT_REST = {"pause": regrade_states.pause, "cancel": regrade_states.cancel, "discard": regrade_states.discard}


@pytest.fixture
def releasing(desk, tmp_path):
    """Whoever makes runs of items."""
    return ReleaseDesk(desk.store, ArtifactStore(f"file://{tmp_path}/artifacts"), desk.registry, "worker")


@pytest.fixture
def released(desk, releasing):
    """A running batch, and the claim of a runner on its first run."""
    batch_id = started(desk, level="run")
    assert release_due(releasing) == 2
    return batch_id, leases.claim(desk.store, "run", "runner", 60.0)


def judged(desk):
    return judge_next(JudgeDesk(desk.store, desk.registry, desk.signer, "judge"))


def evidence_for(desk, claim):
    """Kind and document as the first run of the claimed submission left them, under the name of the new run."""
    with desk.store.transaction() as connection:
        run_id = connection.execute(
            select(VerdictRow.run_id).where(VerdictRow.submission_id == claim.submission_id, VerdictRow.current)
        ).scalar_one()
    stored = results.load_evidence(desk.store, run_id)
    return stored.kind, stored.document.replace(run_id.encode(), claim.run_id.encode())


def test_what_was_not_sent_in_time_is_not_sent_at_all(desk, stricter):
    """With the broker away while a batch is applied and undone, platforms end with the verdicts that are in force."""
    batch_id = worked_off(desk, stricter)
    regrade_apply.apply(desk.store, batch_id, "ann")
    assert answers(desk)
    regrade_apply.revert(desk.store, batch_id, "ann")
    letters = outbox.due(desk.store)
    assert len(letters) == len(answers(desk))
    assert {json.loads(letter.document)["verdict_id"] for letter in letters} <= set(in_force(desk).values())


def test_batches_are_undone_in_the_reverse_order(desk, stricter):
    """A batch that another one was planned on cannot be undone before it."""
    former = in_force(desk)
    first = worked_off(desk, stricter)
    regrade_apply.apply(desk.store, first, "ann")
    second = worked_off(desk)
    regrade_apply.apply(desk.store, second, "ann")
    with pytest.raises(UsageError, match=f"revert {second} first"):
        regrade_apply.revert(desk.store, first, "ann")
    regrade_apply.revert(desk.store, second, "ann")
    regrade_apply.revert(desk.store, first, "ann")
    assert in_force(desk) == former


def test_repetitions_are_waited_for(desk):
    """With every first repetition done and others open, `apply` still has to be told."""
    batch_id = started(desk, repeats=2)
    for _ in range(COUNT // 10):
        judge_chunk(desk, size=10)
    assert counts(desk, batch_id) == {ItemState.DONE: COUNT, ItemState.WAITING: COUNT}
    with pytest.raises(UsageError, match=f"{COUNT} repetitions are open"):
        regrade_apply.apply(desk.store, batch_id, "ann")
    assert regrade_apply.apply(desk.store, batch_id, "ann", unfinished=True).in_force == COUNT


@pytest.mark.parametrize("what", ["evidence", "verdict"])
def test_one_damaged_row_stops_nobody_else(desk, what):
    """Evidence that cannot be unpacked, or a verdict that cannot be read, is one item that needs attention."""
    first, *others = sorted(in_force(desk))
    batch_id = started(desk)
    with desk.store.transaction() as connection:
        if what == "evidence":
            run = select(VerdictRow.run_id).where(VerdictRow.submission_id == first).scalar_subquery()
            connection.execute(update(EvidenceRow).where(EvidenceRow.run_id == run).values(document=b"damaged"))
        else:
            broken = {"standing": None, "document": "{}"}
            connection.execute(update(VerdictRow).where(VerdictRow.submission_id == first).values(broken))
    while judge_chunk(desk) is not None:
        pass
    assert state(desk, batch_id) is BatchState.FINISHED
    assert counts(desk, batch_id) == {ItemState.DONE: len(others), ItemState.NEEDS_ATTENTION: 1}


def test_odd_bytes_in_a_failure_are_kept_readable(desk, monkeypatch):
    """A check that fails with a NUL in its message costs its own item a try, and is said."""

    def fail(*_):
        raise InfrastructureError("one\x00two")

    monkeypatch.setattr(bulk, "verdict_on", fail)
    batch_id = started(desk)
    while judge_chunk(desk) is not None:
        pass
    assert counts(desk, batch_id) == {ItemState.NEEDS_ATTENTION: COUNT}
    assert {change.error for change in regrades.changes(desk.store, batch_id)} == {"InfrastructureError: one\ufffdtwo"}


@pytest.mark.parametrize("end", ["given_back", "failed"])
@pytest.mark.parametrize("operation", AT_REST)
def test_a_run_that_comes_back_to_a_batch_at_rest_is_not_made(desk, released, operation, end):
    """Given back or failed through us, it is taken back; only a batch that goes on has it made anew."""
    batch_id, claim = released
    AT_REST[operation](desk.store, batch_id, "ann")
    if end == "given_back":
        assert leases.give_back(desk.store, claim, "told to stop")
    else:
        leases.fail(desk.store, claim, "our fault", max_attempts=3, delay_s=0.0)
    assert leases.claim(desk.store, "run", "runner", 60.0) is None
    assert regrades.progress(desk.store, batch_id).gpu_used_s > 0, "the device was held"
    if operation == "pause":
        assert counts(desk, batch_id) == {ItemState.WAITING: COUNT}


def test_a_parked_run_of_a_batch_at_rest_is_not_retried(desk, released):
    """`grader retry --all` leaves runs of batches alone that do not go on."""
    batch_id, claim = released
    leases.fail(desk.store, claim, "our fault", max_attempts=1, delay_s=0.0)
    regrade_states.discard(desk.store, batch_id, "ann")
    assert operations.retry(desk.store, "ann") == 0
    assert leases.claim(desk.store, "run", "runner", 60.0) is None


def test_a_run_that_ends_after_its_item_was_given_up_changes_nothing(desk, released):
    """Its verdict is kept aside, and belongs to no item."""
    batch_id, claim = released
    former = in_force(desk)
    regrade_apply.apply(desk.store, batch_id, "ann", unfinished=True)
    assert results.store_evidence(desk.store, claim, *evidence_for(desk, claim), {})
    assert judged(desk) is not None
    assert counts(desk, batch_id) == {ItemState.CANCELLED: COUNT}
    regrade_apply.revert(desk.store, batch_id, "ann")
    regrade_apply.apply(desk.store, batch_id, "ann", unfinished=True)
    assert in_force(desk) == former


def test_a_rehearsal_takes_no_official_verdicts_place(desk, released):
    """A run on a host without a GPU needs an operator's attention, and is no new verdict of its submission."""
    batch_id, claim = released
    official, document = evidence_for(desk, claim)
    document = document.replace(b'"device":"cuda"', b'"device":"cpu"')
    assert b'"device":"cpu"' in document
    assert results.store_evidence(desk.store, claim, official, document, {})
    assert judged(desk).mode == "rehearsal"
    (change,) = [one for one in regrades.changes(desk.store, batch_id) if one.submission_id == claim.submission_id]
    assert (change.old.mode, change.new, change.state) == ("official", None, ItemState.NEEDS_ATTENTION)
    assert "rehearsal" in change.error


def test_a_regrade_is_nobodys_attempt(desk, released):
    """Evidence of a run that a batch asked for counts for its learner only when its verdict comes in force."""
    batch_id, claim = released
    other = max(in_force(desk))
    both = [other, claim.submission_id]
    with desk.store.transaction() as connection:
        connection.execute(update(SubmissionRow).where(SubmissionRow.submission_id.in_(both)).values(learner="solo"))
        first = select(RunRow.run_id).where(RunRow.submission_id.in_(both), RunRow.item_id.is_(None))
        connection.execute(update(EvidenceRow).where(EvidenceRow.run_id.in_(first)).values(kind="evidence"))
    assert results.store_evidence(desk.store, claim, "measured", evidence_for(desk, claim)[1], {})
    assert attempt_number(desk.store, other) == 1
    assert judged(desk) is not None
    regrade_apply.apply(desk.store, batch_id, "ann", unfinished=True)
    assert attempt_number(desk.store, other) == 2


def test_an_item_without_a_lab_stops_no_other(desk, releasing):
    """What no run can be made for is parked; the other batch gets its runs."""
    broken = started(desk, level="run", selection=Selection(submissions=(min(in_force(desk)),)))
    sound = started(desk, level="run", selection=Selection(submissions=(max(in_force(desk)),)))
    labs = [{**regrades.batch(desk.store, broken).labs[0].model_dump(mode="json"), "sha256": "0" * 64}]
    with desk.store.transaction() as connection:
        connection.execute(update(RegradeBatchRow).where(RegradeBatchRow.batch_id == broken).values(labs=labs))
    release_due(releasing)
    assert counts(desk, broken) == {ItemState.NEEDS_ATTENTION: 1}
    assert counts(desk, sound) == {ItemState.WORKING: 1}


def test_a_batch_that_gets_work_again_does_not_end(desk):
    """Who looks for its end while an operator gives it work waits for him, and then finds the work."""
    batch_id = started(desk)
    lose(desk, min(in_force(desk)))
    while judge_chunk(desk) is not None:
        pass
    with desk.store.transaction() as connection:
        connection.execute(update(RegradeBatchRow).values(state="running"))
    if desk.store.is_sqlite:  # where transactions come one after another anyway
        assert regrade_states.retry(desk.store, batch_id, "ann") == 1
        assert regrade_work.settle_all(desk.store, "sweeper") == 0
    else:
        with desk.store.engine.begin() as operator:
            regrade_states.locked(operator, batch_id, "tried again", (BatchState.RUNNING,))
            sweep = threading.Thread(target=regrade_work.settle_all, args=(desk.store, "sweeper"))
            sweep.start()
            sweep.join(1.0)
            assert sweep.is_alive(), "it waits for whoever holds the batch"
            operator.execute(
                update(RegradeItemRow)
                .where(RegradeItemRow.state == ItemState.NEEDS_ATTENTION.value)
                .values(state=ItemState.WAITING.value)
            )
        sweep.join(30.0)
    assert state(desk, batch_id) is BatchState.RUNNING


@pytest.mark.parametrize("hours", [float("inf"), float("nan"), -1.0])
def test_a_budget_is_a_number(desk, hours):
    """Anything else is refused, and every batch can still be read."""
    batch_id = started(desk)
    regrade_states.pause(desk.store, batch_id, "ann")
    with pytest.raises(UsageError, match="GPU budget"):
        regrade_states.resume(desk.store, batch_id, "ann", gpu_budget_s=hours * 3600)
    with pytest.raises(UsageError, match="GPU budget"):
        started(desk, gpu_budget_s=hours * 3600)
    assert [batch.batch_id for batch in regrades.batches(desk.store)] == [batch_id]
