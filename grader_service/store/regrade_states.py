"""What an operator does with a batch as a whole: start, pause, resume, cancel, discard, retry.

Each is one transaction that locks the batch first, so that two operators never act on the same state.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from grader_service.errors import UsageError
from grader_service.model.regrade import BatchState, ItemState, Level
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.operations import try_again
from grader_service.store.regrade_items import settle
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import EvidenceRow, RunRow, RunState

_AT_ONCE = 1000
_UNFINISHED = (ItemState.WAITING.value, ItemState.WORKING.value)
_OPEN = (BatchState.PLANNED, BatchState.RUNNING, BatchState.PAUSED)


def start(store: Store, batch_id: str, actor: str) -> None:
    """Lets workers take a planned batch.

    Raises:
        UsageError: it is not planned.
    """
    with store.transaction() as connection:
        locked(connection, batch_id, "started", (BatchState.PLANNED,))
        set_state(connection, batch_id, BatchState.RUNNING, started_at=db_now())
        record(connection, "regrade_started", actor, batch_id=batch_id)
        settle(connection, batch_id, actor)  # an empty batch has nothing to wait for


def pause(store: Store, batch_id: str, actor: str, note: str = "") -> None:
    """Stops handing out work; what is in hand is finished, runs that wait for a device are taken back.

    Raises:
        UsageError: it is not running.
    """
    with store.transaction() as connection:
        locked(connection, batch_id, "paused", (BatchState.RUNNING,))
        pause_locked(connection, batch_id, actor, note)


def pause_locked(connection: Connection, batch_id: str, actor: str, note: str) -> None:
    """`pause`, inside a transaction that holds the batch."""
    _take_runs_back(connection, batch_id, ItemState.WAITING)
    set_state(connection, batch_id, BatchState.PAUSED, note=note)
    record(connection, "regrade_paused", actor, batch_id=batch_id, note=note)


def resume(store: Store, batch_id: str, actor: str, *, gpu_budget_s: float | None = None) -> None:
    """Goes on with a paused batch.

    Args:
        gpu_budget_s: a new budget of GPU seconds, for the whole batch; unchanged if absent.

    Raises:
        UsageError: it is not paused, or the budget is no number of seconds, or spent.
    """
    check_budget(gpu_budget_s)
    with store.transaction() as connection:
        locked(connection, batch_id, "resumed", (BatchState.PAUSED,))
        _require_budget(connection, batch_id, gpu_budget_s)
        budget: dict[str, Any] = {} if gpu_budget_s is None else {"gpu_budget_s": gpu_budget_s}
        set_state(connection, batch_id, BatchState.RUNNING, note="", **budget)
        record(connection, "regrade_resumed", actor, batch_id=batch_id, **budget)
        settle(connection, batch_id, actor)


def _require_budget(connection: Connection, batch_id: str, gpu_budget_s: float | None) -> None:
    """Something is left of the new budget, or of the old one, for runs that wait; or it would be paused again."""
    old_s = select(RegradeBatchRow.gpu_budget_s).where(RegradeBatchRow.batch_id == batch_id)
    budget_s = connection.execute(old_s).scalar_one() if gpu_budget_s is None else gpu_budget_s
    mine = RegradeItemRow.batch_id == batch_id
    waits = mine & RegradeItemRow.state.in_(_UNFINISHED) & (RegradeItemRow.level == Level.RUN.value)
    if budget_s is None or not connection.execute(select(func.count()).where(waits)).scalar_one():
        return
    if (spent := budget_spent(connection, batch_id, budget_s)) is not None:
        raise UsageError(
            f"{batch_id} has spent {spent} of GPU time; give a larger budget for the whole batch (`--gpu-hours`)"
        )


def budget_spent(connection: Connection, batch_id: str, budget_s: float) -> str | None:
    """How much of a budget of GPU seconds the batch has spent, in hours, where nothing is left of it."""
    mine = RegradeItemRow.batch_id == batch_id
    spent_s = connection.execute(select(func.coalesce(func.sum(RegradeItemRow.gpu_s), 0.0)).where(mine)).scalar_one()
    return f"{spent_s / 3600:.3g} of {budget_s / 3600:.3g} h" if spent_s >= budget_s else None


def check_budget(gpu_budget_s: float | None) -> None:
    """Refuses what no budget can be.

    Raises:
        UsageError: it is not a finite number of seconds.
    """
    if gpu_budget_s is not None and not (math.isfinite(gpu_budget_s) and gpu_budget_s >= 0):
        raise UsageError(f"a GPU budget is a number of hours such as 2.5, not {gpu_budget_s / 3600:g}")


def cancel(store: Store, batch_id: str, actor: str, reason: str = "") -> None:
    """Ends a batch for good; verdicts that it has made can still be looked at, and applied when told so.

    Raises:
        UsageError: it is not planned, running or paused.
    """
    _give_up(store, batch_id, BatchState.CANCELLED, _OPEN, actor, reason)


def discard(store: Store, batch_id: str, actor: str, reason: str = "") -> None:
    """Gives a batch up: its verdicts never come in force.

    Raises:
        UsageError: its verdicts are, or were, in force.
    """
    allowed = (*_OPEN, BatchState.FINISHED, BatchState.CANCELLED)
    _give_up(store, batch_id, BatchState.DISCARDED, allowed, actor, reason)


def _give_up(
    store: Store, batch_id: str, state: BatchState, allowed: Collection[BatchState], actor: str, reason: str
) -> None:
    with store.transaction() as connection:
        locked(connection, batch_id, state.value, allowed)
        end(connection, batch_id)
        set_state(connection, batch_id, state, note="")
        record(connection, f"regrade_{state.value}", actor, batch_id=batch_id, reason=reason)


def retry(store: Store, batch_id: str, actor: str) -> int:
    """Gives items that failed through us fresh tries; returns how many.

    A run that has its evidence keeps it and is judged again: its GPU time is not spent twice.

    Raises:
        UsageError: the batch is not running, paused or finished.
    """
    with store.transaction() as connection:
        row = locked(connection, batch_id, "tried again", (BatchState.RUNNING, BatchState.PAUSED, BatchState.FINISHED))
        dead_lettered = (RegradeItemRow.batch_id == batch_id, RegradeItemRow.state == ItemState.NEEDS_ATTENTION.value)
        executed = connection.execute(
            select(RunRow.run_id, RunRow.submission_id)
            .where(
                RunRow.run_id.in_(select(RegradeItemRow.run_id).where(*dead_lettered)),
                RunRow.state == RunState.NEEDS_ATTENTION.value,
                select(EvidenceRow.run_id).where(EvidenceRow.run_id == RunRow.run_id).exists(),
            )
            .with_for_update()
        ).all()
        try_again(connection, executed, actor)
        _cancel_runs(connection, batch_id, RunState.NEEDS_ATTENTION)  # each other item gets a run of its own again
        waiting = connection.execute(
            update(RegradeItemRow)
            .where(*dead_lettered)
            .values(state=ItemState.WAITING.value, attempts=0, not_before=db_now(), run_id=None)
        ).rowcount
        done = len(executed) + waiting
        if done and row.state == BatchState.FINISHED.value:
            set_state(connection, batch_id, BatchState.RUNNING, finished_at=None)
        record(connection, "regrade_retried", actor, batch_id=batch_id, items=done)
        return done


def run_instead(
    store: Store,
    batch_id: str,
    submission_ids: Sequence[str],
    reason: str,
    actor: str,
    *,
    gpu_budget_s: float | None = None,
) -> None:
    """Has submissions of a finished batch run again, in place of the verdict that was judged from stored evidence.

    Raises:
        UsageError: the batch is not finished, or the budget is no number of seconds.
    """
    check_budget(gpu_budget_s)
    budget: dict[str, Any] = {} if gpu_budget_s is None else {"gpu_budget_s": gpu_budget_s}
    with store.transaction() as connection:
        locked(connection, batch_id, "escalated", (BatchState.FINISHED,))
        for first in range(0, len(submission_ids), _AT_ONCE):
            connection.execute(
                update(RegradeItemRow)
                .where(
                    RegradeItemRow.batch_id == batch_id,
                    RegradeItemRow.submission_id.in_(submission_ids[first : first + _AT_ONCE]),
                    RegradeItemRow.level == Level.JUDGE.value,
                )
                .values(
                    level=Level.RUN.value,
                    reason=reason,
                    state=ItemState.WAITING.value,
                    attempts=0,
                    not_before=db_now(),
                    verdict_id=None,
                    changed=None,
                    finished_at=None,
                )
            )
        set_state(connection, batch_id, BatchState.RUNNING, finished_at=None, **budget)
        record(connection, "regrade_escalated", actor, batch_id=batch_id, submissions=len(submission_ids), **budget)


def locked(connection: Connection, batch_id: str, done: str, allowed: Collection[BatchState]) -> Row[Any]:
    """The batch, held until the transaction ends.

    Args:
        done: what cannot be done in other states, as a participle for the message.
        allowed: states in which it can.

    Raises:
        UsageError: there is no such batch, or its state does not allow it.
    """
    row = connection.execute(
        select(RegradeBatchRow.__table__).where(RegradeBatchRow.batch_id == batch_id).with_for_update()
    ).one_or_none()
    if row is None:
        raise UsageError(f"there is no batch {batch_id[:100]!r}; `grader regrade list` shows those there are")
    if row.state not in {state.value for state in allowed}:
        states = " or ".join(state.value for state in allowed)
        raise UsageError(f"batch {batch_id} is {row.state}; only a batch that is {states} can be {done}")
    return row


def end(connection: Connection, batch_id: str) -> None:
    """Gives up what has no verdict yet, inside a transaction that holds the batch."""
    # Nobody could give these fresh tries any more. Their items go on to say what failed.
    _cancel_runs(connection, batch_id, RunState.NEEDS_ATTENTION)
    _take_runs_back(connection, batch_id, ItemState.CANCELLED)
    connection.execute(
        update(RegradeItemRow)
        .where(RegradeItemRow.batch_id == batch_id, RegradeItemRow.state.in_(_UNFINISHED))
        .values(state=ItemState.CANCELLED.value, run_id=None, lease_owner=None, lease_until=None)
    )


def _take_runs_back(connection: Connection, batch_id: str, state: ItemState) -> None:
    """Runs that wait for a device are cancelled; one that has begun is finished, since its GPU time is spent."""
    taken = _cancel_runs(connection, batch_id, RunState.RUN_QUEUED)
    if taken:
        connection.execute(
            update(RegradeItemRow).where(RegradeItemRow.id.in_(taken)).values(state=state.value, run_id=None)
        )


def _cancel_runs(connection: Connection, batch_id: str, state: RunState) -> Sequence[int | None]:
    """Cancels runs of a batch that are in this state; returns the items that they served."""
    found = (
        select(RunRow.run_id)
        .join(RegradeItemRow, RegradeItemRow.id == RunRow.item_id)
        .where(RegradeItemRow.batch_id == batch_id, RunRow.state == state.value)
    )
    return (
        connection.execute(
            update(RunRow)
            .where(RunRow.run_id.in_(found), RunRow.state == state.value)
            .values(state=RunState.CANCELLED.value, finished_at=db_now())
            .returning(RunRow.item_id)
        )
        .scalars()
        .all()
    )


def set_state(connection: Connection, batch_id: str, state: BatchState, **values: Any) -> None:
    """Gives a batch, which the transaction holds, another state and other values."""
    connection.execute(
        update(RegradeBatchRow).where(RegradeBatchRow.batch_id == batch_id).values(state=state.value, **values)
    )
