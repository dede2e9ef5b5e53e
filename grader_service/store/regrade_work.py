"""Work on running batches: items are claimed by the dozen, judged, and stored in one transaction."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, insert, select, update

from grader_service.model.base import neutralise
from grader_service.model.regrade import BatchState, ItemState, Level
from grader_service.model.review import Reviews
from grader_service.model.submission import Submission
from grader_service.model.verdict import Verdict
from grader_service.model.verdict_summary import VerdictSummary, summary_of
from grader_service.retry_policy import GiveUp, Retry, RetryPolicy
from grader_service.store.clock import db_now
from grader_service.store.engine import SCHEMA, Store, oldest_version
from grader_service.store.events import record
from grader_service.store.one_by_one import one_by_one, tell
from grader_service.store.regrade_items import differs, settle
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow, in_states
from grader_service.store.results import EvidenceKind
from grader_service.store.review_cases import decisions_on, open_cases
from grader_service.store.submissions import submission_from
from grader_service.store.tables import EvidenceRow, SubmissionRow, VerdictRow, table_of
from grader_service.store.verdict_rows import verdict_values

_EXPIRED = 500


@dataclass(frozen=True)
class Job:
    """One item to judge, with everything that judging it needs."""

    item_id: int
    attempts: int
    submission: Submission
    run_id: str
    base_verdict_id: str
    base_summary: str
    """`VerdictSummary` as JSON."""
    kind: EvidenceKind | None
    """Null when the evidence is gone; so are the next two."""
    sha256: str | None
    document: bytes | None
    """Compressed, as it lies in the store."""
    reviews: Reviews = field(default_factory=Reviews)
    """What people decided about the submission; gets what judging leaves to one."""

    @cached_property
    def base(self) -> VerdictSummary:
        """What the verdict from before says.

        Raises:
            ValueError: it cannot be read.
        """
        return VerdictSummary.model_validate_json(self.base_summary)


@dataclass(frozen=True)
class Chunk:
    """The right to work on some items of a batch, until it expires or another worker claims them."""

    batch_id: str
    token: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Answer:
    """What became of a job: a verdict, or our failure."""

    job: Job
    verdict: Verdict | None
    error: str = ""
    again: bool = True


def claim_chunk(store: Store, owner: str, lease_s: float, limit: int) -> Chunk | None:
    """Claims items to judge, of the batch that was started first; None when nothing waits.

    An item that failed before comes last and alone: should it kill its process, no other loses a try with it.

    Raises:
        StoreUnavailable: the database failed.
    """
    token = f"{owner}/{uuid.uuid4().hex[:12]}"
    with store.transaction() as connection:
        if oldest_version(connection) > SCHEMA:
            return None  # as in `leases.claim`
        for batch_id in running(connection):
            jobs = _claim(connection, batch_id, token, lease_s, limit)
            if jobs:
                return Chunk(batch_id, token, tuple(jobs))
    return None


def running(connection: Connection, *, hold: bool = False) -> Sequence[str]:
    """Batches that workers may take, in the order in which they were started.

    Args:
        hold: until it ends, none of them is paused or ended.
    """
    statement = (
        select(RegradeBatchRow.batch_id)
        .where(RegradeBatchRow.state == BatchState.RUNNING.value)
        .order_by(RegradeBatchRow.started_at)
    )
    if hold:
        statement = statement.with_for_update(read=True)
    return connection.execute(statement).scalars().all()


def _claim(connection: Connection, batch_id: str, token: str, lease_s: float, limit: int) -> list[Job]:
    ids = _due(connection, batch_id, RegradeItemRow.attempts == 0, limit)
    ids = ids or _due(connection, batch_id, RegradeItemRow.attempts > 0, 1)
    if not ids:
        return []
    connection.execute(
        update(RegradeItemRow)
        .where(RegradeItemRow.id.in_(ids))
        .values(state=ItemState.WORKING.value, lease_owner=token, lease_until=db_now() + lease_s)
    )
    return _jobs(connection, ids)


def _due(connection: Connection, batch_id: str, which: ColumnElement[bool], limit: int) -> Sequence[int]:
    waiting = (
        select(RegradeItemRow.id)
        .where(
            RegradeItemRow.batch_id == batch_id,
            in_states(ItemState.WAITING),
            RegradeItemRow.level == Level.JUDGE.value,
            RegradeItemRow.not_before <= db_now(),
            which,
        )
        .order_by(RegradeItemRow.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return connection.execute(waiting).scalars().all()


def _jobs(connection: Connection, ids: Sequence[int]) -> list[Job]:
    item, verdict, evidence = table_of(RegradeItemRow), table_of(VerdictRow), table_of(EvidenceRow)
    rows = (
        connection.execute(
            select(
                item.c.id,
                item.c.attempts,
                item.c.base_verdict_id,
                item.c.base_run_id,
                verdict.c.summary,
                evidence.c.kind,
                evidence.c.sha256.label("evidence_sha256"),
                evidence.c.document,
                table_of(SubmissionRow),
            )
            .select_from(
                item.join(table_of(SubmissionRow), SubmissionRow.submission_id == item.c.submission_id)
                .join(verdict, verdict.c.verdict_id == item.c.base_verdict_id)
                .join(
                    evidence,
                    (evidence.c.run_id == item.c.base_run_id) & evidence.c.removed_at.is_(None),
                    isouter=True,
                )
            )
            .where(item.c.id.in_(ids))
            .order_by(item.c.id)
        )
        .mappings()
        .all()
    )
    decided = decisions_on(connection, [row["submission_id"] for row in rows])
    return [
        Job(
            item_id=row["id"],
            attempts=row["attempts"],
            submission=submission_from(row),
            run_id=row["base_run_id"],
            base_verdict_id=row["base_verdict_id"],
            base_summary=row["summary"],
            kind=row["kind"],
            sha256=row["evidence_sha256"],
            document=row["document"],
            reviews=Reviews(decided.get(row["submission_id"], {})),
        )
        for row in rows
    ]


def renew_chunk(store: Store, chunk: Chunk, lease_s: float) -> bool:
    """Extends the lease; False when none of its items is ours any more."""
    with store.transaction() as connection:
        done = connection.execute(
            update(RegradeItemRow).where(*_held(chunk, chunk.jobs)).values(lease_until=db_now() + lease_s)
        )
        return bool(done.rowcount)


def give_back(store: Store, chunk: Chunk, jobs: Sequence[Job]) -> None:
    """Puts items back untouched: a worker that is told to stop returns what it has not begun."""
    with store.transaction() as connection:
        connection.execute(
            update(RegradeItemRow)
            .where(*_held(chunk, jobs))
            .values(state=ItemState.WAITING.value, lease_owner=None, lease_until=None)
        )


def store_answers(store: Store, chunk: Chunk, answers: Sequence[Answer], policy: RetryPolicy) -> int:
    """Stages verdicts and notes infrastructure failures, in one transaction; returns how many items were still ours."""
    with store.transaction() as connection:
        # The batch before its items, as operators' actions lock them.
        connection.execute(
            select(RegradeBatchRow.batch_id).where(RegradeBatchRow.batch_id == chunk.batch_id).with_for_update()
        )
        held = set(
            connection.execute(
                select(RegradeItemRow.id)
                .where(*_held(chunk, [answer.job for answer in answers]))
                .order_by(RegradeItemRow.id)
                .with_for_update()
            ).scalars()
        )
        ours = [answer for answer in answers if answer.job.item_id in held]
        _finish(connection, chunk.batch_id, ours)
        for answer in ours:
            if answer.verdict is None:
                job, attempts = answer.job, answer.job.attempts + 1
                _failed(
                    connection,
                    policy.decide(attempts, retryable=answer.again),
                    attempts,
                    item_id=job.item_id,
                    submission_id=job.submission.submission_id,
                    batch_id=chunk.batch_id,
                    owner=chunk.token,
                    error=answer.error,
                )
        settle(connection, chunk.batch_id, chunk.token)
        return len(ours)


def _finish(connection: Connection, batch_id: str, answers: Sequence[Answer]) -> None:
    verdicts: list[dict[str, Any]] = []
    finished: list[dict[str, Any]] = []
    for answer in answers:
        if answer.verdict is None:
            continue
        job, summary = answer.job, summary_of(answer.verdict)
        verdicts.append(
            verdict_values(
                answer.verdict,
                summary,
                run_id=job.run_id,
                current=False,
                supersedes=job.base_verdict_id,
                batch_id=batch_id,
            )
        )
        finished.append({"key": job.item_id, "made": answer.verdict.verdict_id, "differs": differs(job.base, summary)})
    if not verdicts:
        return
    connection.execute(insert(table_of(VerdictRow)).values(created_at=db_now()), verdicts)
    for answer in answers:
        if answer.verdict is not None:
            open_cases(connection, answer.verdict, answer.job.base_verdict_id, answer.job.reviews.seen)
    item = table_of(RegradeItemRow)
    connection.execute(
        update(item)
        .where(item.c.id == bindparam("key"))
        .values(
            state=ItemState.DONE.value,
            verdict_id=bindparam("made"),
            changed=bindparam("differs"),
            lease_owner=None,
            lease_until=None,
            last_error=None,
            finished_at=db_now(),
        ),
        finished,
    )


def _failed(
    connection: Connection,
    decision: Retry | GiveUp,
    attempts: int,
    *,
    item_id: int,
    submission_id: str,
    batch_id: str,
    owner: str,
    error: str,
) -> None:
    """The item waits for another try, or for an operator."""
    state, changes = ItemState.NEEDS_ATTENTION, {}
    if isinstance(decision, Retry):
        state, changes = ItemState.WAITING, {"not_before": db_now() + decision.after_s}
    connection.execute(
        update(RegradeItemRow)
        .where(RegradeItemRow.id == item_id)
        .values(
            **changes,
            state=state.value,
            attempts=attempts,
            lease_owner=None,
            lease_until=None,
            last_error=neutralise(error[:4000]),
        )
    )
    record(
        connection,
        "regrade_needs_attention" if state is ItemState.NEEDS_ATTENTION else "regrade_failed_by_us",
        owner,
        submission_id=submission_id,
        batch_id=batch_id,
        attempts=attempts,
        error=neutralise(error[:1000]),
    )


def expire_items(store: Store, policy: RetryPolicy) -> int:
    """Takes back items whose worker is gone; returns how many. Bounded tries, then an operator's attention.

    Raises:
        RowsLeft: some could not be taken back; all others were.
        StoreUnavailable: the database failed.
    """
    expired = (
        select(
            RegradeItemRow.id,
            RegradeItemRow.submission_id,
            RegradeItemRow.batch_id,
            RegradeItemRow.lease_owner,
            RegradeItemRow.attempts,
        )
        .where(RegradeItemRow.lease_until.is_not(None), RegradeItemRow.lease_until < db_now())
        .limit(_EXPIRED)
        .with_for_update(skip_locked=True)
    )
    with store.transaction() as connection:
        rows = connection.execute(expired).all()

        def take_back(row: Row[Any]) -> None:
            owner = row.lease_owner or "unknown"
            error = f"{owner} stopped renewing its lease while judging"
            attempts = row.attempts + 1
            item = {"item_id": row.id, "submission_id": row.submission_id, "batch_id": row.batch_id}
            _failed(connection, policy.decide(attempts), attempts, **item, owner=owner, error=error)

        left = one_by_one(connection, rows, take_back, lambda row: row.id)
    tell(left, "items of re-grades whose lease ended")
    return len(rows)


def settle_all(store: Store, actor: str) -> int:
    """Ends running batches that have nothing left to do, which two workers who finish at once may miss; how many.

    Raises:
        RowsLeft: some could not be ended; all others were.
        StoreUnavailable: the database failed.
    """
    ended = []
    with store.transaction() as connection:
        left = one_by_one(
            connection,
            running(connection),
            lambda batch_id: ended.append(settle(connection, batch_id, actor)),
            str,
        )
    tell(left, "running batches")
    return sum(ended)


def _held(chunk: Chunk, jobs: Sequence[Job]) -> tuple[Any, ...]:
    """Conditions under which this lease may still write."""
    return (
        RegradeItemRow.id.in_([job.item_id for job in jobs]),
        RegradeItemRow.lease_owner == chunk.token,
        RegradeItemRow.state == ItemState.WORKING.value,
    )
