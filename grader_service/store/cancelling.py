"""Ends runs on an operator's word, whether they wait or are under way.

A learner's run goes to the judge, which answers the platform with a `rejected` verdict that says why; a worker that has
it finds its lease gone, and stops. A run of a re-grade has nobody to answer: its item is given up.
"""

from sqlalchemy import Connection, Row, select, update

from grader_service.model.regrade import ItemState
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.fairness import charge, held_s, stand_behind
from grader_service.store.ids import Named
from grader_service.store.regrade_apply import checked_reason
from grader_service.store.regrade_items import settle, spend
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import ENDED, RunRow, RunState

CANCELLED = "submission.cancelled"
"""Code of the verdict that answers the platform."""
UNFINISHED = frozenset(RunState) - frozenset(ENDED)
_TRIES = 10
"""A run may go on to its next state at the instant in which it is cancelled."""


def cancel(store: Store, named: Named, reason: str, actor: str) -> int:
    """Cancels a run that is named, or what is unfinished of a submission; returns how many runs.

    Args:
        reason: why, in words that the learner will read; may be empty.

    Raises:
        UsageError: the reason is too long.
    """
    reason = checked_reason(reason)
    chosen = select(RunRow.run_id).where(
        RunRow.submission_id == named.submission_id,
        RunRow.state.not_in(ENDED),
        RunRow.cancelled.is_(None),
    )
    if named.run_id is not None:
        chosen = chosen.where(RunRow.run_id == named.run_id)
    with store.transaction() as connection:
        runs = connection.execute(chosen.order_by(RunRow.created_at)).scalars().all()
    return sum(_cancel_run(store, run_id, reason, actor) for run_id in runs)


def _cancel_run(store: Store, run_id: str, reason: str, actor: str) -> bool:
    for _ in range(_TRIES):
        with store.transaction() as connection:
            run = connection.execute(
                select(RunRow.run_id, RunRow.submission_id, RunRow.state, RunRow.fence, RunRow.item_id).where(
                    RunRow.run_id == run_id, RunRow.cancelled.is_(None)
                )
            ).one_or_none()
            if run is None or run.state not in UNFINISHED:
                return False
            if _end(connection, run, reason, actor):
                return True
    return False


def _end(connection: Connection, run: Row[str, str, str, int, int | None], reason: str, actor: str) -> bool:
    """False where it has gone on meanwhile, so that it must be looked at again."""
    batch_id = None
    if run.item_id is not None:
        # As all who act on runs of a batch: the batch first.
        of_item = select(RegradeItemRow.batch_id).where(RegradeItemRow.id == run.item_id).scalar_subquery()
        batch_id = connection.execute(
            select(RegradeBatchRow.batch_id).where(RegradeBatchRow.batch_id == of_item).with_for_update()
        ).scalar_one()
    running = run.state == RunState.RUNNING.value
    if running:
        stand_behind(connection, run.run_id, run.fence, served=True)
    done = connection.execute(
        update(RunRow)
        .where(RunRow.run_id == run.run_id, RunRow.state == run.state, RunRow.fence == run.fence)
        .values(
            state=(RunState.JUDGE_QUEUED if batch_id is None else RunState.CANCELLED).value,
            cancelled=reason,
            fence=RunRow.fence + 1,
            attempts=0,
            lease_owner=None,
            lease_until=None,
            not_before=db_now(),
            published_at=None,
            finished_at=None if batch_id is None else db_now(),
            **({"held_s": held_s(), "held_until": db_now()} if running else {}),
        )
    )
    if not done.rowcount:
        return False
    if batch_id is not None:
        _give_item_up(connection, run, batch_id, reason, actor)
    record(
        connection,
        "cancelled",
        actor,
        submission_id=run.submission_id,
        run_id=run.run_id,
        batch_id=batch_id,
        was=run.state,
        reason=reason,
    )
    if running:
        charge(connection, run.run_id)
    return True


def _give_item_up(
    connection: Connection, run: Row[str, str, str, int, int | None], batch_id: str, reason: str, actor: str
) -> None:
    """An item whose run is cancelled gets no new verdict, and its batch may have nothing left to do."""
    if run.state == RunState.RUNNING.value:
        spend(connection, run.run_id, run.item_id)
    connection.execute(
        update(RegradeItemRow)
        .where(RegradeItemRow.id == run.item_id, RegradeItemRow.run_id == run.run_id)
        .values(state=ItemState.CANCELLED.value, run_id=None, last_error=f"cancelled: {reason}" if reason else None)
    )
    settle(connection, batch_id, actor)
