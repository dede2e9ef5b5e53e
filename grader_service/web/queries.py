"""What only the pages ask of the store; every answer is bounded, and a list goes on after the last row of a page."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from grader_service.model.regrade import ItemState
from grader_service.model.run_report import RunReport
from grader_service.model.verdict import Mode, Status
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.ids import begins, may_begin
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.results import verdict_document
from grader_service.store.tables import EventRow, RunRow, SubmissionRow, VerdictRow

Line = TypeVar("Line")
PAGE = 50
_MOST_CHOICES = 200
UNGRADED = "ungraded"
"""In place of a status: no verdict is in force."""
_EXCHANGES = ("regraded", "regrade_undone")
"""Events that say of a submission that another of its verdicts came in force."""


class _Run(BaseModel):
    """The part of a verdict on its run; the rest is not even looked at."""

    run: RunReport | None = None


@dataclass(frozen=True)
class SubmissionFilter:
    """Which submissions: all that is not empty must hold."""

    text: str = ""
    """Part of the submission's id or the learner's, whatever its case, or the beginning of a run's id."""
    cohort: str = ""
    lab: str = ""
    status: str = ""
    """Of the verdict in force, or `ungraded`."""


@dataclass(frozen=True)
class SubmissionLine:
    """One submission in a list."""

    submission_id: str
    learner: str | None
    cohort: str | None
    lab: str
    received_at: float
    verdict_id: str | None
    status: str | None
    mode: str | None
    code: str | None
    score: float | None
    max_score: float | None
    run_state: str | None = None
    """Of the newest run, where no verdict is in force."""


@dataclass(frozen=True)
class VerdictLine:
    """One verdict of a submission."""

    verdict_id: str
    submission_id: str
    run_id: str
    status: str
    mode: str
    code: str
    score: float | None
    max_score: float | None
    current: bool
    supersedes: str | None
    batch_id: str | None
    created_at: float


@dataclass(frozen=True)
class EventFilter:
    """Which events: all that is not empty must hold."""

    kind: str = ""
    actor: str = ""
    """Part of the name."""
    submission: str = ""
    batch: str = ""


@dataclass(frozen=True)
class EventLine:
    """One event of the audit trail."""

    id: int
    at: float
    kind: str
    actor: str
    submission_id: str | None
    run_id: str | None
    batch_id: str | None
    detail: Mapping[str, Any]


def submissions(
    store: Store, chosen: SubmissionFilter, after: tuple[float, str] | None = None, size: int = PAGE
) -> list[SubmissionLine]:
    """Those that were received last first, at most `size + 1`: one more than fits says that there are more."""
    statement = (
        select(*_columns(SubmissionLine, SubmissionRow, VerdictRow))
        .join(
            VerdictRow, and_(VerdictRow.submission_id == SubmissionRow.submission_id, VerdictRow.current), isouter=True
        )
        .where(*_conditions(chosen))
        .order_by(SubmissionRow.received_at.desc(), SubmissionRow.submission_id.desc())
        .limit(size + 1)
    )
    if after is not None:
        received, submission_id = after
        statement = statement.where(
            or_(
                SubmissionRow.received_at < received,
                and_(SubmissionRow.received_at == received, SubmissionRow.submission_id < submission_id),
            )
        )
    with store.transaction() as connection:
        rows = [dict(row) for row in connection.execute(statement).mappings()]
        waiting = [row["submission_id"] for row in rows if row["verdict_id"] is None]
        states = {}
        if waiting:
            runs = (
                select(RunRow.submission_id, RunRow.state)
                .where(RunRow.submission_id.in_(waiting))
                .order_by(RunRow.created_at)
            )
            states = {row.submission_id: row.state for row in connection.execute(runs)}
    return [SubmissionLine(**row, run_state=states.get(row["submission_id"])) for row in rows]


def _conditions(chosen: SubmissionFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if chosen.text:
        fits = [
            SubmissionRow.submission_id.icontains(chosen.text, autoescape=True),
            SubmissionRow.learner.icontains(chosen.text, autoescape=True),
        ]
        if may_begin(chosen.text):
            of_runs = select(RunRow.submission_id).where(begins(RunRow.run_id, chosen.text))
            fits.append(SubmissionRow.submission_id.in_(of_runs))
        found.append(or_(*fits))
    if chosen.cohort:
        found.append(SubmissionRow.cohort == chosen.cohort)
    if chosen.lab:
        found.append(SubmissionRow.lab == chosen.lab)
    if chosen.status == UNGRADED:
        found.append(VerdictRow.verdict_id.is_(None))
    elif chosen.status:
        found.append(VerdictRow.status == chosen.status)
    return found


def choices(store: Store) -> Mapping[str, Sequence[str]]:
    """What stands in the lists of a filter: `cohorts` and `labs` that there are, at most 200 of each."""
    found = {}
    with store.transaction() as connection:
        for name, column in (("cohorts", SubmissionRow.cohort), ("labs", SubmissionRow.lab)):
            names = select(column).where(column.is_not(None)).distinct().order_by(column).limit(_MOST_CHOICES)
            found[name] = tuple(str(value) for value in connection.execute(names).scalars())
    return found


def verdicts_of(store: Store, submission_id: str) -> list[VerdictLine]:
    """Every verdict of a submission, newest first, at most 100; those of batches that were not applied too."""
    statement = select(*_columns(VerdictLine, VerdictRow)).where(VerdictRow.submission_id == submission_id)
    return _read(store, VerdictLine, statement.order_by(VerdictRow.created_at.desc()).limit(100))


def verdict_line(store: Store, verdict_id: str) -> VerdictLine | None:
    """One verdict without its document; None when there is none."""
    statement = select(*_columns(VerdictLine, VerdictRow)).where(VerdictRow.verdict_id == verdict_id)
    return next(iter(_read(store, VerdictLine, statement)), None)


def in_force_since(store: Store, line: VerdictLine) -> float:
    """When a verdict in force came in force: when it was made, or later, by a batch that was applied or undone."""
    statement = select(func.max(EventRow.at)).where(
        EventRow.submission_id == line.submission_id, EventRow.kind.in_(_EXCHANGES)
    )
    with store.transaction() as connection:
        exchanged = connection.execute(statement).scalar_one()
    return max(line.created_at, exchanged or 0.0)


def run_told(store: Store, verdict_id: str) -> RunReport | None:
    """How the run behind a verdict ended; None where the verdict does not say it, or was written by another version."""
    document = verdict_document(store, verdict_id)
    try:
        return _Run.model_validate_json(document).run if document is not None else None
    except ValidationError:
        return None


def _read(store: Store, line: type[Line], statement: Select[Any]) -> list[Line]:
    with store.transaction() as connection:
        return [line(**row) for row in connection.execute(statement).mappings()]


def _columns(line: type, *tables: type) -> list[InstrumentedAttribute[Any]]:
    """The columns that a line is made of, each of the first table that has it; a field with a default is no column."""
    names = [field.name for field in fields(line) if field.default is MISSING]
    return [next(getattr(table, name) for table in tables if hasattr(table, name)) for name in names]


def events(store: Store, chosen: EventFilter, before: int | None = None, size: int = PAGE) -> list[EventLine]:
    """The newest first, at most `size + 1`: one more than fits says that there are more."""
    statement = select(*_columns(EventLine, EventRow))
    if chosen.kind:
        statement = statement.where(EventRow.kind == chosen.kind)
    if chosen.actor:
        statement = statement.where(EventRow.actor.icontains(chosen.actor, autoescape=True))
    if chosen.submission:
        statement = statement.where(EventRow.submission_id == chosen.submission)
    if chosen.batch:
        statement = statement.where(EventRow.batch_id == chosen.batch)
    if before is not None:
        statement = statement.where(EventRow.id < before)
    return _read(store, EventLine, statement.order_by(EventRow.id.desc()).limit(size + 1))


def has_events(store: Store, submission_id: str) -> bool:
    """Whether the audit trail knows a submission by this id; one that was refused stands nowhere else."""
    statement = select(EventRow.id).where(EventRow.submission_id == submission_id).limit(1)
    with store.transaction() as connection:
        return connection.execute(statement).first() is not None


def graded_lately(store: Store, within_s: float = 86400.0) -> Mapping[str, int]:
    """Status to number of verdicts that were given within this time and are in force."""
    statement = (
        select(VerdictRow.status, func.count().label("n"))
        .where(
            VerdictRow.current, VerdictRow.created_at >= db_now() - within_s, VerdictRow.mode != Mode.PREFLIGHT.value
        )
        .group_by(VerdictRow.status)
    )
    with store.transaction() as connection:
        found = {row.status: row.n for row in connection.execute(statement)}
    return {status.value: found[status.value] for status in Status if status.value in found}


def item_counts(store: Store, batch_ids: Collection[str]) -> Mapping[str, Mapping[ItemState, int]]:
    """How many items of these batches are in each state, by batch; a batch without items is not in it."""
    statement = (
        select(RegradeItemRow.batch_id, RegradeItemRow.state, func.count().label("n"))
        .where(RegradeItemRow.batch_id.in_(batch_ids))
        .group_by(RegradeItemRow.batch_id, RegradeItemRow.state)
    )
    found: dict[str, dict[ItemState, int]] = {}
    if not batch_ids:
        return found
    with store.transaction() as connection:
        for row in connection.execute(statement):
            found.setdefault(row.batch_id, {})[ItemState(row.state)] = int(row.n)
    return found
