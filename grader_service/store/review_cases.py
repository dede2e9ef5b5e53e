"""Cases that verdicts open for a person, written with the verdicts; and what was decided, for who judges."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import Connection, Exists, func, insert, select, text
from sqlalchemy.orm import InstrumentedAttribute

from grader_service.model.review import Decision, Reviews
from grader_service.model.verdict import Verdict
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.review_tables import ReviewCaseRow, ReviewDecisionRow
from grader_service.store.tables import VerdictRow, insert_into

IN_FORCE = text("verdict.current and verdict.needs_review")
"""Verdicts that may have an open case, in the words of their index."""


def decided(store: Store, submission_id: str) -> Reviews:
    """What people decided about a submission so far.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        return Reviews(decisions_on(connection, [submission_id]).get(submission_id, {}))


def decisions_on(connection: Connection, submission_ids: Collection[str]) -> Mapping[str, Mapping[str, Decision]]:
    """Submission → subject → decision."""
    row = ReviewDecisionRow
    found: defaultdict[str, dict[str, Decision]] = defaultdict(dict)
    statement = select(row.submission_id, row.subject, row.accepted, row.decided_by, row.decided_at, row.reason)
    for one in connection.execute(statement.where(row.submission_id.in_(submission_ids))):
        found[one.submission_id][one.subject] = Decision(one.accepted, one.decided_by, one.decided_at, one.reason)
    return found


def waits(verdict: Verdict) -> bool:
    """Whether it leaves something to a person."""
    return any(check.review is not None and check.review.decision is None for check in verdict.checks)


def open_cases(connection: Connection, verdict: Verdict, supersedes: str | None, seen: Mapping[str, str]) -> None:
    """What a verdict, whose row is there, leaves to a person; it waits from when the one before left it.

    Args:
        verdict: in force or staged.
        supersedes: id of the verdict before it.
        seen: by subject, what the check saw; see `Reviews`.
    """
    before = ReviewCaseRow.verdict_id == supersedes
    for check in verdict.checks:
        if check.review is None or check.review.decision is not None:
            continue
        same = before, ReviewCaseRow.check_id == check.id, ReviewCaseRow.subject == check.review.subject
        since = select(ReviewCaseRow.opened_at).where(*same).scalar_subquery()
        connection.execute(
            insert(ReviewCaseRow).values(
                verdict_id=verdict.verdict_id,
                check_id=check.id,
                submission_id=verdict.submission_id,
                subject=check.review.subject,
                seen=seen.get(check.review.subject),
                opened_at=func.coalesce(since, db_now()),
            )
        )


def adopt(connection: Connection, verdict: Verdict) -> None:
    """Cases and decisions of a verdict that was given after a backup, as far as the verdict itself says them."""
    open_cases(connection, verdict, None, {})
    for check in verdict.checks:
        review = check.review
        if review is None or review.decision is None or review.decided_at is None:
            continue
        connection.execute(
            insert_into(connection, ReviewDecisionRow)
            .values(
                submission_id=verdict.submission_id,
                subject=review.subject,
                check_id=check.id,
                accepted=review.decision == "accepted",
                decided_by=review.decided_by or "",
                decided_at=review.decided_at.timestamp(),
                reason=review.reason or "",
                waited_s=0.0,
            )
            .on_conflict_do_nothing()
        )


def open_case_of(submission_id: InstrumentedAttribute[str]) -> Exists:
    """Whether a person may yet decide about a submission, for which its evidence is needed."""
    return select(VerdictRow.verdict_id).where(VerdictRow.submission_id == submission_id, IN_FORCE).exists()
