"""The audit trail: what changed, by whom, in the same transaction as the change."""

from typing import Any

from sqlalchemy import Connection, insert

from grader_service.store.clock import db_now
from grader_service.store.tables import EventRow


def record(
    connection: Connection,
    kind: str,
    actor: str,
    *,
    submission_id: str | None = None,
    run_id: str | None = None,
    **detail: Any,
) -> None:
    """Adds one event; `detail` holds JSON values."""
    connection.execute(
        insert(EventRow).values(
            at=db_now(), kind=kind, actor=actor[:200], submission_id=submission_id, run_id=run_id, detail=detail
        )
    )
