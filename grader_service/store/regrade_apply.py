"""Puts the verdicts of a batch in force, and takes them out of force again; each is one transaction."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import JSON, Connection, Select, bindparam, func, insert, literal, select, update

from grader_service.errors import UsageError
from grader_service.model.base import neutralise
from grader_service.model.regrade import BatchState, ItemState
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.regrade_states import end, locked, set_state
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.tables import EventRow, OutboxRow, SubmissionRow, VerdictRow, WaiterRow, table_of

Notify = Literal["changed", "all", "none"]
_ITEM = table_of(RegradeItemRow).c
MOST_REASON = 200
"""Characters of what is said when something is done with a batch."""


@dataclass(frozen=True)
class Applied:
    """What `apply` did."""

    in_force: int
    notified: int
    outdated: int
    """Submissions that got another verdict since the batch was planned; they keep it."""
    unfinished: int
    """Items without a new verdict; their submissions keep the old one."""


@dataclass(frozen=True)
class Reverted:
    """What `revert` did."""

    restored: int
    """Verdicts from before that are in force again."""
    notified: int
    outdated: int
    """Submissions that got another verdict since the batch was applied; they keep it."""


def checked_reason(text: str) -> str:
    """Why somebody acts, made safe to show; empty when nothing was said.

    Raises:
        UsageError: it is too long.
    """
    reason = neutralise(text.strip())
    if len(reason) > MOST_REASON:
        raise UsageError(f"a reason has at most {MOST_REASON} characters, this one has {len(reason)}")
    return reason


def apply(
    store: Store,
    batch_id: str,
    actor: str,
    *,
    unfinished: bool = False,
    notify: Notify = "changed",
    reason: str = "",
) -> Applied:
    """Puts the batch's verdicts in force.

    Args:
        unfinished: also when some submissions have no new verdict yet; they are given up.
        notify: whose waiters get the new verdict: of submissions whose verdict says something else, of all, of none.

    Raises:
        UsageError: the batch's state does not allow it, it is not finished, or the reason is too long.
    """
    reason = checked_reason(reason)
    states = (
        BatchState.RUNNING,
        BatchState.PAUSED,
        BatchState.FINISHED,
        BatchState.CANCELLED,
        BatchState.REVERTED,
    )
    with store.transaction() as connection:
        batch = locked(connection, batch_id, "applied", states)
        left = _count(connection, *_of(batch_id), _ITEM.state != ItemState.DONE.value)
        working = (ItemState.WAITING.value, ItemState.WORKING.value)
        repetitions = _count(connection, _ITEM.batch_id == batch_id, _ITEM.state.in_(working))
        if (left or repetitions) and not unfinished:
            what = f"{left} of its submissions have no new verdict" if left else f"{repetitions} repetitions are open"
            finish = "" if batch.state == BatchState.CANCELLED.value else "let it finish (`resume` or `retry`), or "
            raise UsageError(
                f"batch {batch_id} is {batch.state}, and {what}: {finish}apply what there is with --unfinished; the "
                "others then keep the verdict that they have"
            )
        end(connection, batch_id)
        _hold_submissions(connection, batch_id)
        ready = (*_of(batch_id), _ITEM.state == ItemState.DONE.value)
        connection.execute(
            update(RegradeItemRow)
            .where(*_of(batch_id))
            .values(applied=(_ITEM.state == ItemState.DONE.value) & _in_force(_ITEM.base_verdict_id))
        )
        _exchange(connection, batch_id, out=_ITEM.base_verdict_id, into=_ITEM.verdict_id)
        in_force = _count(connection, *_of(batch_id), _ITEM.applied)
        outdated = _count(connection, *ready, ~_ITEM.applied)
        notified = _notify(connection, batch_id, _ITEM.verdict_id, notify)
        _tell(connection, batch_id, "regraded", actor, reason)
        set_state(connection, batch_id, BatchState.APPLIED, applied_at=db_now())
        done = Applied(in_force, notified, outdated, left)
        record(connection, "regrade_applied", actor, batch_id=batch_id, reason=reason, notify=notify, **vars(done))
        return done


def revert(store: Store, batch_id: str, actor: str, *, notify: Notify = "changed", reason: str = "") -> Reverted:
    """Puts the verdicts from before an applied batch in force again, where the batch's are still in force.

    Raises:
        UsageError: the batch is not applied, or the reason is too long.
    """
    reason = checked_reason(reason)
    with store.transaction() as connection:
        locked(connection, batch_id, "reverted", (BatchState.APPLIED,))
        _nothing_stands_on(connection, batch_id)
        _hold_submissions(connection, batch_id)
        applied = _count(connection, *_of(batch_id), _ITEM.applied)
        connection.execute(
            update(RegradeItemRow).where(*_of(batch_id), _ITEM.applied).values(applied=_in_force(_ITEM.verdict_id))
        )
        _exchange(connection, batch_id, out=_ITEM.verdict_id, into=_ITEM.base_verdict_id)
        restored = _count(connection, *_of(batch_id), _ITEM.applied)
        notified = _notify(connection, batch_id, _ITEM.base_verdict_id, notify)
        _tell(connection, batch_id, "regrade_undone", actor, reason)
        connection.execute(update(RegradeItemRow).where(*_of(batch_id)).values(applied=False))
        set_state(connection, batch_id, BatchState.REVERTED, applied_at=None)
        done = Reverted(restored, notified, applied - restored)
        record(connection, "regrade_reverted", actor, batch_id=batch_id, reason=reason, notify=notify, **vars(done))
        return done


def _nothing_stands_on(connection: Connection, batch_id: str) -> None:
    """Refuses while a batch is applied that replaced verdicts of this one: undone afterwards, it would restore them."""
    later = table_of(RegradeItemRow).alias("later").c
    ours = select(_ITEM.verdict_id).where(*_of(batch_id), _ITEM.applied)
    found = connection.execute(
        select(later.batch_id)
        .where(later.base_verdict_id.in_(ours), later.applied, later.batch_id != batch_id)
        .limit(1)
    ).scalar_one_or_none()
    if found is not None:
        raise UsageError(
            f"batch {found} replaced verdicts of batch {batch_id} and is applied: revert {found} first, then this one"
        )


def _of(batch_id: str) -> tuple[Any, ...]:
    """Items that decide: later repetitions only show how much answers vary."""
    return (_ITEM.batch_id == batch_id, _ITEM.repetition == 1)


def _in_force(verdict_id: Any) -> Any:
    return select(VerdictRow.verdict_id).where(VerdictRow.verdict_id == verdict_id, VerdictRow.current).exists()


def _count(connection: Connection, *where: Any) -> int:
    return int(
        connection.execute(select(func.count()).select_from(table_of(RegradeItemRow)).where(*where)).scalar_one()
    )


def _hold_submissions(connection: Connection, batch_id: str) -> None:
    """Until the transaction ends nobody else may add a waiter or a verdict to these; always in the same order."""
    ids = select(_ITEM.submission_id).where(*_of(batch_id))
    # By code point, as intake locks them, whatever the database's locale.
    ids_in_order: Any = SubmissionRow.submission_id
    if connection.dialect.name == "postgresql":
        ids_in_order = ids_in_order.collate("C")
    connection.execute(
        select(SubmissionRow.submission_id)
        .where(SubmissionRow.submission_id.in_(ids))
        .order_by(ids_in_order)
        .with_for_update(key_share=True)
    ).all()


def _exchange(connection: Connection, batch_id: str, *, out: Any, into: Any) -> None:
    """Verdicts `out` of force and `into` force; in this order, as a submission has one in force at a time."""
    for column, current in ((out, False), (into, True)):
        chosen: Select[Any] = select(column).where(*_of(batch_id), _ITEM.applied)
        connection.execute(update(VerdictRow).where(VerdictRow.verdict_id.in_(chosen)).values(current=current))
    # Answers that still wait to be sent must not tell, after all others, of a verdict that is not in force any more.
    outbox = table_of(OutboxRow)
    waiting = connection.execute(
        select(outbox.c.id, outbox.c.verdict_id)
        .where(outbox.c.delivered_at.is_(None), outbox.c.verdict_id.is_not(None))
        .order_by(outbox.c.id)
    ).all()
    if not waiting:
        return
    # Joined here: after so many writes a database's figures of its tables are old, and its own way may take minutes.
    exchanged = connection.execute(select(out, into).where(*_of(batch_id), _ITEM.applied)).all()
    successors = {before: after for before, after in exchanged}  # noqa: C416 - rows, not pairs
    moved = [
        {"letter": row.id, "successor": successors[row.verdict_id]} for row in waiting if row.verdict_id in successors
    ]
    if moved:
        connection.execute(
            update(outbox)
            .where(outbox.c.id == bindparam("letter"))
            .values(verdict_id=bindparam("successor"), journaled=False),
            moved,
        )


def _notify(connection: Connection, batch_id: str, verdict_id: Any, notify: Notify) -> int:
    if notify == "none":
        return 0
    waiting = (
        select(
            verdict_id,
            WaiterRow.task_id,
            WaiterRow.reply_queue,
            WaiterRow.reply_task,
            literal(0),
            literal(value=True),
            db_now(),
        )
        .join(table_of(RegradeItemRow), _ITEM.submission_id == WaiterRow.submission_id)
        .where(*_of(batch_id), _ITEM.applied)
        .order_by(WaiterRow.id)
    )
    if notify == "changed":
        waiting = waiting.where(_ITEM.changed)
    columns = ["verdict_id", "task_id", "reply_queue", "reply_task", "attempts", "bulk", "not_before"]
    # Nobody can be added meanwhile: the submissions are held.
    count = int(connection.execute(select(func.count()).select_from(waiting.order_by(None).subquery())).scalar_one())
    connection.execute(insert(table_of(OutboxRow)).from_select(columns, waiting))
    return count


def _tell(connection: Connection, batch_id: str, kind: str, actor: str, reason: str) -> None:
    """One event for each submission, so that its own history shows what happened to it, and why."""
    detail = literal({"reason": reason} if reason else {}, JSON)
    items = select(db_now(), literal(kind), literal(actor[:200]), _ITEM.submission_id, literal(batch_id), detail).where(
        *_of(batch_id), _ITEM.applied
    )
    columns = ["at", "kind", "actor", "submission_id", "batch_id", "detail"]
    connection.execute(insert(table_of(EventRow)).from_select(columns, items))
