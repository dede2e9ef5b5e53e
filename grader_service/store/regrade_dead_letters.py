"""Items of a batch that need attention, whichever repetition of their submission they are."""

from dataclasses import dataclass

from sqlalchemy import select

from grader_service.model.regrade import ItemState
from grader_service.store.engine import Store
from grader_service.store.regrade_tables import RegradeItemRow

MOST_SHOWN = 50
"""Items that are listed."""
_MOST_ERROR = 1000


@dataclass(frozen=True)
class DeadLettered:
    """One item whose tries our failures used up."""

    submission_id: str
    repetition: int
    """1-based; the first one is what `apply` puts in force."""
    attempts: int
    error: str


def dead_lettered(store: Store, batch_id: str, limit: int = MOST_SHOWN) -> list[DeadLettered]:
    """Items that need attention, by submission id and repetition."""
    statement = (
        select(
            RegradeItemRow.submission_id, RegradeItemRow.repetition, RegradeItemRow.attempts, RegradeItemRow.last_error
        )
        .where(RegradeItemRow.batch_id == batch_id, RegradeItemRow.state == ItemState.NEEDS_ATTENTION.value)
        .order_by(RegradeItemRow.submission_id, RegradeItemRow.repetition)
        .limit(limit)
    )
    with store.transaction() as connection:
        rows = connection.execute(statement).all()
    return [
        DeadLettered(row.submission_id, row.repetition, row.attempts, (row.last_error or "")[:_MOST_ERROR])
        for row in rows
    ]
