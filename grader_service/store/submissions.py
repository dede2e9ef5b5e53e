"""Reads stored submissions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, tuple_

from grader_service.errors import InfrastructureError
from grader_service.model.submission import Submission
from grader_service.store.engine import Store
from grader_service.store.tables import RunRow, RunState, SubmissionRow


@dataclass(frozen=True)
class ProgressTo:
    """Where a platform wants to be told how far a submission is."""

    queue: str
    task: str


def load_submission(store: Store, submission_id: str) -> Submission:
    """A stored submission.

    Raises:
        InfrastructureError: there is none with this id.
    """
    statement = select(SubmissionRow.__table__).where(SubmissionRow.submission_id == submission_id)
    with store.transaction() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise InfrastructureError(f"submission {submission_id} is not in the store")
    return submission_from(row)


def progress_to(store: Store, submission_id: str, run_id: str) -> ProgressTo | None:
    """Where to tell how far a run is; None where nobody asked, or this submission has no such run under way.

    Raises:
        StoreUnavailable: the database failed.
    """
    statement = (
        select(SubmissionRow.progress_queue, SubmissionRow.progress_task)
        .join(RunRow, RunRow.submission_id == SubmissionRow.submission_id)
        .where(
            SubmissionRow.submission_id == submission_id,
            RunRow.run_id == run_id,
            RunRow.state == RunState.RUNNING.value,
        )
    )
    with store.transaction() as connection:
        row = connection.execute(statement).one_or_none()
    return None if row is None or row.progress_queue is None else ProgressTo(row.progress_queue, row.progress_task)


def handed_in_after(later: Any, earlier: Any) -> ColumnElement[bool]:
    """Whether one submission was handed in after another: by the platform's time where it gave one, else by ours.

    A submission that was refused for a full queue and sent again comes in late, and was handed in when it was.

    Both are columns of the table of submissions, perhaps under an alias.
    """
    times = [tuple_(func.coalesce(one.submitted_at, one.received_at), one.submission_id) for one in (later, earlier)]
    return times[0] > times[1]


def submission_from(row: Mapping[Any, Any]) -> Submission:
    """The submission in a row of its table."""
    return Submission(
        submission_id=row["submission_id"],
        lab=row["lab"],
        learner=row["learner"],
        cohort=row["cohort"],
        filename=row["filename"],
        sha256=row["sha256"],
        size_bytes=row["size_bytes"],
        steps=tuple(row["steps"]),
    )


def hold_submission(connection: Connection, submission_id: str) -> None:
    """Until the transaction ends nobody else may add a waiter or a verdict to this submission."""
    connection.execute(
        select(SubmissionRow.submission_id)
        .where(SubmissionRow.submission_id == submission_id)
        .with_for_update(key_share=True)
    )
