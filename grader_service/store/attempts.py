"""A learner's attempts at a lab: each may spend less of the error budget than the one before it."""

from sqlalchemy import func, select
from sqlalchemy.orm import aliased

from grader_service.model.verdict import Status
from grader_service.store.cancelling import CANCELLED
from grader_service.store.engine import Store
from grader_service.store.submissions import handed_in_after
from grader_service.store.tables import PREFLIGHT, EvidenceRow, RunRow, SubmissionRow, VerdictRow

MEASURED = "measured"
_NOTHING_FOUND = (Status.REJECTED.value, Status.ERROR.value)


def attempt_number(store: Store, submission_id: str) -> int:
    """Which attempt of its learner at its lab this submission is: 1 plus those that were measured before it.

    A submission is one attempt however often it runs: run again, it keeps the number that it had. What was never
    measured (a rejection, an infrastructure failure, code that stopped early) or was cancelled counts nothing. The same
    file under another submission id is measured anew, which is one more chance for noise to pass it, and therefore
    one more attempt. A submission without a learner is a first attempt.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        own = connection.execute(
            select(SubmissionRow.learner, SubmissionRow.lab).where(SubmissionRow.submission_id == submission_id)
        ).one_or_none()
        if own is None or own.learner is None:
            return 1
        first = func.min(EvidenceRow.created_at)
        # A run of a re-grade is nobody's attempt, unless what came of it was put in force.
        in_force = select(VerdictRow.verdict_id).where(VerdictRow.run_id == RunRow.run_id, VerdictRow.current)
        # What was cancelled may have been graded again since, from what had been measured.
        graded = in_force.where(VerdictRow.code != CANCELLED).exists()
        measured = connection.execute(
            select(SubmissionRow.submission_id, first.label("at"))
            .join(RunRow, RunRow.submission_id == SubmissionRow.submission_id)
            .join(EvidenceRow, EvidenceRow.run_id == RunRow.run_id)
            .where(
                SubmissionRow.learner == own.learner,
                SubmissionRow.lab == own.lab,
                EvidenceRow.kind == MEASURED,
                RunRow.cancelled.is_(None) | graded,
                RunRow.item_id.is_(None) | in_force.exists(),
            )
            .group_by(SubmissionRow.submission_id)
            .order_by(first, SubmissionRow.submission_id)
        ).all()
    order = [row.submission_id for row in measured]
    return (order.index(submission_id) if submission_id in order else len(order)) + 1


def verdict_before(store: Store, submission_id: str) -> str | None:
    """The verdict, as JSON, on what this submission's learner handed in last at its lab before it; None without one.

    It is the one in force, and may be on code that stopped early. Rejections and infrastructure failures say nothing of
    the learner's code: they are passed over, and so is what has no verdict yet.

    Raises:
        StoreUnavailable: the database failed.
    """
    own = aliased(SubmissionRow)
    when = func.coalesce(SubmissionRow.submitted_at, SubmissionRow.received_at)
    statement = (
        select(VerdictRow.document)
        .join(SubmissionRow, SubmissionRow.submission_id == VerdictRow.submission_id)
        .join(own, (own.learner == SubmissionRow.learner) & (own.lab == SubmissionRow.lab))
        .where(
            own.submission_id == submission_id,
            handed_in_after(own, SubmissionRow),
            VerdictRow.current,
            VerdictRow.status.not_in(_NOTHING_FOUND),
            SubmissionRow.queue != PREFLIGHT,
        )
        .order_by(when.desc(), SubmissionRow.submission_id.desc())
        .limit(1)
    )
    with store.transaction() as connection:
        return connection.execute(statement).scalar()
