"""Answers to send: written in the transaction of the verdict, sent at least once, each with the verdict's id."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from grader_service.retry_policy import ANSWERS
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.tables import OutboxRow, VerdictRow, table_of

HELD_S = 5.0
"""An answer that was taken is sent within this time, or somebody else may take it."""
_UNREAD_S = 60.0
"""How often it is looked whether a queue was read."""
_NAMED = 20
OTHERS = "(others)"
"""Stands for the queues that are not named: each name would be a time series more."""


@dataclass(frozen=True)
class Waiter:
    """Who waits for a verdict, if anybody: by a task whose result it shall be, by a queue, or by both."""

    task_id: str | None = None
    reply_queue: str | None = None
    reply_task: str | None = None

    @property
    def waits(self) -> bool:
        """Whether there is somebody."""
        return self.task_id is not None or self.reply_queue is not None


@dataclass(frozen=True)
class OutboxMessage:
    """One answer that is due."""

    id: int
    verdict_id: str | None
    """Null for a refusal."""
    task_id: str | None
    reply_queue: str | None
    reply_task: str | None
    document: str
    attempts: int
    journaled: bool = False
    """Whether it stands in the journal of answers."""


def enqueue(connection: Connection, verdict_id: str | None, waiter: Waiter, document: str | None = None) -> int | None:
    """Adds an answer: a stored verdict by its id, or the document of a refusal; its number, none where nobody waits."""
    if not waiter.waits:
        return None
    added = insert(OutboxRow).values(
        verdict_id=verdict_id, document=document, **vars(waiter), attempts=0, not_before=db_now()
    )
    return connection.execute(added.returning(OutboxRow.id)).scalar_one()


def due(store: Store, limit: int = 100, *, verdict_id: str | None = None) -> list[OutboxMessage]:
    """Answers whose time has come: those that somebody waits for before those of a batch of re-grades, oldest first.

    They are the caller's for a moment, in which no one else gets them. Only those with a verdict, where one is named.
    """
    ours = [] if verdict_id is None else [OutboxRow.verdict_id == verdict_id]
    statement = (
        select(OutboxRow, VerdictRow.document.label("stored"))
        .join(VerdictRow, VerdictRow.verdict_id == OutboxRow.verdict_id, isouter=True)
        .where(OutboxRow.delivered_at.is_(None), OutboxRow.not_before <= db_now(), *ours)
        .order_by(OutboxRow.bulk, OutboxRow.id)
        .limit(limit)
        .with_for_update(skip_locked=True, of=OutboxRow)
    )
    with store.transaction() as connection:
        found = connection.execute(statement).mappings().all()
        rows = [row for row in found if row["stored"] or row["document"]]
        if gone := [row["id"] for row in found if not (row["stored"] or row["document"])]:
            # Their submissions were removed while somebody asked for them once more.
            connection.execute(delete(OutboxRow).where(OutboxRow.id.in_(gone)))
        if rows:
            connection.execute(
                update(OutboxRow)
                .where(OutboxRow.id.in_([row["id"] for row in rows]))
                .values(not_before=db_now() + HELD_S)
            )
    return [
        OutboxMessage(
            id=row["id"],
            verdict_id=row["verdict_id"],
            task_id=row["task_id"],
            reply_queue=row["reply_queue"],
            reply_task=row["reply_task"],
            document=row["stored"] or row["document"],
            attempts=row["attempts"],
            journaled=row["journaled"],
        )
        for row in rows
    ]


def delivered(store: Store, ids: list[int]) -> None:
    """These answers were accepted by the broker."""
    if ids:
        with store.transaction() as connection:
            connection.execute(update(OutboxRow).where(OutboxRow.id.in_(ids)).values(delivered_at=db_now()))


def journaled(store: Store, messages: Sequence[OutboxMessage]) -> None:
    """These answers stand in the journal, but for those that a batch of re-grades has given another verdict since."""
    outbox = table_of(OutboxRow)
    kept = (outbox.c.id == bindparam("message"), outbox.c.verdict_id == bindparam("verdict"))
    # In the order of their ids, as a batch gives others.
    each = [{"message": one.id, "verdict": one.verdict_id} for one in sorted(messages, key=lambda message: message.id)]
    with store.transaction() as connection:
        connection.execute(update(outbox).where(*kept).values(journaled=True), each)


def postponed(store: Store, message: OutboxMessage, error: str) -> None:
    """The broker did not take it: again later, with growing patience, for ever."""
    wait_s = ANSWERS.wait_s(message.attempts + 1)
    with store.transaction() as connection:
        connection.execute(
            update(OutboxRow)
            .where(OutboxRow.id == message.id)
            .values(
                attempts=OutboxRow.attempts + 1, not_before=db_now() + wait_s, last_error=error[:2000], unread=False
            )
        )


def unread(store: Store, message: OutboxMessage, reason: str) -> None:
    """Its task's result is stored; the message waits until the platform has read what lies in its queue."""
    with store.transaction() as connection:
        connection.execute(update(OutboxRow).where(OutboxRow.id == message.id).values(task_id=None, **_later(reason)))


def none_for(store: Store, queue: str, reason: str) -> None:
    """Nor are the others looked at that wait for this queue alone, so that those for other queues have their turn."""
    waiting = (OutboxRow.reply_queue == queue, OutboxRow.task_id.is_(None), OutboxRow.delivered_at.is_(None))
    with store.transaction() as connection:
        connection.execute(update(OutboxRow).where(*waiting).values(**_later(reason)))


def _later(reason: str) -> dict[str, Any]:
    return {"not_before": db_now() + _UNREAD_S, "last_error": reason[:2000], "unread": True}


def unread_by_queue(store: Store) -> dict[str, int]:
    """How many messages wait until a platform reads its queue, by queue; `OTHERS` beyond the twenty with the most."""
    count = func.count().label("n")
    statement = (
        select(OutboxRow.reply_queue, count)
        .where(OutboxRow.delivered_at.is_(None), OutboxRow.unread)
        .group_by(OutboxRow.reply_queue)
        .order_by(count.desc(), OutboxRow.reply_queue)
    )
    with store.transaction() as connection:
        rows = connection.execute(statement).all()
    found = {str(row.reply_queue): int(row.n) for row in rows[:_NAMED]}
    if rest := sum(row.n for row in rows[_NAMED:]):
        found[OTHERS] = rest
    return found
