"""Items that have to run again: a few at a time become runs, so that the queue stays short and a pause takes effect."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, insert, or_, select, update

from grader_service.model.base import neutralise
from grader_service.model.evidence import RunPlan
from grader_service.model.regrade import ItemState, Level
from grader_service.store.acceptance import run_row
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.regrade_states import budget_spent, pause_locked
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow, in_states
from grader_service.store.regrade_work import running
from grader_service.store.tables import RunRow, RunState, SubmissionRow, table_of, written

BUDGET_SPENT = "the GPU budget is spent"
_PER_LEARNER = 2
"""Runs of a learner under way: one that runs, and one that need not be waited for."""


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
    """Items to release now: no more than keep `in_flight` runs of each lab under way, of all batches together.

    Each lab is counted by itself, since runners may leave it to others: what waits for one holds up no other. Of each
    learner two at most are under way, since they come one at a time: `in_flight` runs are of half as many learners.

    A batch whose budget of GPU seconds is spent is paused; runs that have begun are charged when they end.
    """
    due: list[Due] = []
    with store.transaction() as connection:
        under_way = _under_way(connection)
        for batch_id in running(connection):
            labs = [lab for lab in _labs(connection, batch_id) if under_way[lab].total() < in_flight]
            if labs and not _over_budget(connection, batch_id, labs, actor):
                for lab in labs:
                    due += _next(connection, batch_id, lab, under_way[lab], in_flight)
    return due


def _under_way(connection: Connection) -> defaultdict[str, Counter[str | None]]:
    """How many runs of re-grades wait for a device or hold one, by lab and then by learner."""
    found: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    lab = select(SubmissionRow.lab).where(SubmissionRow.submission_id == RunRow.submission_id).scalar_subquery()
    runs = select(lab.label("lab"), RunRow.learner).where(
        RunRow.item_id.is_not(None),
        or_(RunRow.state == written(RunState.RUN_QUEUED), RunRow.state == written(RunState.RUNNING)),
    )
    for row in connection.execute(runs):
        found[row.lab][row.learner] += 1
    return found


def _labs(connection: Connection, batch_id: str) -> list[str]:
    """Ids of the labs of a batch."""
    kept = select(RegradeBatchRow.labs).where(RegradeBatchRow.batch_id == batch_id)
    return [lab["lab"] for lab in connection.execute(kept).scalar_one()]


def _over_budget(connection: Connection, batch_id: str, labs: Collection[str], actor: str) -> bool:
    budget = connection.execute(
        select(RegradeBatchRow.gpu_budget_s).where(RegradeBatchRow.batch_id == batch_id).with_for_update()
    ).scalar_one()
    if budget is None or connection.execute(_waiting(batch_id, labs).limit(1)).first() is None:
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


def _next(connection: Connection, batch_id: str, lab: str, under_way: Counter[str | None], in_flight: int) -> list[Due]:
    """Items of one lab, the first ones first; `under_way` counts them afterwards, too."""
    found: list[Due] = []
    last = 0
    while (free := in_flight - under_way.total()) > 0:
        full = [learner for learner, runs in under_way.items() if learner is not None and runs >= _PER_LEARNER]
        others = or_(SubmissionRow.learner.is_(None), SubmissionRow.learner.not_in(full))
        waiting = _waiting(batch_id, [lab]).where(RegradeItemRow.id > last, others)
        rows = connection.execute(waiting.order_by(RegradeItemRow.id).limit(free)).all()
        if not rows:
            break
        for row in rows:
            if row.learner is None or under_way[row.learner] < _PER_LEARNER:
                under_way[row.learner] += 1
                found.append(Due(row.id, batch_id, row.submission_id, row.learner, row.cohort, lab, tuple(row.steps)))
        last = rows[-1].id
    return found


def _waiting(batch_id: str, labs: Collection[str]) -> Select[int, str, str | None, str | None, list[str]]:
    return (
        select(
            RegradeItemRow.id,
            RegradeItemRow.submission_id,
            SubmissionRow.learner,
            SubmissionRow.cohort,
            SubmissionRow.steps,
        )
        .join(SubmissionRow, SubmissionRow.submission_id == RegradeItemRow.submission_id)
        .where(
            RegradeItemRow.batch_id == batch_id,
            in_states(ItemState.WAITING),
            RegradeItemRow.level == Level.RUN.value,
            RegradeItemRow.not_before <= db_now(),
            SubmissionRow.lab.in_(labs),
        )
    )


def dead_letter_run(store: Store, due: Due, error: str, actor: str) -> None:
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
