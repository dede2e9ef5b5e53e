"""Decisions whose verdicts are still to be made, and those verdicts as they come in force."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select, update

from grader_service.model.evidence import RunPlan
from grader_service.model.lab import LabRef
from grader_service.model.regrade import BatchLab
from grader_service.model.review import Reviews
from grader_service.model.verdict import Verdict
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.regrade_tables import RegradeBatchRow
from grader_service.store.results import put_in_force
from grader_service.store.review_cases import IN_FORCE
from grader_service.store.review_tables import ReviewCaseRow, ReviewDecisionRow
from grader_service.store.submissions import hold_submission
from grader_service.store.tables import OutboxRow, RunRow, SubmissionRow, VerdictRow


@dataclass(frozen=True)
class Decided:
    """A submission whose verdict in force leaves to a person what one has decided."""

    submission_id: str
    run_id: str
    """Whose evidence the verdict is on."""
    verdict_id: str
    """In force."""
    lab: LabRef
    """The lab by which it was made: the batch's, or the one that the run was planned with."""


def decided_cases(store: Store, limit: int, leaving: Collection[str] = ()) -> list[Decided]:
    """Those that wait for a judge, the first decision coming first, but for those of these verdicts in force.

    Raises:
        StoreUnavailable: the database failed.
    """
    statement = (
        select(
            VerdictRow.submission_id,
            VerdictRow.run_id,
            VerdictRow.verdict_id,
            SubmissionRow.lab,
            RunRow.plan,
            RegradeBatchRow.labs,
        )
        .select_from(VerdictRow)
        .join(ReviewCaseRow, ReviewCaseRow.verdict_id == VerdictRow.verdict_id)
        .join(
            ReviewDecisionRow,
            (ReviewDecisionRow.submission_id == ReviewCaseRow.submission_id)
            & (ReviewDecisionRow.subject == ReviewCaseRow.subject),
        )
        .join(SubmissionRow, SubmissionRow.submission_id == VerdictRow.submission_id)
        .join(RunRow, RunRow.run_id == VerdictRow.run_id)
        .join(RegradeBatchRow, RegradeBatchRow.batch_id == VerdictRow.batch_id, isouter=True)
        .where(IN_FORCE, VerdictRow.verdict_id.not_in(leaving))
        .order_by(ReviewDecisionRow.decided_at, VerdictRow.verdict_id)
        .limit(limit)
    )
    with store.transaction() as connection:
        rows = connection.execute(statement).all()
    found: dict[str, Decided] = {}
    for row in rows:  # once where several of its checks were decided
        labs = {lab.lab: lab for lab in map(BatchLab.model_validate, row.labs or ())}
        kept = labs.get(row.lab) or RunPlan.model_validate(row.plan).lab
        found.setdefault(row.verdict_id, Decided(row.submission_id, row.run_id, row.verdict_id, kept))
    return list(found.values())


def store_reviewed(store: Store, case: Decided, verdict: Verdict, reviews: Reviews, owner: str) -> bool:
    """Puts the verdict in force and queues its answers; False where another verdict came in force meanwhile.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        hold_submission(connection, case.submission_id)
        in_force = select(VerdictRow.verdict_id).where(VerdictRow.verdict_id == case.verdict_id, VerdictRow.current)
        if connection.execute(in_force).first() is None:
            return False
        # What still waits to be sent must not tell, after the answers of now, of the verdict from before.
        connection.execute(
            update(OutboxRow)
            .where(OutboxRow.verdict_id == case.verdict_id, OutboxRow.delivered_at.is_(None))
            .values(verdict_id=verdict.verdict_id, journaled=False)
        )
        put_in_force(connection, verdict, run_id=case.run_id, seen=reviews.seen, reviewed=True)
        record(
            connection,
            "reviewed",
            owner,
            submission_id=case.submission_id,
            run_id=case.run_id,
            verdict_id=verdict.verdict_id,
            status=verdict.status.value,
            supersedes=case.verdict_id,
        )
        return True
