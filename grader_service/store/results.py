"""Stores what runs and judges produce; each write counts only while its lease holds."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, insert, literal, select, update

from grader_service.errors import InfrastructureError
from grader_service.model.review import Reviews
from grader_service.model.verdict import Mode, Status, Verdict
from grader_service.model.verdict_summary import summary_of
from grader_service.store import regrade_items
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record_of
from grader_service.store.fairness import charge, held_s, stand_behind
from grader_service.store.lease import Lease
from grader_service.store.leases import held
from grader_service.store.outbox import Waiter, enqueue
from grader_service.store.retention_tables import EvidenceBlobRow
from grader_service.store.review_cases import open_cases
from grader_service.store.submissions import hold_submission
from grader_service.store.tables import (
    BlobRow,
    EvidenceRow,
    RunRow,
    RunState,
    VerdictRow,
    WaiterRow,
    insert_into,
    table_of,
)
from grader_service.store.verdict_rows import costs_of, verdict_values

EvidenceKind = Literal["evidence", "measured", "rejection"]
"""`measured` is evidence in which the ratio was put to the test: an attempt of the learner; see `store.attempts`."""


@dataclass(frozen=True)
class StoredEvidence:
    """A run's document, as it was written."""

    kind: EvidenceKind
    document: bytes


def store_evidence(store: Store, lease: Lease, kind: EvidenceKind, document: bytes, blobs: Mapping[str, bytes]) -> bool:
    """Keeps what a run found and queues its judging; False when the lease no longer holds and nothing was kept."""
    with store.transaction() as connection:
        stand_behind(connection, lease.run_id, lease.fence, served=True)
        done = connection.execute(
            update(RunRow)
            .where(*held(lease))
            .values(
                state=RunState.JUDGE_QUEUED.value,
                lease_owner=None,
                lease_until=None,
                not_before=db_now(),
                published_at=None,
                held_s=held_s(),
                held_until=db_now(),
            )
        )
        if not done.rowcount:
            _fenced(connection, lease)
            return False
        if lease.item_id is not None:
            regrade_items.spend(connection, lease.run_id, lease.item_id)
        for digest, data in sorted(blobs.items()):  # as all who hold several
            store_blob(connection, digest, data)
        connection.execute(
            insert(EvidenceRow).values(
                run_id=lease.run_id,
                fence=lease.fence,
                kind=kind,
                sha256=hashlib.sha256(document).hexdigest(),
                size_bytes=len(document),
                document=zlib.compress(document, 6),
                created_at=db_now(),
            )
        )
        _note_blobs(connection, lease.run_id, document)
        record_of(connection, "run_done", lease, kind_of=kind)
        charge(connection, lease.run_id)
        return True


def _note_blobs(connection: Connection, run_id: str, document: bytes) -> None:
    """Notes to which blobs a run's evidence refers, also where another run had brought them."""
    discovery = json.loads(document).get("discovery") or {}
    digests = [graph["sha256"] for graph in discovery.get("graphs", ())]
    there = select(literal(run_id), BlobRow.sha256).where(BlobRow.sha256.in_(digests)).order_by(BlobRow.sha256)
    connection.execute(insert(EvidenceBlobRow).from_select(["run_id", "sha256"], there))


def load_evidence(store: Store, run_id: str) -> StoredEvidence | None:
    """A run's document, checked against its digest; None when there is none, or none any more.

    Raises:
        InfrastructureError: the stored bytes are not what was written.
    """
    with store.transaction() as connection:
        row = connection.execute(
            select(EvidenceRow.kind, EvidenceRow.sha256, EvidenceRow.document).where(
                EvidenceRow.run_id == run_id, EvidenceRow.removed_at.is_(None)
            )
        ).one_or_none()
    if row is None:
        return None
    return unpacked(run_id, row.kind, row.sha256, row.document)


def unpacked(run_id: str, kind: EvidenceKind, sha256: str, compressed: bytes) -> StoredEvidence:
    """The document of a run's row of evidence.

    Raises:
        InfrastructureError: it is not what was written.
    """
    try:
        document = zlib.decompress(compressed)
    except zlib.error as error:
        raise InfrastructureError(f"the evidence of run {run_id} is damaged: {error}") from error
    if hashlib.sha256(document).hexdigest() != sha256:
        raise InfrastructureError(f"the evidence of run {run_id} does not match its digest")
    return StoredEvidence(kind, document)


def store_verdict(store: Store, lease: Lease, verdict: Verdict, reviews: Reviews | None = None) -> bool:
    """Puts a verdict in force, supersedes the one before it, and queues every answer; False when the lease is lost.

    The verdict of a run that serves a re-grade is staged: the batch decides whether it comes in force. What is
    left to a person waits from now on, with what `reviews` has to show.
    """
    seen = {} if reviews is None else reviews.seen
    with store.transaction() as connection:
        if lease.item_id is not None:
            regrade_items.hold_batch(connection, lease)
        done = connection.execute(
            update(RunRow)
            .where(*held(lease))
            .values(
                state=RunState.DONE.value,
                lease_owner=None,
                lease_until=None,
                finished_at=db_now(),
                held_s=0.0 if verdict.status is Status.ERROR else RunRow.held_s,  # that was our failure
            )
        )
        if not done.rowcount:
            _fenced(connection, lease)
            return False
        if lease.item_id is not None:
            regrade_items.run_judged(connection, lease, verdict, seen)
            return True
        hold_submission(connection, lease.submission_id)  # a waiter that comes now is seen below, or sees the verdict
        put_in_force(connection, verdict, run_id=lease.run_id, seen=seen)
        record_of(
            connection,
            "verdict",
            lease,
            verdict_id=verdict.verdict_id,
            status=(verdict.mode if verdict.mode is Mode.PREFLIGHT else verdict.status).value,
            checks={check.id: check.outcome.value for check in verdict.checks},
            **costs_of(verdict),
        )
        return True


def put_in_force(
    connection: Connection, verdict: Verdict, *, run_id: str, seen: Mapping[str, str], reviewed: bool = False
) -> None:
    """Adds a verdict, supersedes the one before it, and queues every answer.

    Args:
        connection: of a transaction that holds the submission.
        verdict: signed.
        seen: as `Reviews` has it.
        reviewed: whether it was made because a person decided.
    """
    submission_id = verdict.submission_id
    before = connection.execute(
        select(VerdictRow.verdict_id).where(VerdictRow.submission_id == submission_id, VerdictRow.current)
    ).scalar_one_or_none()
    if before is not None:
        connection.execute(update(VerdictRow).where(VerdictRow.verdict_id == before).values(current=False))
    values = verdict_values(
        verdict, summary_of(verdict), run_id=run_id, current=True, supersedes=before, reviewed=reviewed
    )
    connection.execute(insert(table_of(VerdictRow)).values(created_at=db_now()), [values])
    open_cases(connection, verdict, before, seen)
    waiters = select(WaiterRow.task_id, WaiterRow.reply_queue, WaiterRow.reply_task)
    for waiter in connection.execute(waiters.where(WaiterRow.submission_id == submission_id)).all():
        enqueue(connection, verdict.verdict_id, Waiter(*waiter))


def verdict_document(store: Store, verdict_id: str) -> str | None:
    """A verdict as it is stored, in force or not, as JSON; None where there is none of this id."""
    statement = select(VerdictRow.document).where(VerdictRow.verdict_id == verdict_id)
    with store.transaction() as connection:
        return connection.execute(statement).scalar()


def store_blob(connection: Connection, digest: str, data: bytes) -> None:
    """Keeps bytes under their digest; twice changes nothing."""
    values = {"sha256": digest, "size_bytes": len(data), "data": zlib.compress(data, 6)}
    # Two runs may bring the same graph in the same moment; and one that is there must not be removed before it is
    # referred to, so that its row is locked.
    connection.execute(
        insert_into(connection, BlobRow)
        .values(**values)
        .on_conflict_do_update(index_elements=["sha256"], set_={"size_bytes": len(data)})
    )


def load_blob(store: Store, digest: str) -> bytes:
    """The bytes that were kept under this digest.

    Raises:
        InfrastructureError: they are missing or damaged.
    """
    with store.transaction() as connection:
        kept = connection.execute(select(BlobRow.data).where(BlobRow.sha256 == digest)).scalar_one_or_none()
    if kept is None:
        raise InfrastructureError(f"the store holds no blob {digest}")
    data = zlib.decompress(kept)
    if hashlib.sha256(data).hexdigest() != digest:
        raise InfrastructureError(f"blob {digest} is damaged: its bytes have another digest")
    return data


def _fenced(connection: Connection, lease: Lease) -> None:
    if connection.execute(select(RunRow.run_id).where(RunRow.run_id == lease.run_id)).first() is None:
        return  # everything about its learner was erased
    record_of(connection, "fenced_off", lease, stage=lease.stage, fence=lease.fence)
