"""Removes what belongs together: the documents of a run's evidence, or all rows of a submission."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, String, cast, delete, select, update

from grader_service.store.clock import db_now
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.retention_tables import EvidenceBlobRow
from grader_service.store.review_tables import ReviewCaseRow, ReviewDecisionRow, SecondOpinionRow
from grader_service.store.tables import (
    ENDED,
    BlobRow,
    EvidenceRow,
    OutboxRow,
    RunRow,
    SubmissionRow,
    VerdictRow,
    WaiterRow,
)


def hold_blobs(connection: Connection, runs: ColumnElement[bool]) -> None:
    """Blobs to which evidence of these runs refers, until the transaction ends: in the order in which runs bring them.

    Call it once for all that a transaction removes, and before it is looked who else needs them: a run that brings one
    again waits, or has noted it by then.
    """
    theirs = select(EvidenceBlobRow.sha256).join(RunRow, RunRow.run_id == EvidenceBlobRow.run_id).where(runs)
    held = select(BlobRow.sha256).where(BlobRow.sha256.in_(theirs)).order_by(BlobRow.sha256)
    connection.execute(held.with_for_update()).all()


def empty_evidence(connection: Connection, run_id: str) -> None:
    """Removes the document of a run's evidence and what it alone refers to; that there was evidence stays known.

    Call `hold_blobs` before.
    """
    emptied = update(EvidenceRow).where(EvidenceRow.run_id == run_id)
    connection.execute(emptied.values(document=b"", removed_at=db_now()))
    _release_blobs(connection, [run_id])


def remove_submission(connection: Connection, submission_id: str) -> Counter[str]:
    """Removes a submission with its runs, evidence, verdicts and answers; returns how many rows of each kind.

    Its events stay. A runner or judge that is at work on it finds that its lease does not hold any more. Call
    `hold_blobs` before.
    """
    runs = connection.execute(select(RunRow.run_id).where(RunRow.submission_id == submission_id)).scalars().all()
    removed = Counter({"submissions": 1, "blobs": _release_blobs(connection, runs)})
    verdicts = select(VerdictRow.verdict_id).where(VerdictRow.submission_id == submission_id)
    for kind, statement in (
        ("answers", delete(OutboxRow).where(OutboxRow.verdict_id.in_(verdicts))),
        ("waiters", delete(WaiterRow).where(WaiterRow.submission_id == submission_id)),
        ("reviews", delete(ReviewCaseRow).where(ReviewCaseRow.submission_id == submission_id)),
        ("reviews", delete(ReviewDecisionRow).where(ReviewDecisionRow.submission_id == submission_id)),
        ("evidence", delete(EvidenceRow).where(EvidenceRow.run_id.in_(runs))),
        ("verdicts", delete(VerdictRow).where(VerdictRow.submission_id == submission_id)),
        ("second_opinions", delete(SecondOpinionRow).where(SecondOpinionRow.submission_id == submission_id)),
        ("runs", delete(RunRow).where(RunRow.run_id.in_(runs))),
        ("regrade_items", delete(RegradeItemRow).where(RegradeItemRow.submission_id == submission_id)),
    ):
        removed[kind] += connection.execute(statement).rowcount
    connection.execute(delete(SubmissionRow).where(SubmissionRow.submission_id == submission_id))
    return removed


def _release_blobs(connection: Connection, run_ids: Sequence[str]) -> int:
    """Blobs to which only these runs' evidence referred are removed; returns how many."""
    referred = delete(EvidenceBlobRow).where(EvidenceBlobRow.run_id.in_(run_ids)).returning(EvidenceBlobRow.sha256)
    removed = 0
    for digest in sorted(set(connection.execute(referred).scalars())):
        needed = (
            select(EvidenceBlobRow.run_id).where(EvidenceBlobRow.sha256 == digest).exists(),
            # Lab documents of batches are kept among them.
            select(RegradeBatchRow.batch_id).where(cast(RegradeBatchRow.labs, String).contains(digest)).exists(),
            # And those of runs: a graph of a learner's may have the very bytes.
            select(RunRow.run_id)
            .where(RunRow.state.not_in(ENDED), cast(RunRow.plan, String).contains(digest))
            .exists(),
        )
        gone = delete(BlobRow).where(BlobRow.sha256 == digest, *(~one for one in needed))
        removed += connection.execute(gone).rowcount
    return removed
