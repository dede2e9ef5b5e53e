"""The review queue: what waits for a person, what checks saw of it, and the decision.

A case is open while the verdict that left it to a person is in force and nobody decided. A decision is noted here; a
judge then makes the verdict, as with what an operator cancels: see `service.reviewing`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, Select, and_, func, insert, select

from grader_service.errors import UsageError
from grader_service.model.base import first_problem, neutralise
from grader_service.model.review import Decision
from grader_service.model.verdict import CheckVerdict, Verdict
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.review_cases import IN_FORCE
from grader_service.store.review_tables import ReviewCaseRow, ReviewDecisionRow
from grader_service.store.submissions import hold_submission
from grader_service.store.tables import EvidenceRow, SubmissionRow, VerdictRow

SHORTEST_REASON, LONGEST_REASON = 3, 2000
"""Characters."""
_AT_ONCE = 200


class NothingToReview(UsageError):
    """There is no such case, or it is not open any more without that anybody decided."""


class AlreadyDecided(UsageError):
    """Somebody decided before; the message says who, when and how."""

    def __init__(self, submission_id: str, check_id: str, decision: Decision) -> None:
        self.decision = decision
        when = datetime.fromtimestamp(decision.at, UTC).isoformat(timespec="seconds")
        how = "accepted" if decision.accepted else "rejected"
        super().__init__(
            f"{check_id} of submission {submission_id} was already decided by {decision.by} at {when}: {how}. "
            "Nothing was changed"
        )


@dataclass(frozen=True)
class Case:
    """What waits for a person, or did until a moment ago."""

    submission_id: str
    check_id: str
    lab: str
    cohort: str | None
    verdict_id: str
    run_id: str
    subject: str
    opened_at: float
    """Seconds since 1970."""
    waited_s: float
    """Until now, or until it was decided."""
    decision: Decision | None = None
    """Of a case that is decided; where its verdict is still being made too."""


@dataclass(frozen=True)
class CaseView:
    """A case with all that a person needs for the decision."""

    case: Case
    seen: Mapping[str, Any] | None
    """The fields of the check's observation, with whatever a learner wrote there; null where it was not kept."""
    check: CheckVerdict | None
    """The check's part of the verdict: `step`, `feedback`, `details`, `max_score`; null where that cannot be read."""
    notes: Sequence[str] = field(default=())
    """What is wrong with it, for the operator: what could not be read, or why it cannot be decided."""


def open_cases(store: Store, *, lab: str | None = None, limit: int | None = 200) -> list[Case]:
    """What waits, the oldest first, at most so many or all; reads no verdict.

    Raises:
        StoreUnavailable: the database failed.
    """
    statement = _cases().where(IN_FORCE, ReviewDecisionRow.subject.is_(None))
    if lab is not None:
        statement = statement.where(SubmissionRow.lab == lab)
    statement = statement.order_by(ReviewCaseRow.opened_at, ReviewCaseRow.submission_id, ReviewCaseRow.check_id)
    with store.transaction() as connection:
        return [_case(row) for row in connection.execute(statement.limit(limit))]


def waiting(store: Store) -> tuple[int, float]:
    """How many cases are open, and for how many seconds the oldest has been; 0 of none.

    Raises:
        StoreUnavailable: the database failed.
    """
    statement = (
        select(func.count(), func.coalesce(db_now() - func.min(ReviewCaseRow.opened_at), 0.0))
        .select_from(VerdictRow)
        .join(ReviewCaseRow, ReviewCaseRow.verdict_id == VerdictRow.verdict_id)
        .join(ReviewDecisionRow, _ITS_DECISION, isouter=True)
        .where(IN_FORCE, ReviewDecisionRow.subject.is_(None))
    )
    with store.transaction() as connection:
        count, age_s = connection.execute(statement).one()
    return int(count), max(0.0, float(age_s))


def case_view(store: Store, submission_id: str, check_id: str | None = None) -> CaseView:
    """A case with what the check saw: the open one, else the one that was opened last.

    Args:
        submission_id: whole; see `ids.submission_named` for beginnings.
        check_id: of the check; may be left out where one waits.

    Raises:
        NothingToReview: there never was one.
        UsageError: several checks wait, and none is named.
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        row = _one(connection, submission_id, check_id)
        document, seen = connection.execute(
            select(VerdictRow.document, ReviewCaseRow.seen)
            .join(ReviewCaseRow, ReviewCaseRow.verdict_id == VerdictRow.verdict_id)
            .where(ReviewCaseRow.verdict_id == row.verdict_id, ReviewCaseRow.check_id == row.check_id)
        ).one()
        kept = _evidence_kept(connection, row.run_id)
    case, notes = _case(row), []
    check, found = None, None
    try:
        checks = {one.id: one for one in Verdict.model_validate_json(document).checks}
        check = checks.get(case.check_id)
    except ValidationError as error:
        notes.append(f"the verdict {case.verdict_id} cannot be read: {first_problem(error)}")
    try:
        found = None if seen is None else json.loads(seen)
    except ValueError as error:
        notes.append(f"what the check saw cannot be read: {error}")
    if seen is None:
        notes.append("what the check saw was not kept: it is too large, or a backup was restored since")
    if not kept and case.decision is None:
        notes.append(_GONE.format(case.run_id))
    return CaseView(case, found, check, tuple(notes))


def decide(
    store: Store,
    submission_id: str,
    check_id: str | None,
    *,
    accepted: bool,
    reason: str,
    actor: str,
    subject: str | None = None,
) -> Case:
    """Notes a person's decision on an open case. A judge makes the new verdict within seconds, and answers with it.

    Args:
        store: in the role in which operators act.
        submission_id: whole; see `ids.submission_named` for beginnings.
        check_id: of the check; may be None where one waits.
        accepted: whether the check counts as passed, or as failed.
        reason: why; the learner reads it.
        subject: of the case that the person saw; None where it is not known.

    Raises:
        NothingToReview: nothing of it waits for a person, or something else than the person saw.
        AlreadyDecided: somebody was faster.
        UsageError: the reason is none; several checks wait, and none is named; or the evidence is gone.
        StoreUnavailable: the database failed; nothing was decided.
    """
    reason = checked_reason(reason)
    with store.transaction() as connection:
        hold_submission(connection, submission_id)  # of two who decide at once the second sees the first
        row = _one(connection, submission_id, check_id)
        if row.accepted is not None:
            raise AlreadyDecided(submission_id, row.check_id, _decision(row))
        if not row.in_force:
            raise NothingToReview(
                f"{row.check_id} of submission {submission_id} does not wait for a person any more: a later verdict "
                "decided it. Nothing was changed"
            )
        if subject is not None and row.subject != subject:
            raise NothingToReview(
                f"what waits at {row.check_id} of submission {submission_id} is not what was shown: another run, or "
                "other parameters of the lab, came in force. Nothing was changed; look at it again"
            )
        if not _evidence_kept(connection, row.run_id):
            raise UsageError(f"{_GONE.format(row.run_id)}. Nothing was changed")
        decision = Decision(
            accepted, neutralise(actor)[:200], connection.execute(select(db_now())).scalar_one(), reason
        )
        waited_s = max(0.0, decision.at - row.opened_at)
        connection.execute(
            insert(ReviewDecisionRow).values(
                submission_id=submission_id,
                subject=row.subject,
                check_id=row.check_id,
                accepted=accepted,
                decided_by=decision.by,
                decided_at=decision.at,
                reason=reason,
                waited_s=waited_s,
            )
        )
        record(
            connection,
            "review_decided",
            actor,
            submission_id=submission_id,
            run_id=row.run_id,
            check=row.check_id,
            decision="accepted" if accepted else "rejected",
            reason=reason,
            waited_s=round(waited_s, 3),
            verdict_id=row.verdict_id,
        )
        return _case(_one(connection, submission_id, row.check_id))


def checked_reason(said: str) -> str:
    """Why somebody decides so.

    Raises:
        UsageError: it is too short or too long, or has characters that cannot be shown.
    """
    reason = said.replace("\r\n", "\n").strip()
    if not SHORTEST_REASON <= len(reason) <= LONGEST_REASON:
        raise UsageError(
            f"a decision needs a reason of {SHORTEST_REASON} to {LONGEST_REASON} characters, which the learner reads; "
            f"this one has {len(reason)}"
        )
    if neutralise(reason) != reason:
        raise UsageError("a reason is plain text; this one has control characters, or such as turn text around")
    return reason


def labelled(store: Store, since: float | None = None) -> Iterator[dict[str, Any]]:
    """Decided cases as examples for training, the oldest first: what the check saw, and `label` good or bad.

    No example names a learner, a submission, a person or a reason. Cases of which nothing was kept are left out.

    Args:
        since: seconds since 1970; only what was decided then or later.

    Raises:
        StoreUnavailable: the database failed.
    """
    case = ReviewCaseRow
    same = case.submission_id == ReviewDecisionRow.submission_id, case.subject == ReviewDecisionRow.subject
    seen = select(func.max(case.seen)).where(*same).scalar_subquery()  # all that are there are the same
    statement = (
        select(ReviewDecisionRow.check_id, ReviewDecisionRow.accepted, SubmissionRow.lab, seen.label("seen"))
        .join(SubmissionRow, SubmissionRow.submission_id == ReviewDecisionRow.submission_id)
        .order_by(ReviewDecisionRow.decided_at, ReviewDecisionRow.subject)
    )
    if since is not None:
        statement = statement.where(ReviewDecisionRow.decided_at >= since)
    with store.snapshot() as connection:
        for row in connection.execute(statement.execution_options(yield_per=_AT_ONCE)):
            if row.seen is not None:
                label = {"check": row.check_id, "lab": row.lab, "label": "good" if row.accepted else "bad"}
                yield {**json.loads(row.seen), **label, "kind": "reviewed"}


_GONE = "the evidence of run {} is not stored any more, so that nothing can be judged from it: run the submission again"
_ITS_DECISION = and_(
    ReviewDecisionRow.submission_id == ReviewCaseRow.submission_id, ReviewDecisionRow.subject == ReviewCaseRow.subject
)


def _cases() -> Select[*tuple[Any, ...]]:
    decision = ReviewDecisionRow
    return (
        select(
            ReviewCaseRow.submission_id,
            ReviewCaseRow.check_id,
            ReviewCaseRow.verdict_id,
            ReviewCaseRow.subject,
            ReviewCaseRow.opened_at,
            SubmissionRow.lab,
            SubmissionRow.cohort,
            VerdictRow.run_id,
            VerdictRow.current.label("in_force"),
            decision.accepted,
            decision.decided_by,
            decision.decided_at,
            decision.reason,
            func.coalesce(decision.waited_s, db_now() - ReviewCaseRow.opened_at).label("waited_s"),
        )
        .select_from(VerdictRow)
        .join(ReviewCaseRow, ReviewCaseRow.verdict_id == VerdictRow.verdict_id)
        .join(SubmissionRow, SubmissionRow.submission_id == ReviewCaseRow.submission_id)
        .join(decision, _ITS_DECISION, isouter=True)
    )


def _one(connection: Connection, submission_id: str, check_id: str | None) -> Row[Any]:
    """The case that is meant: one of the verdict in force, else the newest one."""
    statement = _cases().where(ReviewCaseRow.submission_id == submission_id)
    if check_id is not None:
        statement = statement.where(ReviewCaseRow.check_id == check_id)
    newest = statement.order_by(VerdictRow.current.desc(), VerdictRow.created_at.desc(), ReviewCaseRow.check_id)
    rows = connection.execute(newest).all()
    if not rows:
        what = f"submission {submission_id}" if check_id is None else f"check {check_id} of submission {submission_id}"
        raise NothingToReview(f"{what} never waited for a person; `grader reviews list` shows what does")
    wait = [row for row in rows if row.in_force and row.accepted is None]
    if len(wait) > 1:
        names = ", ".join(row.check_id for row in wait)
        raise UsageError(f"several checks of submission {submission_id} wait for a person: {names}; name one of them")
    return (wait or rows)[0]


def _evidence_kept(connection: Connection, run_id: str) -> bool:
    kept = select(EvidenceRow.run_id).where(EvidenceRow.run_id == run_id, EvidenceRow.removed_at.is_(None))
    return connection.execute(kept).first() is not None


def _decision(row: Row[Any]) -> Decision:
    return Decision(row.accepted, row.decided_by, row.decided_at, row.reason)


def _case(row: Row[Any]) -> Case:
    return Case(
        submission_id=row.submission_id,
        check_id=row.check_id,
        lab=row.lab,
        cohort=row.cohort,
        verdict_id=row.verdict_id,
        run_id=row.run_id,
        subject=row.subject,
        opened_at=row.opened_at,
        waited_s=max(0.0, row.waited_s),
        decision=None if row.accepted is None else _decision(row),
    )
