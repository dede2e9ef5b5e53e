"""Puts answers that were given after a backup into the database that was restored from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, select, update

from grader_service.backup.journal import Answer, Erased
from grader_service.model.verdict import Verdict
from grader_service.store import erasing, review_cases
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.outbox import Waiter, enqueue
from grader_service.store.regrade_tables import RegradeBatchRow
from grader_service.store.tables import (
    ENDED,
    Base,
    EvidenceRow,
    OutboxRow,
    RunRow,
    SubmissionRow,
    VerdictRow,
    WaiterRow,
    insert_into,
    key_of,
)

_ENDS_WITH = ("state", "fence", "lease_owner", "lease_until", "started_at", "finished_at", "held_s", "held_until")
"""What becomes of a run that the backup saw under way."""


@dataclass
class Adopted:
    """What was taken over from the journal."""

    verdicts: int = 0
    """That were not in the backup."""
    answers: int = 0
    """To be sent again, since nobody knows whether they were read."""
    erased: int = 0
    """Learners who were erased again."""
    last_at: float | None = None
    """When the last entry was made; seconds since 1970."""


def adopt(store: Store, entries: Iterable[Answer | Erased], actor: str) -> Adopted:
    """Follows the journal, one entry after the other; what was taken over before is not again.

    Args:
        store: restored from a backup, while nobody else works on it.
        entries: those after the backup began, in the order of time.

    Raises:
        StoreUnavailable: the database failed.
    """
    done = Adopted()
    for entry in entries:
        done.last_at = entry.at
        if isinstance(entry, Erased):
            for learner in erasing.learners_with(store, entry.learner_sha256):
                erasing.erase(store, learner, actor, partial(_same, entry.note))
                done.erased += 1
        else:
            with store.transaction() as connection:
                _take_over(connection, entry, actor, done)
    return done


def _same(note: str, _: erasing.Erasure) -> str:
    """The note that was signed when the learner was erased."""
    return note


def _take_over(connection: Connection, entry: Answer, actor: str, done: Adopted) -> None:
    verdict = entry.rows["verdict"]
    run = {**entry.rows["run"], "item_id": None}
    _insert(connection, SubmissionRow, entry.rows["submission"])
    if "regrade_batch" in entry.rows:
        _insert(connection, RegradeBatchRow, entry.rows["regrade_batch"])
    waited = _insert(connection, RunRow, run) or _end(connection, run)
    if "evidence" in entry.rows:
        # As where evidence was kept for long enough: what was measured counts as an attempt, and cannot be read again.
        found = {**entry.rows["evidence"], "document": b"", "removed_at": entry.at}
        _insert(connection, EvidenceRow, found)
    if _insert(connection, VerdictRow, {**verdict, "current": False}):
        done.verdicts += 1
        names = {name: verdict[name] for name in ("submission_id", "run_id", "verdict_id")}
        record(connection, "adopted", actor, **names)
        _adopt_reviews(connection, verdict)
    _put_in_force(connection, verdict)
    done.answers += _send_again(connection, entry, to_waiters=waited)


def _insert(connection: Connection, table: type[Base], row: Mapping[str, Any]) -> bool:
    """Whether it was not there."""
    adding = insert_into(connection, table).values(**row).on_conflict_do_nothing()
    return connection.execute(adding.returning(key_of(table))).first() is not None


def _end(connection: Connection, run: Mapping[str, Any]) -> bool:
    """Ends a run that the backup saw under way, unless it serves a batch, which goes on; whether it did."""
    under_way = RunRow.run_id == run["run_id"], RunRow.state.not_in(ENDED), RunRow.item_id.is_(None)
    ended = update(RunRow).where(*under_way).values({name: run[name] for name in _ENDS_WITH})
    return bool(connection.execute(ended).rowcount)


def _put_in_force(connection: Connection, verdict: Mapping[str, Any]) -> None:
    of_submission = VerdictRow.submission_id == verdict["submission_id"], VerdictRow.current
    in_force = connection.execute(select(VerdictRow.verdict_id).where(*of_submission)).scalar_one_or_none()
    if in_force == verdict["verdict_id"] or (in_force is not None and not verdict["current"]):
        return
    connection.execute(update(VerdictRow).where(*of_submission).values(current=False))
    connection.execute(update(VerdictRow).where(VerdictRow.verdict_id == verdict["verdict_id"]).values(current=True))


def _adopt_reviews(connection: Connection, verdict: Mapping[str, Any]) -> None:
    try:
        read = Verdict.model_validate_json(verdict["document"])
    except ValueError:
        return  # it says nothing that could be followed; the check of all signatures names it
    review_cases.adopt(connection, read)


def _send_again(connection: Connection, entry: Answer, *, to_waiters: bool) -> int:
    verdict = entry.rows["verdict"]
    columns = "task_id", "reply_queue", "reply_task"
    wanted = [tuple(to[name] for name in columns) for to in entry.sent_to]
    if to_waiters:
        waiters = select(*(getattr(WaiterRow, name) for name in columns))
        wanted += map(tuple, connection.execute(waiters.where(WaiterRow.submission_id == verdict["submission_id"])))
    outbox = select(*(getattr(OutboxRow, name) for name in columns))
    there = set(map(tuple, connection.execute(outbox.where(OutboxRow.verdict_id == verdict["verdict_id"]))))
    new = [to for to in dict.fromkeys(wanted) if to not in there]
    for to in new:
        enqueue(connection, verdict["verdict_id"], Waiter(*to))
    return len(new)
