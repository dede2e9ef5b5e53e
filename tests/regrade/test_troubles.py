"""What goes wrong around a batch: damaged rows, answers of a broker that is away, a worker without the lab."""

import json
import threading

import pytest
from sqlalchemy import update

from grader_service.backup.journal import Journal, entries
from grader_service.backup.place import ANSWERS, Place
from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.model.regrade import BatchState, ItemState
from grader_service.regrade import bulk
from grader_service.regrade.bulk import LabNotHere, judge_chunk
from grader_service.regrade.releasing import release_due
from grader_service.store import outbox, regrade_apply, regrade_states, regrade_work, regrades
from grader_service.store.engine import Store
from grader_service.store.outbox import Waiter, enqueue
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import OutboxRow
from tests.regrade.deps import (
    COUNT,
    answers,
    counts,
    in_force,
    judge_all,
    lose,
    overwrite,
    read,
    started,
    state,
    worked_off,
)
from tests.services.roles import as_role

pytestmark = pytest.mark.slow


def test_what_was_not_sent_in_time_is_not_sent_at_all(deps, stricter):
    """With the broker away while a batch is applied and undone, platforms end with the verdicts that are in force."""
    batch_id = worked_off(deps, stricter)
    regrade_apply.apply(deps.store, batch_id, "ann")
    assert answers(deps)
    regrade_apply.revert(deps.store, batch_id, "ann")
    messages = outbox.due(deps.store)
    assert len(messages) == len(answers(deps))
    assert {json.loads(message.document)["verdict_id"] for message in messages} <= set(in_force(deps).values())


@pytest.fixture
def journal(deps, tmp_path):
    """What a judge keeps answers in before it sends them; each verdict in force waits to be sent."""
    told = in_force(deps).values()
    with deps.store.transaction() as connection:
        for verdict_id in told:
            enqueue(connection, verdict_id, Waiter("task"))
    return Journal(Place(f"file://{tmp_path}/backups"), deps.store, deps.signer)


def keep_due(deps, journal):
    """Keeps all answers, and sends none."""
    overwrite(deps.store, OutboxRow, not_before=0.0)
    journal.keep(outbox.due(deps.store, 9 * COUNT))


def kept_last(journal):
    """Submission to the verdict of which the journal says that it was told last."""
    found = [entry.rows["verdict"] for entry in entries(journal._place, 0.0)]
    return {verdict["submission_id"]: verdict["verdict_id"] for verdict in found}


def test_an_answer_that_gets_another_verdict_is_kept_again(deps, stricter, journal):
    """With the broker away, and nobody else who tells it: a restored service knows what was sent at last."""
    keep_due(deps, journal)
    batch_id = worked_off(deps, stricter)
    operator = Store(as_role(deps.store.engine.url.render_as_string(hide_password=False), "operator"))
    for change in (regrade_apply.apply, regrade_apply.revert):
        change(operator, batch_id, "ann", notify="none")
        keep_due(deps, journal)
        assert kept_last(journal) == in_force(deps)
    operator.close()


def test_an_answer_that_gets_another_verdict_while_it_is_kept(deps, stricter, journal, monkeypatch):
    """It is not taken for kept: the file has the old one."""
    batch_id = worked_off(deps, stricter)
    put = journal._place.files.put

    def meanwhile(name, data):
        monkeypatch.undo()
        put(name, data)
        regrade_apply.apply(deps.store, batch_id, "ann", notify="none")

    monkeypatch.setattr(journal._place.files, "put", meanwhile)
    for _ in range(2):
        keep_due(deps, journal)
    assert kept_last(journal) == in_force(deps)
    assert len(journal._place.files.names(ANSWERS)) == 2


def test_batches_are_undone_in_the_reverse_order(deps, stricter):
    """A batch that another one was planned on cannot be undone before it."""
    former = in_force(deps)
    first = worked_off(deps, stricter)
    regrade_apply.apply(deps.store, first, "ann")
    second = worked_off(deps)
    regrade_apply.apply(deps.store, second, "ann")
    with pytest.raises(UsageError, match=f"revert {second} first"):
        regrade_apply.revert(deps.store, first, "ann")
    regrade_apply.revert(deps.store, second, "ann")
    regrade_apply.revert(deps.store, first, "ann")
    assert in_force(deps) == former


def test_repetitions_are_waited_for(deps):
    """With every first repetition done and others open, `apply` still has to be told."""
    batch_id = started(deps, repeats=2)
    for _ in range(COUNT // 10):
        judge_chunk(deps, size=10)
    assert counts(deps, batch_id) == {ItemState.DONE: COUNT, ItemState.WAITING: COUNT}
    with pytest.raises(UsageError, match=f"{COUNT} repetitions are open"):
        regrade_apply.apply(deps.store, batch_id, "ann")
    assert regrade_apply.apply(deps.store, batch_id, "ann", unfinished=True).in_force == COUNT


def test_odd_bytes_in_a_failure_are_kept_readable(deps, monkeypatch):
    """A check that fails with a NUL in its message costs its own item a try, and is said."""

    def broken(*_, **__):
        raise InfrastructureError("one\x00two")

    monkeypatch.setattr(bulk, "verdict_of", broken)
    batch_id = started(deps)
    judge_all(deps)
    assert counts(deps, batch_id) == {ItemState.NEEDS_ATTENTION: COUNT}
    assert {change.error for change in regrades.changes(deps.store, batch_id)} == {"InfrastructureError: one\ufffdtwo"}


def test_a_worker_without_the_lab_leaves_the_batch_to_others(deps, monkeypatch):
    """As during an update of several hosts: one item has one try less, and nothing is dead-lettered."""
    batch_id = started(deps)

    def missing(*_):
        raise ConfigurationError("lab demo: no check `depth` is installed")

    with monkeypatch.context() as here:
        here.setattr(bulk, "kept_lab", missing)
        with pytest.raises(LabNotHere, match="no check `depth` is installed"):
            judge_chunk(deps, size=10)
    assert counts(deps, batch_id) == {ItemState.WAITING: COUNT}
    assert sum(row.attempts for row in read(deps.store, RegradeItemRow.attempts)) == 1
    overwrite(deps.store, RegradeItemRow, not_before=0.0)
    judge_all(deps)
    assert counts(deps, batch_id) == {ItemState.DONE: COUNT}


def test_an_item_without_a_lab_stops_no_other(deps, releasing):
    """What no run can be made for is dead-lettered; the other batch gets its runs."""
    broken = started(deps, level="run", submissions=(min(in_force(deps)),))
    sound = started(deps, level="run", submissions=(max(in_force(deps)),))
    labs = [{**regrades.batch(deps.store, broken).labs[0].model_dump(mode="json"), "sha256": "0" * 64}]
    overwrite(deps.store, RegradeBatchRow, RegradeBatchRow.batch_id == broken, labs=labs)
    release_due(releasing)
    assert counts(deps, broken) == {ItemState.NEEDS_ATTENTION: 1}
    assert counts(deps, sound) == {ItemState.WORKING: 1}


def test_a_batch_that_gets_work_again_does_not_end(deps):
    """Who looks for its end while an operator gives it work waits for him, and then finds the work."""
    batch_id = started(deps)
    lose(deps, min(in_force(deps)))
    judge_all(deps)
    overwrite(deps.store, RegradeBatchRow, state="running")
    if deps.store.is_sqlite:  # where transactions come one after another anyway
        assert regrade_states.retry(deps.store, batch_id, "ann") == 1
        assert regrade_work.settle_all(deps.store, "sweeper") == 0
    else:
        with deps.store.engine.begin() as operator:
            regrade_states.locked(operator, batch_id, "tried again", (BatchState.RUNNING,))
            sweep = threading.Thread(target=regrade_work.settle_all, args=(deps.store, "sweeper"))
            sweep.start()
            sweep.join(1.0)
            assert sweep.is_alive(), "it waits for whoever holds the batch"
            operator.execute(
                update(RegradeItemRow)
                .where(RegradeItemRow.state == ItemState.NEEDS_ATTENTION.value)
                .values(state=ItemState.WAITING.value)
            )
        sweep.join(30.0)
    assert state(deps, batch_id) is BatchState.RUNNING


@pytest.mark.parametrize("hours", [float("inf"), float("nan"), -1.0])
def test_a_budget_is_a_number(deps, hours):
    """Anything else is refused, and every batch can still be read."""
    batch_id = started(deps)
    regrade_states.pause(deps.store, batch_id, "ann")
    with pytest.raises(UsageError, match="GPU budget"):
        regrade_states.resume(deps.store, batch_id, "ann", gpu_budget_s=hours * 3600)
    with pytest.raises(UsageError, match="GPU budget"):
        started(deps, gpu_budget_s=hours * 3600)
    assert [batch.batch_id for batch in regrades.batches(deps.store)] == [batch_id]
