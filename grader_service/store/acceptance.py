"""Accepts submissions: one transaction, and the same id with the same content means the same submission."""

import hashlib
import json
import uuid
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from grader_service.model.evidence import RunPlan
from grader_service.model.submission import Submission
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.outbox import enqueue
from grader_service.store.submissions import hold_submission
from grader_service.store.tables import RunRow, RunState, SubmissionRow, VerdictRow, WaiterRow

Purpose = Literal["live", "regrade"]
PRIORITY: dict[Purpose, int] = {"live": 0, "regrade": 9}


@dataclass(frozen=True)
class Waiter:
    """Who waits for the verdict."""

    task_id: str | None = None
    reply_queue: str | None = None
    reply_task: str | None = None


@dataclass(frozen=True)
class Accepted:
    """The submission is stored and its run queued."""

    run_id: str


@dataclass(frozen=True)
class Repeated:
    """The same submission was accepted before; the waiter gets its verdict, now or when it is there."""

    run_id: str
    verdict_id: str | None


@dataclass(frozen=True)
class Conflicting:
    """The id was used for other content."""

    first_sha256: str


@dataclass(frozen=True)
class Refused:
    """Not taken for now; nothing was stored."""

    code: str
    feedback: str


@dataclass(frozen=True)
class IntakeLimits:
    """What intake takes."""

    max_queued: int = 20_000
    """Runs waiting; beyond that the platform is told to come back."""
    learner_per_hour: int = 60
    """Submissions of one learner."""


def content_key(submission: Submission) -> str:
    """What must be equal for the same id to mean the same submission."""
    text = json.dumps([submission.lab, sorted(submission.steps), submission.sha256])
    return hashlib.sha256(text.encode()).hexdigest()


def accept(
    store: Store,
    submission: Submission,
    plan: RunPlan,
    purpose: Purpose,
    waiter: Waiter,
    limits: IntakeLimits,
    actor: str,
) -> Accepted | Repeated | Conflicting | Refused:
    """Stores a submission and queues its run, once, however often the message comes.

    Raises:
        StoreUnavailable: the database failed; nothing was stored, and the message should come again.
    """
    try:
        with store.transaction() as connection:
            return _accept(connection, submission, plan, purpose, waiter, limits, actor)
    except IntegrityError:
        # The same id came twice at once; the other transaction won, so this one is a repetition.
        with store.transaction() as connection:
            return _accept(connection, submission, plan, purpose, waiter, limits, actor)


def _accept(
    connection: Connection,
    submission: Submission,
    plan: RunPlan,
    purpose: Purpose,
    waiter: Waiter,
    limits: IntakeLimits,
    actor: str,
) -> Accepted | Repeated | Conflicting | Refused:
    key = content_key(submission)
    known = connection.execute(
        select(SubmissionRow.content_key, SubmissionRow.sha256).where(
            SubmissionRow.submission_id == submission.submission_id
        )
    ).one_or_none()
    if known is not None:
        if known.content_key != key:
            return Conflicting(known.sha256)
        return _repeat(connection, submission.submission_id, waiter, actor)
    if (refusal := _refusal(connection, submission, limits)) is not None:
        return refusal
    connection.execute(
        insert(SubmissionRow).values(
            submission_id=submission.submission_id,
            lab=submission.lab,
            learner=submission.learner,
            cohort=submission.cohort,
            submitted_at=submission.submitted_at.timestamp() if submission.submitted_at else None,
            received_at=db_now(),
            filename=submission.filename,
            sha256=submission.sha256,
            size_bytes=submission.size_bytes,
            steps=list(submission.steps),
            content_key=key,
            queue=purpose,
        )
    )
    run_id = queue_run(connection, submission.submission_id, submission.learner, plan, purpose)
    add_waiter(connection, submission.submission_id, waiter)
    record(connection, "accepted", actor, submission_id=submission.submission_id, run_id=run_id, purpose=purpose)
    return Accepted(run_id)


def queue_run(connection: Connection, submission_id: str, learner: str | None, plan: RunPlan, purpose: Purpose) -> str:
    """Adds a run that waits for a runner; returns its id."""
    run_id = uuid.uuid4().hex
    connection.execute(
        insert(RunRow).values(
            run_id=run_id,
            submission_id=submission_id,
            learner=learner,
            purpose=purpose,
            priority=PRIORITY[purpose],
            state=RunState.RUN_QUEUED.value,
            plan=plan.model_dump(mode="json"),
            fence=0,
            attempts=0,
            not_before=db_now(),
            created_at=db_now(),
        )
    )
    return run_id


def add_waiter(connection: Connection, submission_id: str, waiter: Waiter) -> None:
    """Remembers who wants the verdict."""
    if waiter.task_id is not None or waiter.reply_queue is not None:
        connection.execute(
            insert(WaiterRow).values(
                submission_id=submission_id,
                task_id=waiter.task_id,
                reply_queue=waiter.reply_queue,
                reply_task=waiter.reply_task,
                created_at=db_now(),
            )
        )


def _repeat(connection: Connection, submission_id: str, waiter: Waiter, actor: str) -> Repeated:
    hold_submission(connection, submission_id)  # a verdict that comes now sees this waiter, or is seen here
    run_id = connection.execute(
        select(RunRow.run_id).where(RunRow.submission_id == submission_id).order_by(RunRow.created_at.desc()).limit(1)
    ).scalar_one()
    verdict_id = connection.execute(
        select(VerdictRow.verdict_id).where(VerdictRow.submission_id == submission_id, VerdictRow.current)
    ).scalar_one_or_none()
    if verdict_id is not None:
        enqueue(connection, verdict_id, waiter.task_id, waiter.reply_queue, waiter.reply_task)
    elif not _already_waits(connection, submission_id, waiter):
        add_waiter(connection, submission_id, waiter)
    record(connection, "repeated", actor, submission_id=submission_id, run_id=run_id)
    return Repeated(run_id, verdict_id)


def _already_waits(connection: Connection, submission_id: str, waiter: Waiter) -> bool:
    """Whether this very message was seen: a broker may deliver one twice."""
    return bool(
        connection.execute(
            select(func.count())
            .select_from(WaiterRow)
            .where(
                WaiterRow.submission_id == submission_id,
                WaiterRow.task_id.is_not_distinct_from(waiter.task_id),
                WaiterRow.reply_queue.is_not_distinct_from(waiter.reply_queue),
                WaiterRow.reply_task.is_not_distinct_from(waiter.reply_task),
            )
        ).scalar_one()
    )


def _refusal(connection: Connection, submission: Submission, limits: IntakeLimits) -> Refused | None:
    # Counting stops at the limit: a full queue costs no more than a fair-sized one.
    waiting = connection.execute(
        select(func.count()).select_from(
            select(RunRow.run_id).where(RunRow.state == RunState.RUN_QUEUED.value).limit(limits.max_queued).subquery()
        )
    ).scalar_one()
    if waiting >= limits.max_queued:
        return Refused(
            "queue.full",
            f"{waiting} submissions are waiting, which is as many as are taken. This one was not stored and does not "
            "count as an attempt: send it again later.",
        )
    if submission.learner is not None:
        recent = connection.execute(
            select(func.count())
            .select_from(SubmissionRow)
            .where(SubmissionRow.learner == submission.learner, SubmissionRow.received_at > db_now() - 3600.0)
        ).scalar_one()
        if recent >= limits.learner_per_hour:
            return Refused(
                "queue.rate_limited",
                f"{recent} submissions of this learner came within the last hour; at most {limits.learner_per_hour} "
                "are taken. This one was not stored and does not count as an attempt: send it again later.",
            )
    return None
