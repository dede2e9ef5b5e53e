"""The audit trail: what changed, by whom, in the same transaction as the change."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert

from grader_service.store.clock import db_now
from grader_service.store.lease import Lease
from grader_service.store.tables import EventRow, table_of

REFUSED = "refused"
"""A message that was answered and not stored; its detail names learner and answer, so that an erasure finds both."""
_ADD = insert(table_of(EventRow)).values(at=db_now())


def record(
    connection: Connection,
    kind: str,
    actor: str,
    *,
    submission_id: str | None = None,
    run_id: str | None = None,
    batch_id: str | None = None,
    **detail: Any,
) -> None:
    """Adds one event; `detail` holds JSON values."""
    record_all(connection, kind, actor, [(submission_id, run_id, detail)], batch_id=batch_id)


def record_of(connection: Connection, kind: str, lease: Lease, **detail: Any) -> None:
    """Adds one event about a claimed run, by who holds the lease."""
    record(connection, kind, lease.owner, submission_id=lease.submission_id, run_id=lease.run_id, **detail)


def record_all(
    connection: Connection,
    kind: str,
    actor: str,
    happened: Sequence[tuple[str | None, str | None, Mapping[str, Any]]],
    *,
    batch_id: str | None = None,
) -> None:
    """Adds events of one kind: (submission id, run id, detail) each; all of one batch of re-grades, if of any."""
    connection.execute(
        _ADD,
        [
            {
                "kind": kind,
                "actor": actor[:200],
                "submission_id": submission_id,
                "run_id": run_id,
                "batch_id": batch_id,
                "detail": dict(detail),
            }
            for submission_id, run_id, detail in happened
        ],
    )
