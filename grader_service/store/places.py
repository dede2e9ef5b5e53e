"""Where the runs of one submission are, and how many others come first."""

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, select

from grader_service.store import fairness
from grader_service.store.engine import Store
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import RunRow, RunState, written


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
    """Runs that will probably be claimed before it; null when it does not wait."""
    batch_id: str | None
    """The batch of re-grades that it serves; null when it serves none."""
    batch_state: str | None


def places(store: Store, submission_id: str) -> list[Place]:
    """Every run of a submission, oldest first; empty when it was never accepted."""
    statement = (
        select(
            RunRow.__table__,
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
                row["run_id"],
                row["state"],
                row["purpose"],
                row["attempts"],
                row["last_error"],
                runs_before(connection, row),
                row["batch_id"],
                row["batch_state"],
            )
            for row in connection.execute(statement).mappings()
        ]


def runs_before(connection: Connection, run: RowMapping) -> int | None:
    """How many runs will probably be claimed before one that waits, given its row; None when it does not wait."""
    if run["state"] == RunState.RUN_QUEUED.value:
        return fairness.runs_before(connection, run)
    if run["state"] != RunState.JUDGE_QUEUED.value:
        return None
    earlier = (RunRow.priority < run["priority"]) | (
        (RunRow.priority == run["priority"]) & (RunRow.created_at < run["created_at"])
    )
    return connection.execute(
        select(func.count()).select_from(RunRow).where(RunRow.state == written(RunState.JUDGE_QUEUED), earlier)
    ).scalar_one()
