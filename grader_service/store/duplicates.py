"""Finds measured runs of the very same submission, of any learner, whose findings can be taken again."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import aliased

from grader_service.model.verdict import Status
from grader_service.store.attempts import MEASURED
from grader_service.store.clock import days_ago
from grader_service.store.engine import Store
from grader_service.store.lease import Lease
from grader_service.store.tables import EvidenceRow, RunRow, SubmissionRow, VerdictRow

_MOST = 5
_DECIDED = (Status.PASSED.value, Status.FAILED.value)


def measured_duplicates(store: Store, lease: Lease, *, days: float) -> list[str]:
    """Ids of runs that were asked for the same of the same bytes, lab, steps and file name; the newest first.

    Only such as led to a verdict in force that decides: what was unverified, inconclusive or an infrastructure
    failure is worth another run.

    Args:
        lease: on the run that might be a duplicate.
        days: the oldest that count.

    Raises:
        StoreUnavailable: the database failed.
    """
    own = aliased(SubmissionRow)
    statement = (
        select(RunRow.run_id, RunRow.plan)
        .join(SubmissionRow, SubmissionRow.submission_id == RunRow.submission_id)
        .join(
            own,
            (own.content_key == SubmissionRow.content_key)
            & (own.filename == SubmissionRow.filename)
            & (own.submission_id != SubmissionRow.submission_id),
        )
        .join(VerdictRow, (VerdictRow.run_id == RunRow.run_id) & VerdictRow.current)
        .join(EvidenceRow, EvidenceRow.run_id == RunRow.run_id)
        .where(
            own.submission_id == lease.submission_id,
            RunRow.item_id.is_(None),
            VerdictRow.status.in_(_DECIDED),
            EvidenceRow.kind == MEASURED,
            EvidenceRow.removed_at.is_(None),
            EvidenceRow.created_at > days_ago(days),
        )
        .order_by(EvidenceRow.created_at.desc())
        .limit(_MOST)
    )
    with store.transaction() as connection:
        rows = connection.execute(statement).all()
    return [row.run_id for row in rows if _asked(row.plan) == _asked(lease.plan)]


def _asked(plan: Mapping[str, Any]) -> dict[str, Any]:
    # Not the text of the lab: each run is judged by its own, and what it asks of the run stands beside it.
    return {name: value for name, value in plan.items() if name not in {"attempt", "lab"}}
