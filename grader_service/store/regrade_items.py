"""What happens to an item of a re-grade when the run that serves it gets on."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, insert, or_, select, update

from grader_service.model.base import neutralise
from grader_service.model.regrade import BatchState, ItemState, comparable
from grader_service.model.verdict import Mode, Verdict
from grader_service.model.verdict_summary import VerdictSummary, summary_of
from grader_service.store.clock import db_now
from grader_service.store.events import record, record_of
from grader_service.store.lease import Lease
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow, in_states
from grader_service.store.review_cases import open_cases
from grader_service.store.tables import RunRow, RunState, VerdictRow, table_of
from grader_service.store.verdict_rows import costs_of, verdict_values

_REHEARSED = (
    "it ran on a device without a GPU: a rehearsal cannot take the place of an official verdict; retry it when a GPU "
    "is ready"
)


def hold_batch(connection: Connection, lease: Lease) -> bool:
    """Keeps a run's batch from being paused or ended until the transaction ends; whether its item needs the run still.

    Call it before anything is written: operators lock a batch before its runs and items.
    """
    hold_batches(connection, [] if lease.item_id is None else [lease.item_id])
    # A statement of its own, to see what the previous holder of the batch has written (READ COMMITTED).
    needed = select(RegradeItemRow.run_id).where(RegradeItemRow.id == lease.item_id)
    return connection.execute(needed).scalar_one_or_none() == lease.run_id


def hold_batches(
    connection: Connection, item_ids: Sequence[int], *, also: Collection[str] = (), read: bool = True
) -> None:
    """The same for the batches of several items, in the order in which all who lock several do.

    Args:
        also: ids of other batches.
        read: whether others who only keep them from being paused or ended may do so too.
    """
    if item_ids or also:
        ours = select(RegradeItemRow.batch_id).where(RegradeItemRow.id.in_(item_ids))
        connection.execute(
            select(RegradeBatchRow.batch_id)
            .where(or_(RegradeBatchRow.batch_id.in_(ours), RegradeBatchRow.batch_id.in_(also)))
            .order_by(RegradeBatchRow.started_at, RegradeBatchRow.batch_id)
            .with_for_update(read=read)
        )


def spend(connection: Connection, run_id: str, item_id: int | None) -> None:
    """Charges the time for which a run held its device to the item's batch."""
    since = select(RunRow.started_at).where(RunRow.run_id == run_id).scalar_subquery()
    connection.execute(
        update(RegradeItemRow)
        .where(RegradeItemRow.id == item_id)
        .values(gpu_s=RegradeItemRow.gpu_s + (db_now() - since))
    )


def run_judged(connection: Connection, lease: Lease, verdict: Verdict, seen: Mapping[str, str]) -> None:
    """Stages the verdict of an item's run. A run whose item was given up meanwhile leaves its verdict behind."""
    item = connection.execute(
        select(RegradeItemRow.batch_id, RegradeItemRow.base_verdict_id).where(RegradeItemRow.id == lease.item_id)
    ).one()
    before = select(VerdictRow.summary).where(VerdictRow.verdict_id == item.base_verdict_id)
    base = VerdictSummary.model_validate_json(connection.execute(before).scalar_one())
    summary = summary_of(verdict)
    weaker = base.mode is Mode.OFFICIAL and summary.mode is Mode.REHEARSAL
    connection.execute(
        insert(table_of(VerdictRow)).values(created_at=db_now()),
        [
            verdict_values(
                verdict,
                summary,
                run_id=lease.run_id,
                current=False,
                supersedes=item.base_verdict_id,
                batch_id=item.batch_id,
            )
        ],
    )
    open_cases(connection, verdict, item.base_verdict_id, seen)
    connection.execute(
        update(RegradeItemRow)
        .where(RegradeItemRow.id == lease.item_id, RegradeItemRow.run_id == lease.run_id)
        .values(
            state=(ItemState.NEEDS_ATTENTION if weaker else ItemState.DONE).value,
            verdict_id=None if weaker else verdict.verdict_id,
            changed=None if weaker else differs(base, summary),
            finished_at=db_now(),
            last_error=_REHEARSED if weaker else None,
        )
    )
    record_of(
        connection,
        "regraded_aside",
        lease,
        batch_id=item.batch_id,
        verdict_id=verdict.verdict_id,
        status=verdict.status.value,
        **costs_of(verdict),
    )


def requeued(connection: Connection, lease: Lease) -> None:
    """An item's run waits again; where its batch, which is held, does not go on it is taken back.

    Call it after the run was written.
    """
    row = connection.execute(
        select(RegradeBatchRow.state, RegradeItemRow.run_id)
        .join(RegradeItemRow, RegradeItemRow.batch_id == RegradeBatchRow.batch_id)
        .where(RegradeItemRow.id == lease.item_id)
    ).one()
    if row.state == BatchState.RUNNING.value and row.run_id == lease.run_id:
        return
    connection.execute(
        update(RunRow)
        .where(RunRow.run_id == lease.run_id, RunRow.state == RunState.RUN_QUEUED.value)
        .values(state=RunState.CANCELLED.value, finished_at=db_now())
    )
    connection.execute(
        update(RegradeItemRow)
        .where(
            RegradeItemRow.id == lease.item_id,
            RegradeItemRow.run_id == lease.run_id,
            RegradeItemRow.state == ItemState.WORKING.value,
        )
        .values(state=ItemState.WAITING.value, run_id=None)
    )


def run_failed(connection: Connection, lease: Lease, error: str, *, dead_lettered: bool) -> None:
    """An infrastructure failure in an item's run; dead-lettered ones wait for an operator."""
    if lease.stage == "run":
        spend(connection, lease.run_id, lease.item_id)
    changes: dict[str, object] = {"last_error": neutralise(error[:4000])}
    if dead_lettered:
        changes["state"] = ItemState.NEEDS_ATTENTION.value
    connection.execute(
        update(RegradeItemRow)
        .where(RegradeItemRow.id == lease.item_id, RegradeItemRow.run_id == lease.run_id)
        .values(**changes)
    )


def runs_retried(connection: Connection, run_ids: Collection[str]) -> None:
    """Dead-lettered runs got fresh tries: the items that they serve are in work again, and so are their batches."""
    dead_lettered = (RegradeItemRow.run_id.in_(run_ids), RegradeItemRow.state == ItemState.NEEDS_ATTENTION.value)
    batches = connection.execute(select(RegradeItemRow.batch_id).where(*dead_lettered).distinct()).scalars().all()
    if not batches:
        return
    connection.execute(update(RegradeItemRow).where(*dead_lettered).values(state=ItemState.WORKING.value))
    reopen(connection, batches)


def reopen(connection: Connection, batch_ids: Collection[str]) -> None:
    """Finished batches that have work again are running."""
    connection.execute(
        update(RegradeBatchRow)
        .where(RegradeBatchRow.batch_id.in_(batch_ids), RegradeBatchRow.state == BatchState.FINISHED.value)
        .values(state=BatchState.RUNNING.value, finished_at=None)
    )


def settle(connection: Connection, batch_id: str, actor: str) -> bool:
    """Ends a running batch that has nothing left to do; whether it did."""
    # Held first, so that the look below sees what the previous holder has written (READ COMMITTED).
    mine = select(RegradeBatchRow.batch_id).where(
        RegradeBatchRow.batch_id == batch_id, RegradeBatchRow.state == BatchState.RUNNING.value
    )
    if connection.execute(mine.with_for_update()).one_or_none() is None:
        return False
    # In the order of the index, since a plan for any of them trusts to chance and may pass all that are done.
    left = (
        select(RegradeItemRow.id)
        .where(RegradeItemRow.batch_id == batch_id, in_states(ItemState.WAITING, ItemState.WORKING))
        .order_by(RegradeItemRow.state, RegradeItemRow.level, RegradeItemRow.id)
        .limit(1)
    )
    if connection.execute(left).first() is not None:
        return False
    connection.execute(
        update(RegradeBatchRow)
        .where(RegradeBatchRow.batch_id == batch_id)
        .values(state=BatchState.FINISHED.value, finished_at=db_now())
    )
    record(connection, "regrade_finished", actor, batch_id=batch_id)
    return True


def differs(old: VerdictSummary, new: VerdictSummary) -> bool:
    """Whether a learner would see a difference."""
    return comparable(old) != comparable(new)
