"""Removes what has been kept for long enough, in steps that hold no lock for long; several may do it at once."""

from collections.abc import Callable

from sqlalchemy import Connection, Select, delete, select

from grader_service.store import event_totals
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.one_by_one import one_by_one, tell
from grader_service.store.references import ENDED
from grader_service.store.regrade_tables import open_items
from grader_service.store.removal import empty_evidence, remove_submission
from grader_service.store.tables import EventRow, EvidenceRow, OutboxRow, RunRow, VerdictRow

_DAY_S = 86400.0
Step = Callable[[Store, float, int], int]
"""Removes at most so many rows that are older than so many days; returns how many.

Raises:
    RowsLeft: some could not be removed, and stay; all others were.
    StoreUnavailable: the database failed.
"""


def remove_answers(store: Store, days: float, most: int) -> int:
    """Answers that were delivered so long ago. Verdicts stay, and whoever asks again is answered again."""
    old = OutboxRow.delivered_at.is_not(None), OutboxRow.delivered_at < db_now() - days * _DAY_S
    chosen = select(OutboxRow.id).where(*old).order_by(OutboxRow.delivered_at)
    return _delete(store, OutboxRow, chosen, most)


def remove_events(store: Store, days: float, most: int) -> int:
    """Events that happened so long ago, and are counted in the totals."""
    with store.transaction() as connection:
        counted = event_totals.read(connection).last_event
    # The last one stays: SQLite gives the next one the id after the greatest that there is.
    old = EventRow.id < counted, EventRow.at < db_now() - days * _DAY_S
    return _delete(store, EventRow, select(EventRow.id).where(*old).order_by(EventRow.id), most)


def remove_evidence(store: Store, days: float, most: int) -> int:
    """Documents of evidence so old, of runs that are over, unless a batch of re-grades may yet judge from them."""
    chosen = (
        select(EvidenceRow.run_id)
        .join(RunRow, RunRow.run_id == EvidenceRow.run_id)
        .where(
            EvidenceRow.removed_at.is_(None),
            EvidenceRow.created_at < db_now() - days * _DAY_S,
            RunRow.state.in_(ENDED),
            ~open_items(RunRow.submission_id),
        )
        .order_by(EvidenceRow.created_at)
        .with_for_update(skip_locked=True, of=EvidenceRow)
    )
    return _each(store, chosen.limit(most), empty_evidence, "runs whose evidence is old enough to go")


def remove_verdicts(store: Store, days: float, most: int) -> int:
    """Submissions whose verdict in force is so old, with all that belongs to them, unless a batch has them in hand."""
    unfinished = select(RunRow.run_id).where(RunRow.submission_id == VerdictRow.submission_id)
    chosen = (
        select(VerdictRow.submission_id)
        .where(
            VerdictRow.current,
            VerdictRow.created_at < db_now() - days * _DAY_S,
            ~unfinished.where(RunRow.state.not_in(ENDED)).exists(),
            ~open_items(VerdictRow.submission_id),
        )
        .order_by(VerdictRow.created_at)
        .with_for_update(skip_locked=True)
    )
    return _each(store, chosen.limit(most), remove_submission, "submissions whose verdict is old enough to go")


def _delete(store: Store, table: type[OutboxRow | EventRow], chosen: Select[int], most: int) -> int:
    ids = chosen.limit(most).with_for_update(skip_locked=True)
    with store.transaction() as connection:
        return connection.execute(delete(table).where(table.id.in_(ids))).rowcount


def _each(store: Store, chosen: Select[str], act: Callable[[Connection, str], object], what: str) -> int:
    with store.transaction() as connection:
        names = connection.execute(chosen).scalars().all()
        left = one_by_one(connection, names, lambda name: act(connection, name), str)
    tell(left, what)
    return len(names)
