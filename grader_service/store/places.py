"""Where the runs of one submission are, and how many others come first."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from grader_service.store.engine import Store
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import RunRow, RunState

_WAITING = (RunState.RUN_QUEUED.value, RunState.JUDGE_QUEUED.value)


@dataclass(frozen=True)
class Place:
    """One run of a submission."""

    run_id: str
    state: str
    purpose: str
    """`live` or `regrade`."""
    attempts: int
    """Our failures so far."""
    last_error: str | None
    ahead: int | None
    """Runs that will be claimed before it; null when it does not wait."""
    batch_id: str | None
    """The batch of re-grades that it serves; null when it serves none."""
    batch_state: str | None


def places(store: Store, submission_id: str) -> list[Place]:
    """Every run of a submission, oldest first; empty when it was never accepted."""
    statement = (
        select(
            RunRow.run_id,
            RunRow.state,
            RunRow.purpose,
            RunRow.attempts,
            RunRow.last_error,
            RunRow.priority,
            RunRow.created_at,
            RegradeBatchRow.batch_id,
            RegradeBatchRow.state.label("batch_state"),
        )
        .join(RegradeItemRow, RegradeItemRow.id == RunRow.item_id, isouter=True)
        .join(RegradeBatchRow, RegradeBatchRow.batch_id == RegradeItemRow.batch_id, isouter=True)
        .where(RunRow.submission_id == submission_id)
        .order_by(RunRow.created_at)
    )
    with store.transaction() as connection:
        return [
            Place(
                row.run_id,
                row.state,
                row.purpose,
                row.attempts,
                row.last_error,
                runs_before(connection, row.state, row.priority, row.created_at) if row.state in _WAITING else None,
                row.batch_id,
                row.batch_state,
            )
            for row in connection.execute(statement)
        ]


def runs_before(connection: Connection, state: str, priority: int, created_at: float) -> int:
    """How many runs that wait in this state are claimed before one that waits there too."""
    statement = (
        select(func.count())
        .select_from(RunRow)
        .where(
            RunRow.state == state,
            (RunRow.priority < priority) | ((RunRow.priority == priority) & (RunRow.created_at < created_at)),
        )
    )
    return connection.execute(statement).scalar_one()
