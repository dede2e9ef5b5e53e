"""Items that have to run again: a few at a time become runs, so that the queue stays short and a pause takes effect."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select, update

from grader_service.model.base import neutralise
from grader_service.model.evidence import RunPlan
from grader_service.model.regrade import ItemState, Level
from grader_service.store.acceptance import run_row
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.regrade_states import budget_spent, pause_locked
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.regrade_work import running
from grader_service.store.tables import RunRow, RunState, SubmissionRow, table_of

BUDGET_SPENT = "the GPU budget is spent"


@dataclass(frozen=True)
class Due:
    """One item that should run now."""

    item_id: int
    batch_id: str
    submission_id: str
    learner: str | None
    cohort: str | None
    lab: str
    steps: tuple[str, ...]


def due_items(store: Store, *, in_flight: int, actor: str) -> list[Due]:
    """Items to release now: no more than keep `in_flight` of all batches under way.

    A batch whose budget of GPU seconds is spent is paused; runs that have begun are charged when they end.
    """
    with store.transaction() as connection:
        open_runs = connection.execute(
            select(func.count())
            .select_from(RunRow)
            .where(RunRow.item_id.is_not(None), RunRow.state.in_((RunState.RUN_QUEUED.value, RunState.RUNNING.value)))
        ).scalar_one()
        due: list[Due] = []
        for batch_id in running(connection):
            room = in_flight - open_runs - len(due)
            if room > 0 and not _over_budget(connection, batch_id, actor):
                due += _waiting(connection, batch_id, room)
    return due


def _over_budget(connection: Connection, batch_id: str, actor: str) -> bool:
    budget = connection.execute(
        select(RegradeBatchRow.gpu_budget_s).where(RegradeBatchRow.batch_id == batch_id).with_for_update()
    ).scalar_one()
    if budget is None or not _waiting(connection, batch_id, 1):
        return False
    if (spent := budget_spent(connection, batch_id, budget)) is None:
        return False
    pause_locked(
        connection,
        batch_id,
        actor,
        f"{BUDGET_SPENT}: {spent}; resume it with a larger budget (`--gpu-hours`)",
    )
    return True


def _waiting(connection: Connection, batch_id: str, limit: int) -> list[Due]:
    rows = connection.execute(
        select(
            RegradeItemRow.id,
            RegradeItemRow.submission_id,
            SubmissionRow.learner,
            SubmissionRow.cohort,
            SubmissionRow.lab,
            SubmissionRow.steps,
        )
        .join(SubmissionRow, SubmissionRow.submission_id == RegradeItemRow.submission_id)
        .where(
            RegradeItemRow.batch_id == batch_id,
            RegradeItemRow.state == ItemState.WAITING.value,
            RegradeItemRow.level == Level.RUN.value,
            RegradeItemRow.not_before <= db_now(),
        )
        .order_by(RegradeItemRow.id)
        .limit(limit)
    )
    return [
        Due(row.id, batch_id, row.submission_id, row.learner, row.cohort, row.lab, tuple(row.steps)) for row in rows
    ]


def park(store: Store, due: Due, error: str, actor: str) -> None:
    """An item for which no run can be made waits for an operator; others of its batch go on."""
    with store.transaction() as connection:
        connection.execute(
            update(RegradeItemRow)
            .where(RegradeItemRow.id == due.item_id, RegradeItemRow.state == ItemState.WAITING.value)
            .values(state=ItemState.NEEDS_ATTENTION.value, last_error=neutralise(error[:4000]))
        )
        record(
            connection,
            "regrade_needs_attention",
            actor,
            submission_id=due.submission_id,
            batch_id=due.batch_id,
            error=neutralise(error[:1000]),
        )


def release(store: Store, planned: Sequence[tuple[Due, RunPlan]]) -> int:
    """Makes a run for each item that still waits in a running batch; returns how many."""
    done = 0
    with store.transaction() as connection:
        allowed = set(running(connection, hold=True))
        for due, plan in planned:
            run_id = uuid.uuid4().hex
            if due.batch_id not in allowed:
                continue
            taken = connection.execute(
                update(RegradeItemRow)
                .where(RegradeItemRow.id == due.item_id, RegradeItemRow.state == ItemState.WAITING.value)
                .values(state=ItemState.WORKING.value, run_id=run_id)
            )
            if not taken.rowcount:
                continue
            connection.execute(
                insert(table_of(RunRow)).values(not_before=db_now(), created_at=db_now(), turn=db_now()),
                [
                    run_row(run_id, due.submission_id, due.learner, due.cohort, plan, "regrade")
                    | {"item_id": due.item_id}
                ],
            )
            done += 1
    return done
