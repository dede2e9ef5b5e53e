"""Removes what has been kept for long enough, in steps that hold no lock for long; several may do it at once."""

from collections.abc import Callable, Collection
from itertools import takewhile

from sqlalchemy import Connection, Select, delete, select
from sqlalchemy.orm import InstrumentedAttribute

from grader_service.store import event_totals
from grader_service.store.clock import days_ago
from grader_service.store.engine import Store
from grader_service.store.one_by_one import one_by_one, tell
from grader_service.store.regrade_tables import open_items
from grader_service.store.removal import empty_evidence, hold_blobs, remove_submission
from grader_service.store.review_cases import open_case_of
from grader_service.store.tables import ENDED, EventRow, EvidenceRow, OutboxRow, RunRow, SubmissionRow, VerdictRow

Step = Callable[[Store, float, int, Collection[str]], int]
"""Removes at most so many rows that are older than so many days, but for those of these names; returns how many.

Raises:
    RowsLeft: some could not be removed, and stay; all others were.
    StoreUnavailable: the database failed.
"""


def remove_answers(store: Store, days: float, most: int, _: Collection[str] = ()) -> int:
    """Answers that were delivered so long ago. Verdicts stay, for answers to the same message."""
    old = OutboxRow.delivered_at.is_not(None), OutboxRow.delivered_at < days_ago(days)
    chosen = select(OutboxRow.id).where(*old).order_by(OutboxRow.delivered_at).limit(most)
    with store.transaction() as connection:
        ids = chosen.with_for_update(skip_locked=True)
        return connection.execute(delete(OutboxRow).where(OutboxRow.id.in_(ids))).rowcount


def remove_events(store: Store, days: float, most: int, _: Collection[str] = ()) -> int:
    """The first events, those that happened so long ago and are counted in the totals."""
    old = (EventRow.at < days_ago(days)).label("old")
    with store.transaction() as connection:
        # The last one stays: SQLite gives the next one the id after the greatest that there is.
        counted = EventRow.id < event_totals.read(connection).last_event
        rows = connection.execute(select(EventRow.id, old).where(counted).order_by(EventRow.id).limit(most))
        ids = [row.id for row in takewhile(lambda row: row.old, rows)]
        return connection.execute(delete(EventRow).where(EventRow.id.in_(ids))).rowcount


def remove_evidence(store: Store, days: float, most: int, leaving: Collection[str] = ()) -> int:
    """Documents of evidence so old, of runs that are over, unless a batch or a person may yet need them."""
    chosen = (
        select(EvidenceRow.run_id)
        .join(RunRow, RunRow.run_id == EvidenceRow.run_id)
        .join(SubmissionRow, SubmissionRow.submission_id == RunRow.submission_id)
        .where(
            EvidenceRow.removed_at.is_(None),
            EvidenceRow.created_at < days_ago(days),
            EvidenceRow.run_id.not_in(leaving),
            RunRow.state.in_(ENDED),
            ~open_items(RunRow.submission_id),
            ~open_case_of(RunRow.submission_id),
        )
        .order_by(EvidenceRow.created_at)
    )
    return _each(store, chosen.limit(most), RunRow.run_id, empty_evidence, "runs whose evidence is old enough to go")


def remove_verdicts(store: Store, days: float, most: int, leaving: Collection[str] = ()) -> int:
    """Submissions whose verdict in force is so old, with all that belongs to them, unless a batch has them in hand."""
    unfinished = select(RunRow.run_id).where(RunRow.submission_id == VerdictRow.submission_id)
    chosen = (
        select(SubmissionRow.submission_id)
        .join(VerdictRow, VerdictRow.submission_id == SubmissionRow.submission_id)
        .where(
            VerdictRow.current,
            VerdictRow.created_at < days_ago(days),
            VerdictRow.submission_id.not_in(leaving),
            ~unfinished.where(RunRow.state.not_in(ENDED)).exists(),
            ~open_items(VerdictRow.submission_id),
        )
        .order_by(VerdictRow.created_at)
    )
    what = "submissions whose verdict is old enough to go"
    return _each(store, chosen.limit(most), RunRow.submission_id, remove_submission, what)


def _each(
    store: Store,
    chosen: Select[str],
    named: InstrumentedAttribute[str],
    act: Callable[[Connection, str], object],
    what: str,
) -> int:
    """Removes each of what is chosen, whose name stands in this column of its runs."""
    with store.transaction() as connection:
        # Submissions are held first, as by repeated messages and by judges; those in use are passed over.
        held = chosen.with_for_update(skip_locked=True, of=SubmissionRow)
        names = connection.execute(held).scalars().all()
        hold_blobs(connection, named.in_(names))
        left = one_by_one(connection, names, lambda name: act(connection, name), str)
    tell(left, what, len(names) - len(left))
    return len(names)
