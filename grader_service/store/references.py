"""Which artifacts something refers to: submissions to theirs, runs that are not done to the sources of their probes."""

import json
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, Text, cast, or_, select, update

from grader_service.store.clock import days_ago, db_now
from grader_service.store.engine import Store
from grader_service.store.regrade_tables import open_items
from grader_service.store.tables import ENDED, RunRow, SubmissionRow

_AT_ONCE = 1000


def unreferenced(store: Store, digests: Collection[str], *, days: float = 0.0) -> set[str]:
    """Those of these artifacts to which nothing refers; submissions that lose theirs by it say so from now on.

    Args:
        digests: SHA-256 each.
        days: a submission refers to its artifact for so long after it came, and for as long as it is graded, or a batch
            of re-grades that may yet run it is not ended; 0 for ever.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        theirs = SubmissionRow.sha256.in_(digests) & SubmissionRow.artifact_removed_at.is_(None)
        needs = theirs
        if days:
            running = RunRow.submission_id == SubmissionRow.submission_id, RunRow.state.not_in(ENDED)
            needs &= or_(
                SubmissionRow.received_at > days_ago(days),
                select(RunRow.run_id).where(*running).exists(),
                open_items(SubmissionRow.submission_id),
            )
        left = set(digests) - set(connection.execute(select(SubmissionRow.sha256).where(needs).distinct()).scalars())
        if left:
            left -= _sources(connection)
        if days:
            gone = update(SubmissionRow).where(theirs, ~needs, SubmissionRow.sha256.in_(left))
            connection.execute(gone.values(artifact_removed_at=db_now()))
    return left


def referred(connection: Connection) -> set[str]:
    """SHA-256 of each artifact to which something refers."""
    kept = select(SubmissionRow.sha256).where(SubmissionRow.artifact_removed_at.is_(None)).distinct()
    return {*connection.execute(kept).scalars(), *_sources(connection)}


def lost(store: Store, digests: Sequence[str]) -> None:
    """Says of submissions that these artifacts of theirs are gone.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        for first in range(0, len(digests), _AT_ONCE):
            theirs = SubmissionRow.sha256.in_(digests[first : first + _AT_ONCE])
            gone = update(SubmissionRow).where(theirs, SubmissionRow.artifact_removed_at.is_(None))
            connection.execute(gone.values(artifact_removed_at=db_now()))


def with_artifact(store: Store, submission_ids: Sequence[str]) -> list[str]:
    """Those of these submissions whose artifacts are kept, in the same order.

    Raises:
        StoreUnavailable: the database failed.
    """
    gone: set[str] = set()
    with store.transaction() as connection:
        for first in range(0, len(submission_ids), _AT_ONCE):
            page = SubmissionRow.submission_id.in_(submission_ids[first : first + _AT_ONCE])
            without = select(SubmissionRow.submission_id).where(page, SubmissionRow.artifact_removed_at.is_not(None))
            gone |= set(connection.execute(without).scalars())
    return [submission_id for submission_id in submission_ids if submission_id not in gone]


def _sources(connection: Connection) -> set[str]:
    """SHA-256 of the source of each probe of a run that is not done."""
    plans = select(cast(RunRow.plan, Text)).where(RunRow.state.not_in(ENDED)).distinct()
    found = connection.execute(plans).scalars()
    return {probe["sha256"] for plan in found for probe in json.loads(plan).get("probes", ())}
