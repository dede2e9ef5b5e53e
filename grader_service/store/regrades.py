"""Batches of re-grades as they are stored: the batch, its progress, its changes and its audit trail."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, case, func, insert, literal, select

from grader_service.errors import UsageError
from grader_service.model.regrade import Batch, BatchState, Change, ItemState, Level, Progress
from grader_service.model.verdict_summary import VerdictSummary
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.operations import Happened
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.submissions import handed_in_after
from grader_service.store.tables import PREFLIGHT, EventRow, SubmissionRow, VerdictRow, table_of

_RATE_S = 20.0
"""The rate is that of the last so many seconds."""
_FEW = 5
"""With fewer items in that time it is that of the last `_LAST` items, whenever they ended: runs take a minute each."""
_LAST = 10
_BATCH = TypeAdapter(Batch)
_AT_ONCE = 2000
_MOST_ERROR = 1000
MOST_SHOWN = 50
"""Dead-lettered items that are listed."""


@dataclass(frozen=True)
class NewItem:
    """One submission to grade again."""

    base_verdict_id: str
    """Its verdict in force."""
    level: Level
    reason: str


def new_batch_id() -> str:
    """An id that a person can read out, such as `rg-1f2e3d4c`."""
    return f"rg-{secrets.token_hex(4)}"


def create(store: Store, batch: Batch, items: Sequence[NewItem], actor: str) -> None:
    """Stores a planned batch with all of its items, repetition by repetition."""
    document = batch.model_dump(mode="json", exclude={"started_at", "finished_at", "applied_at", "created_at"})
    with store.transaction() as connection:
        connection.execute(insert(table_of(RegradeBatchRow)).values(created_at=db_now(), **document))
        for first in range(0, len(items), _AT_ONCE):
            _insert_items(connection, batch, items[first : first + _AT_ONCE])
        record(
            connection,
            "regrade_planned",
            actor,
            batch_id=batch.batch_id,
            reason=batch.reason[:500],
            submissions=len(items),
            level=batch.level,
            repeats=batch.repeats,
        )


def _insert_items(connection: Connection, batch: Batch, items: Sequence[NewItem]) -> None:
    """Takes them from the rows of the verdicts that they name, so that no more than the names travels."""
    groups: dict[tuple[Level, str], list[str]] = {}
    for item in items:
        groups.setdefault((item.level, item.reason), []).append(item.base_verdict_id)
    verdict = table_of(VerdictRow).c
    for repetition in range(1, batch.repeats + 1):
        for (level, reason), verdict_ids in groups.items():
            values = {
                "batch_id": literal(batch.batch_id),
                "submission_id": verdict.submission_id,
                "repetition": literal(repetition),
                "level": literal(level.value),
                "reason": literal(reason),
                "base_verdict_id": verdict.verdict_id,
                "base_run_id": verdict.run_id,
                "state": literal(ItemState.WAITING.value),
                "attempts": literal(0),
                "not_before": db_now(),
                "gpu_s": literal(0.0),
                "applied": literal(value=False),
            }
            rows = select(*values.values()).where(verdict.verdict_id.in_(verdict_ids)).order_by(verdict.submission_id)
            connection.execute(insert(table_of(RegradeItemRow)).from_select(list(values), rows))


def batches(store: Store, limit: int = 1000) -> list[Batch]:
    """Batches, newest first."""
    statement = select(RegradeBatchRow.__table__).order_by(RegradeBatchRow.created_at.desc()).limit(limit)
    with store.transaction() as connection:
        return [_batch(row) for row in connection.execute(statement).mappings()]


def batch(store: Store, batch_id: str) -> Batch:
    """One batch.

    Raises:
        UsageError: there is none with this id.
    """
    statement = select(RegradeBatchRow.__table__).where(RegradeBatchRow.batch_id == batch_id)
    with store.transaction() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise UsageError(f"there is no batch {batch_id[:100]!r}; `grader regrade list` shows those there are")
    return _batch(row)


def _batch(row: Mapping[Any, Any]) -> Batch:
    return _BATCH.validate_python(dict(row))


def progress(store: Store, batch_id: str) -> Progress:
    """How far a batch is.

    Raises:
        UsageError: there is none with this id.
    """
    found = batch(store, batch_id)
    lately = case((RegradeItemRow.finished_at > db_now() - _RATE_S, 1), else_=0)
    statement = (
        select(
            RegradeItemRow.state,
            func.count().label("n"),
            func.sum(RegradeItemRow.gpu_s).label("gpu_s"),
            func.sum(lately).label("lately"),
        )
        .where(RegradeItemRow.batch_id == batch_id)
        .group_by(RegradeItemRow.state)
    )
    with store.transaction() as connection:
        rows = connection.execute(statement).all()
        now = connection.execute(select(db_now())).scalar_one()
        rate = _rate(connection, found, sum(int(row.lately) for row in rows), now)
    counts = {ItemState(row.state): int(row.n) for row in rows}
    left = counts.get(ItemState.WAITING, 0) + counts.get(ItemState.WORKING, 0)
    return Progress(
        batch_id=batch_id,
        state=found.state,
        counts=counts,
        gpu_used_s=float(sum(row.gpu_s for row in rows)),
        rate=rate,
        eta_s=left / rate if rate else None,
        note=found.note,
    )


def _rate(connection: Connection, found: Batch, lately: int, now: float) -> float | None:
    """Items a second, given how many ended in the last `_RATE_S` seconds; None for a batch that does not run."""
    if found.state is not BatchState.RUNNING or found.started_at is None:
        return None
    runs_s = max(1.0, now - found.started_at)
    if lately >= _FEW:
        return lately / min(_RATE_S, runs_s)
    item = table_of(RegradeItemRow).c
    newest = (
        select(item.finished_at)
        .where(item.batch_id == found.batch_id, item.finished_at.is_not(None))
        .order_by(item.finished_at.desc())
        .limit(_LAST)
    )
    ends: list[float] = list(connection.execute(newest).scalars())
    if len(ends) < _LAST:
        return len(ends) / runs_s
    return (len(ends) - 1) / max(1.0, now - ends[-1])


def changes(store: Store, batch_id: str, *, size: int = 500, after: str = "") -> Iterator[Change]:
    """Submissions of a batch with their old and new summary, by submission id; `size` at a time are in memory.

    Args:
        size: of a page.
        after: only submissions with greater ids.

    Raises:
        UsageError: there is no batch with this id.
    """
    found = batch(store, batch_id)
    last = after
    while True:
        with store.transaction() as connection:
            page = _page(connection, found, last, size)
        yield from page
        if len(page) < size:
            return
        last = page[-1].submission_id


def _page(connection: Connection, found: Batch, last: str, size: int) -> list[Change]:
    item = table_of(RegradeItemRow).c
    old, new = table_of(VerdictRow).alias("old"), table_of(VerdictRow).alias("new")
    rows = connection.execute(
        select(
            item.submission_id,
            item.level,
            item.reason,
            item.state,
            item.last_error,
            item.verdict_id,
            item.applied,
            old.c.summary.label("old_summary"),
            old.c.current.label("old_current"),
            new.c.summary.label("new_summary"),
            new.c.current.label("new_current"),
        )
        .select_from(
            table_of(RegradeItemRow)
            .join(old, old.c.verdict_id == item.base_verdict_id)
            .join(new, new.c.verdict_id == item.verdict_id, isouter=True)
        )
        .where(item.batch_id == found.batch_id, item.repetition == 1, item.submission_id > last)
        .order_by(item.submission_id)
        .limit(size)
    ).all()
    ids = [row.submission_id for row in rows]
    newer = _newer(connection, ids)
    repeats = _repeats(connection, found, ids)
    return [
        Change(
            submission_id=row.submission_id,
            level=Level(row.level),
            reason=row.reason,
            old=VerdictSummary.model_validate_json(row.old_summary),
            new=None if row.new_summary is None else VerdictSummary.model_validate_json(row.new_summary),
            repeats=tuple(repeats.get(row.submission_id, ())),
            state=ItemState(row.state),
            error=(row.last_error or "")[:_MOST_ERROR],
            outdated=_outdated(found, row),
            newer=newer.get(row.submission_id, 0),
        )
        for row in rows
    ]


def _outdated(found: Batch, row: Any) -> bool:
    if found.state is BatchState.APPLIED:
        return row.new_summary is not None and not row.new_current
    return not row.old_current


def _newer(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Submissions of the same learner to the same lab that came later, by submission."""
    this, later = table_of(SubmissionRow).alias("this").c, table_of(SubmissionRow).alias("later").c
    if not ids:
        return {}
    rows = connection.execute(
        select(this.submission_id, func.count().label("n"))
        .where(
            this.submission_id.in_(ids),
            later.learner == this.learner,
            later.lab == this.lab,
            later.queue != PREFLIGHT,
            handed_in_after(later, this),
        )
        .group_by(this.submission_id)
    )
    return {row.submission_id: int(row.n) for row in rows}


def _repeats(connection: Connection, found: Batch, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Summaries of all repetitions, in their order, by submission; empty where a batch has one."""
    if found.repeats == 1 or not ids:
        return {}
    rows = connection.execute(
        select(RegradeItemRow.submission_id, VerdictRow.summary)
        .join(VerdictRow, VerdictRow.verdict_id == RegradeItemRow.verdict_id)
        .where(RegradeItemRow.batch_id == found.batch_id, RegradeItemRow.submission_id.in_(ids))
        .order_by(RegradeItemRow.submission_id, RegradeItemRow.repetition)
    )
    found_repeats: dict[str, list[Any]] = {}
    for row in rows:
        found_repeats.setdefault(row.submission_id, []).append(VerdictSummary.model_validate_json(row.summary))
    return found_repeats


def events(store: Store, batch_id: str, limit: int = 1000) -> list[Happened]:
    """The audit trail of a batch, in order: what was done with it as a whole."""
    columns = (EventRow.id, EventRow.at, EventRow.kind, EventRow.actor, EventRow.run_id, EventRow.detail)
    statement = (
        select(*columns)
        .where(EventRow.batch_id == batch_id, EventRow.submission_id.is_(None))
        .order_by(EventRow.id.desc())
        .limit(limit)
    )
    with store.transaction() as connection:
        rows = connection.execute(statement).mappings().all()
    return [Happened(**row) for row in rows[::-1]]


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


def open_items(store: Store) -> dict[tuple[str, str], int]:
    """Items of batches that are planned, running or paused: (batch id, state) to how many."""
    states = (BatchState.PLANNED.value, BatchState.RUNNING.value, BatchState.PAUSED.value)
    statement = (
        select(RegradeItemRow.batch_id, RegradeItemRow.state, func.count().label("n"))
        .join(RegradeBatchRow, RegradeBatchRow.batch_id == RegradeItemRow.batch_id)
        .where(RegradeBatchRow.state.in_(states))
        .group_by(RegradeItemRow.batch_id, RegradeItemRow.state)
    )
    with store.transaction() as connection:
        return {(row.batch_id, row.state): int(row.n) for row in connection.execute(statement)}
