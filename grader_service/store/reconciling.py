"""What became of submissions, as a platform asks that keeps a list of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select

from grader_service.store.engine import Store
from grader_service.store.tables import RunRow, RunState, SubmissionRow, VerdictRow

State = Literal["unknown", "differs", "waiting", "needs_attention", "answered"]
"""`unknown` never arrived, or was refused; `differs` was accepted with other bytes than the platform names."""
_AT_ONCE = 500
_LONGEST = 128
"""Of ids; no other one was ever accepted."""


@dataclass(frozen=True)
class Arrival:
    """What became of one submission."""

    submission_id: str
    state: State
    verdict_id: str | None = None
    """Of the verdict in force."""
    status: str | None = None


def reconcile(store: Store, asked: Mapping[str, str | None]) -> list[Arrival]:
    """Says of each submission what became of it, in the order asked for.

    Args:
        asked: ids, each with the SHA-256 of what was handed in, hexadecimal, or None.

    Raises:
        StoreUnavailable: the database failed.
    """
    ids = [one for one in asked if len(one) <= _LONGEST and one.isprintable()]
    found: dict[str, Arrival] = {}
    for start in range(0, len(ids), _AT_ONCE):
        found |= _some(store, asked, ids[start : start + _AT_ONCE])
    return [found.get(one) or Arrival(one, "unknown") for one in asked]


def _some(store: Store, asked: Mapping[str, str | None], ids: Sequence[str]) -> dict[str, Arrival]:
    submissions = (
        select(SubmissionRow.submission_id, SubmissionRow.sha256, VerdictRow.verdict_id, VerdictRow.status)
        .join(VerdictRow, (VerdictRow.submission_id == SubmissionRow.submission_id) & VerdictRow.current, isouter=True)
        .where(SubmissionRow.submission_id.in_(ids))
    )
    stuck = select(RunRow.submission_id).where(
        RunRow.submission_id.in_(ids),
        RunRow.state == RunState.NEEDS_ATTENTION.value,
    )
    with store.transaction() as connection:
        rows = connection.execute(submissions).all()
        dead_lettered = set(connection.execute(stuck).scalars())
    found = {}
    for row in rows:
        state: State = "answered"
        if (asked[row.submission_id] or row.sha256) != row.sha256:
            state = "differs"
        elif row.verdict_id is None:
            state = "needs_attention" if row.submission_id in dead_lettered else "waiting"
        found[row.submission_id] = Arrival(row.submission_id, state, row.verdict_id, row.status)
    return found
