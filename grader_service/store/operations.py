"""What operators ask and do: where is a submission, what waits, try again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, RowMapping, func, select, update

from grader_service.model.regrade import BatchState
from grader_service.store import fairness, regrade_items
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record_all
from grader_service.store.ids import Named, submission_named
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import (
    EventRow,
    EvidenceRow,
    OutboxRow,
    RunRow,
    RunState,
    SubmissionRow,
    VerdictRow,
    written,
)

_ARRIVALS = ("accepted", "run_done")
_LATEST = 50
"""Events that are looked at for arrivals: more than come in a moment."""
_AT_ONCE = 1000


@dataclass(frozen=True)
class Whereabouts:
    """Everything about one submission that a person waits for."""

    submission: Mapping[str, Any]
    runs: list[Mapping[str, Any]]
    verdict: str | None
    """The document in force."""
    events: list[Mapping[str, Any]]
    ahead: int
    """Runs that will probably be claimed before its own."""


@dataclass(frozen=True)
class Place:
    """One run of a submission."""

    run_id: str
    state: str
    purpose: str
    attempts: int
    """Our failures so far."""
    last_error: str | None
    ahead: int | None
    """Runs that will probably be claimed before it; null when it does not wait."""
    batch_id: str | None
    """The batch of re-grades that it serves; null when it serves none."""
    batch_state: str | None


@dataclass(frozen=True)
class QueueState:
    """What waits, and how long the oldest has."""

    counts: Mapping[tuple[str, str], int]
    """(state, purpose) to number of runs."""
    oldest_s: Mapping[str, float]
    """Purpose to age of the oldest waiting run, seconds."""
    undelivered: int
    stuck: list[Mapping[str, Any]]
    """Runs that need attention, newest first, at most 50."""


def whereabouts(store: Store, named: str) -> Whereabouts:
    """Where a submission is.

    Args:
        named: as for `ids.submission_named`.

    Raises:
        UnknownId: it was never accepted.
        AmbiguousId: several begin so.
        StoreUnavailable: the database failed.
    """
    submission_id = submission_named(store, named)
    submission = select(SubmissionRow.__table__).where(SubmissionRow.submission_id == submission_id)
    runs = select(RunRow.__table__).where(RunRow.submission_id == submission_id).order_by(RunRow.created_at)
    in_force = select(VerdictRow.document).where(VerdictRow.submission_id == submission_id, VerdictRow.current)
    events = select(EventRow.at, EventRow.kind, EventRow.actor, EventRow.detail)
    newest = events.where(EventRow.submission_id == submission_id).order_by(EventRow.id.desc()).limit(100)
    with store.transaction() as connection:
        its_runs = connection.execute(runs).mappings().all()
        waiting = [run for run in its_runs if run["state"] == RunState.RUN_QUEUED.value]
        return Whereabouts(
            submission=dict(connection.execute(submission).mappings().one()),
            runs=[dict(run) for run in its_runs],
            verdict=connection.execute(in_force).scalar_one_or_none(),
            events=[dict(event) for event in connection.execute(newest).mappings().all()[::-1]],
            ahead=fairness.runs_before(connection, waiting[-1]) if waiting else 0,
        )


def places(store: Store, submission_id: str) -> list[Place]:
    """Every run of a submission, oldest first; empty when it was never accepted."""
    statement = (
        select(
            RunRow.__table__,
            RegradeBatchRow.batch_id,
            RegradeBatchRow.state.label("batch_state"),
        )
        .join(RegradeItemRow, RegradeItemRow.id == RunRow.item_id, isouter=True)
        .join(RegradeBatchRow, RegradeBatchRow.batch_id == RegradeItemRow.batch_id, isouter=True)
        .where(RunRow.submission_id == submission_id)
        .order_by(RunRow.created_at)
    )
    with store.transaction() as connection:
        return [
            Place(
                row["run_id"],
                row["state"],
                row["purpose"],
                row["attempts"],
                row["last_error"],
                runs_before(connection, row),
                row["batch_id"],
                row["batch_state"],
            )
            for row in connection.execute(statement).mappings()
        ]


def runs_before(connection: Connection, run: RowMapping) -> int | None:
    """How many runs will probably be claimed before one that waits, given its row; None when it does not wait."""
    if run["state"] == RunState.RUN_QUEUED.value:
        return fairness.runs_before(connection, run)
    if run["state"] != RunState.JUDGE_QUEUED.value:
        return None
    earlier = (RunRow.priority < run["priority"]) | (
        (RunRow.priority == run["priority"]) & (RunRow.created_at < run["created_at"])
    )
    return connection.execute(
        select(func.count()).select_from(RunRow).where(RunRow.state == written(RunState.JUDGE_QUEUED), earlier)
    ).scalar_one()


def queue_state(store: Store, submission_id: str | None = None) -> QueueState:
    """What waits and what is stuck: of one submission, or of all."""
    of_it = [] if submission_id is None else [RunRow.submission_id == submission_id]
    unsent = [OutboxRow.delivered_at.is_(None)]
    if submission_id is not None:
        verdicts = select(VerdictRow.verdict_id).where(VerdictRow.submission_id == submission_id)
        unsent.append(OutboxRow.verdict_id.in_(verdicts))
    runs = select(RunRow.state, RunRow.purpose, func.count().label("n")).where(*of_it)
    waits = RunRow.state.in_((RunState.RUN_QUEUED.value, RunState.JUDGE_QUEUED.value))
    ages = select(RunRow.purpose, (db_now() - func.min(RunRow.created_at)).label("age")).where(waits, *of_it)
    stuck = (
        select(RunRow.run_id, RunRow.submission_id, RunRow.attempts, RunRow.last_error)
        .where(RunRow.state == RunState.NEEDS_ATTENTION.value, *of_it)
        .order_by(RunRow.created_at.desc())
        .limit(50)
    )
    with store.transaction() as connection:
        counted = connection.execute(runs.group_by(RunRow.state, RunRow.purpose))
        counts = {(row.state, row.purpose): row.n for row in counted}
        aged = connection.execute(ages.group_by(RunRow.purpose))
        oldest = {row.purpose: max(0.0, row.age) for row in aged}
        undelivered = connection.execute(select(func.count()).select_from(OutboxRow).where(*unsent)).scalar_one()
        rows = connection.execute(stuck).mappings()
        return QueueState(counts, oldest, undelivered, [dict(row) for row in rows])


def work_came(store: Store, within_s: float) -> bool:
    """Whether a submission came, or what a run found, within the last seconds."""
    latest = select(EventRow.at, EventRow.kind).order_by(EventRow.id.desc()).limit(_LATEST).subquery()
    statement = select(latest.c.at).where(latest.c.at > db_now() - within_s, latest.c.kind.in_(_ARRIVALS)).limit(1)
    with store.transaction() as connection:
        return connection.execute(statement).first() is not None


def retry(store: Store, actor: str, named: Named | None = None) -> int:
    """Gives dead-lettered runs fresh tries: the run or the submission that is named, or all; returns how many.

    Runs of a batch of re-grades that does not go on are left to it.
    """
    with store.transaction() as connection:
        dead_lettered: list[ColumnElement[bool]] = [RunRow.state == RunState.NEEDS_ATTENTION.value]
        if named is not None:
            dead_lettered.append(RunRow.submission_id == named.submission_id)
            if named.run_id is not None:
                dead_lettered.append(RunRow.run_id == named.run_id)
        goes_on = (
            select(RegradeItemRow.id)
            .where(RegradeItemRow.run_id == RunRow.run_id, RegradeItemRow.id == RunRow.item_id)
            .where(RegradeItemRow.batch_id.in_(_batches_held(connection, dead_lettered)))
            .exists()
        )
        chosen = select(RunRow.run_id, RunRow.submission_id).where(*dead_lettered, RunRow.item_id.is_(None) | goes_on)
        rows = connection.execute(chosen.with_for_update(of=RunRow)).all()
        try_again(connection, rows, actor)
    return len(rows)


def _batches_held(connection: Connection, dead_lettered: Sequence[ColumnElement[bool]]) -> Sequence[str]:
    """Batches of dead-lettered runs that go on, locked until the transaction ends: before their runs, as everywhere."""
    of_runs = select(RegradeItemRow.batch_id).join(RunRow, RunRow.item_id == RegradeItemRow.id).where(*dead_lettered)
    going = (BatchState.RUNNING.value, BatchState.FINISHED.value)
    statement = (
        select(RegradeBatchRow.batch_id)
        .where(RegradeBatchRow.batch_id.in_(of_runs), RegradeBatchRow.state.in_(going))
        .order_by(RegradeBatchRow.started_at)  # as workers hold several
        .with_for_update()
    )
    return connection.execute(statement).scalars().all()


def try_again(connection: Connection, dead_lettered: Sequence[Row[str, str]], actor: str) -> None:
    """Gives dead-lettered runs fresh tries, inside a transaction that holds them and their batches.

    Args:
        dead_lettered: id and submission of each run.
    """
    for first in range(0, len(dead_lettered), _AT_ONCE):
        runs = dead_lettered[first : first + _AT_ONCE]
        ids = [run.run_id for run in runs]
        # A run that has its evidence lacks only its judging, as does one that was cancelled.
        judged = {
            *connection.execute(select(EvidenceRow.run_id).where(EvidenceRow.run_id.in_(ids))).scalars(),
            *connection.execute(
                select(RunRow.run_id).where(RunRow.run_id.in_(ids), RunRow.cancelled.is_not(None))
            ).scalars(),
        }
        _queue(connection, [run for run in runs if run.run_id in judged], RunState.JUDGE_QUEUED, actor)
        _queue(connection, [run for run in runs if run.run_id not in judged], RunState.RUN_QUEUED, actor)
        regrade_items.runs_retried(connection, ids)


def _queue(connection: Connection, runs: Sequence[Row[str, str]], state: RunState, actor: str) -> None:
    if not runs:
        return
    connection.execute(
        update(RunRow)
        .where(RunRow.run_id.in_([run.run_id for run in runs]))
        .values(
            state=state.value, attempts=0, not_before=db_now(), published_at=None, failed_host=None, failed_device=None
        )
    )
    told = [(run.submission_id, run.run_id, {"state": state.value}) for run in runs]
    record_all(connection, "retried", actor, told)


@dataclass(frozen=True)
class Happened:
    """One event of the audit trail."""

    id: int
    at: float
    kind: str
    actor: str
    run_id: str | None
    detail: Mapping[str, Any]


_SETTLED_S = 2.0
"""Ids are given out before transactions end, so that an event may appear after one with a greater id."""
_PAGE = 5000


def events_after(store: Store, last: int) -> Iterator[Happened]:
    """Events with greater ids that are settled, in order."""
    while True:
        with store.transaction() as connection:
            page = events_of_age(connection, last, _SETTLED_S, _PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        last = page[-1].id


def events_of_age(connection: Connection, last: int, age_s: float, most: int) -> list[Happened]:
    """The first events with greater ids, in order, up to the first that is younger than this."""
    columns = (EventRow.id, EventRow.at, EventRow.kind, EventRow.actor, EventRow.run_id, EventRow.detail)
    old = (EventRow.at < db_now() - age_s).label("old")
    rows = connection.execute(select(old, *columns).where(EventRow.id > last).order_by(EventRow.id).limit(most))
    return [Happened(*values) for is_old, *values in takewhile(lambda row: row.old, rows)]
