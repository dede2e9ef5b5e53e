"""Accepts submissions: one transaction, and the same id with the same content means the same submission."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from grader_service.model.evidence import RunPlan
from grader_service.model.submission import Submission
from grader_service.store.admission import Admitted, Conflicting, Content, Door, IntakeLimits, Refused, Wanted
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record, record_all
from grader_service.store.outbox import Waiter, enqueue
from grader_service.store.submissions import ProgressTo, hold_submission
from grader_service.store.tables import (
    PREFLIGHT,
    PRIORITY,
    Purpose,
    RunRow,
    RunState,
    SubmissionRow,
    VerdictRow,
    WaiterRow,
    table_of,
)


@dataclass(frozen=True)
class Accepted:
    """The submission is stored and its run queued."""

    run_id: str


@dataclass(frozen=True)
class Repeated:
    """The same submission was accepted before; the waiter gets its verdict, now or when it is there."""

    run_id: str
    verdict_id: str | None


Outcome = Accepted | Repeated | Conflicting | Refused


@dataclass(frozen=True)
class Arrival:
    """A submission at the door."""

    submission: Submission
    plan: RunPlan
    purpose: Purpose
    waiter: Waiter
    progress_to: ProgressTo | None = None
    """That of the message that comes first stands."""

    @property
    def wanted(self) -> Wanted:
        """By what it is let in."""
        content = Content.of(self.submission, preflight=self.purpose == PREFLIGHT)
        return Wanted(self.submission.submission_id, content, self.submission.learner)


def accept_all(store: Store, arrivals: Sequence[Arrival], limits: IntakeLimits, actor: str) -> list[Outcome]:
    """Stores submissions and queues their runs, each once, however often its message comes.

    One transaction; an outcome for each, in their order.

    Raises:
        StoreUnavailable: the database failed; none was stored, and the messages should come again.
    """
    try:
        with store.transaction() as connection:
            return _accept_all(connection, arrivals, limits, actor)
    except IntegrityError:
        if len(arrivals) == 1:
            # The same id came twice at once; the other transaction won, so this one is a repetition.
            with store.transaction() as connection:
                return _accept_all(connection, arrivals, limits, actor)
        return [accept_all(store, [arrival], limits, actor)[0] for arrival in arrivals]


def _accept_all(connection: Connection, arrivals: Sequence[Arrival], limits: IntakeLimits, actor: str) -> list[Outcome]:
    door = Door(connection, [arrival.wanted for arrival in arrivals], limits)
    outcomes: list[Outcome | None] = [None] * len(arrivals)
    new: list[tuple[str, Arrival]] = []
    for number, arrival in enumerate(arrivals):
        match door.decide(arrival.wanted):
            case Admitted.NEW:
                run_id = uuid.uuid4().hex
                new.append((run_id, arrival))
                outcomes[number] = Accepted(run_id)
            case Conflicting() | Refused() as decision:
                outcomes[number] = decision
    _insert(connection, new, door, actor)
    for number, arrival in sorted(enumerate(arrivals), key=lambda item: item[1].submission.submission_id):
        if outcomes[number] is None:  # repetitions lock their submission, again in the order of the ids
            outcomes[number] = _repeat(connection, arrival.submission.submission_id, arrival.waiter, actor)
    return [outcome for outcome in outcomes if outcome is not None]


def _insert(connection: Connection, new: Sequence[tuple[str, Arrival]], door: Door, actor: str) -> None:
    """Submissions, runs, waiters and events of those that are new; one statement for each table."""
    if not new:
        return
    # In the order of their ids, so that two batches with the same ones never wait for each other in a circle; the order
    # of arrival, which decides who comes next, is kept in their times: one reading of the clock, a microsecond apart.
    now = connection.execute(select(db_now())).scalar_one()
    came = {run_id: now + number * 1e-6 for number, (run_id, _) in enumerate(new)}
    new = sorted(new, key=lambda item: item[1].submission.submission_id)
    runs, waiting = [], []
    for run_id, arrival in new:
        one, at = arrival.submission, came[run_id]
        run = run_row(run_id, one.submission_id, one.learner, one.cohort, arrival.plan, arrival.purpose)
        runs.append({**run, "created_at": at, "turn": max(at, door.end_of_line(one.learner))})
        if arrival.waiter.waits:
            waiting.append({"submission_id": one.submission_id, **vars(arrival.waiter)})
    connection.execute(
        insert(table_of(SubmissionRow)),
        [{"received_at": came[run_id]} | _submission_row(arrival) for run_id, arrival in new],
    )
    connection.execute(insert(table_of(RunRow)).values(not_before=db_now()), runs)
    if waiting:
        connection.execute(insert(table_of(WaiterRow)).values(created_at=db_now()), waiting)
    record_all(
        connection,
        "accepted",
        actor,
        [(arrival.submission.submission_id, run_id, {"purpose": arrival.purpose}) for run_id, arrival in new],
    )


def _submission_row(arrival: Arrival) -> dict[str, Any]:
    submission = arrival.submission
    return {
        **dict(submission),
        "submitted_at": submission.submitted_at.timestamp() if submission.submitted_at else None,
        "steps": list(submission.steps),
        "content_key": arrival.wanted.content.key,
        "queue": arrival.purpose,
        "progress_queue": arrival.progress_to.queue if arrival.progress_to else None,
        "progress_task": arrival.progress_to.task if arrival.progress_to else None,
    }


def run_row(
    run_id: str, submission_id: str, learner: str | None, cohort: str | None, plan: RunPlan, purpose: Purpose
) -> dict[str, Any]:
    """What the row of a run says that waits for a runner, but for times."""
    return {
        "run_id": run_id,
        "submission_id": submission_id,
        "learner": learner,
        "cohort": cohort or "",
        "purpose": purpose,
        "priority": PRIORITY[purpose],
        "state": RunState.RUN_QUEUED.value,
        "plan": plan.model_dump(mode="json"),
        "fence": 0,
        "attempts": 0,
    }


def _repeat(connection: Connection, submission_id: str, waiter: Waiter, actor: str) -> Repeated:
    hold_submission(connection, submission_id)  # a verdict that comes now sees this waiter, or is seen here
    run_id = connection.execute(
        select(RunRow.run_id).where(RunRow.submission_id == submission_id).order_by(RunRow.created_at.desc()).limit(1)
    ).scalar_one()
    verdict_id = connection.execute(
        select(VerdictRow.verdict_id).where(VerdictRow.submission_id == submission_id, VerdictRow.current)
    ).scalar_one_or_none()
    if verdict_id is not None:
        enqueue(connection, verdict_id, waiter)
    elif waiter.waits and not _already_waits(connection, submission_id, waiter):
        values = {"submission_id": submission_id, **vars(waiter), "created_at": db_now()}
        connection.execute(insert(WaiterRow).values(**values))
    record(connection, "repeated", actor, submission_id=submission_id, run_id=run_id)
    return Repeated(run_id, verdict_id)


def _already_waits(connection: Connection, submission_id: str, waiter: Waiter) -> bool:
    """Whether this very message was seen: a broker may deliver one twice."""
    same = [table_of(WaiterRow).c[name].is_not_distinct_from(value) for name, value in vars(waiter).items()]
    found = select(WaiterRow.id).where(WaiterRow.submission_id == submission_id, *same).limit(1)
    return connection.execute(found).first() is not None
