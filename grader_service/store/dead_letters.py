"""Messages that could not be handled, kept for an operator within bounds."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, select

from grader_service.errors import UsageError
from grader_service.model.base import neutralise
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.tables import DeadLetterRow, insert_into

LARGEST_BYTES = 4 << 20
"""As much of one is kept: no larger message is taken, so that a cut one is none that could be posted again."""
MOST_BYTES = 64 << 20
MOST_LETTERS = 1000
"""Of all together; the oldest go first."""
_ACTOR = "intake"


@dataclass(frozen=True)
class DeadLetter:
    """One of them, without its bytes."""

    id: int
    queue: str
    task_id: str | None
    reason: str
    size_bytes: int
    came_at: float
    """Seconds since 1970; the last time, where it came more than once."""

    @property
    def whole(self) -> bool:
        """Whether all of it was kept."""
        return self.size_bytes <= LARGEST_BYTES


_COLUMNS = (
    DeadLetterRow.id,
    DeadLetterRow.queue,
    DeadLetterRow.task_id,
    DeadLetterRow.reason,
    DeadLetterRow.size_bytes,
    DeadLetterRow.came_at,
)
_NEWEST_FIRST = (DeadLetterRow.came_at.desc(), DeadLetterRow.id.desc())


def keep(store: Store, raw: bytes, queue: str, task_id: str | None, reason: str) -> None:
    """Keeps a message; the same one is kept once.

    Args:
        raw: as it lay on the queue.
        queue: `live` or `regrade`.
        task_id: of its task, where that could be read.

    Raises:
        StoreUnavailable: it was not kept.
    """
    with store.transaction() as connection:
        connection.execute(
            insert_into(connection, DeadLetterRow)
            .values(
                sha256=hashlib.sha256(raw).hexdigest(),
                queue=queue,
                task_id=task_id,
                reason=neutralise(reason[:2000]),
                size_bytes=len(raw),
                data=raw[:LARGEST_BYTES],
                came_at=db_now(),
            )
            .on_conflict_do_update(index_elements=["sha256"], set_={"came_at": db_now()})
        )
        newest_first = select(DeadLetterRow.id, func.length(DeadLetterRow.data)).order_by(*_NEWEST_FIRST)
        free, dropped = MOST_BYTES, []
        for number, (letter_id, length) in enumerate(connection.execute(newest_first)):
            free -= length
            if free < 0 or number >= MOST_LETTERS:
                dropped.append(letter_id)
        if dropped:
            connection.execute(delete(DeadLetterRow).where(DeadLetterRow.id.in_(dropped)))
            record(connection, "dead_letters_dropped", _ACTOR, ids=dropped)


def count(store: Store) -> int:
    """How many there are."""
    with store.transaction() as connection:
        return connection.execute(select(func.count()).select_from(DeadLetterRow)).scalar_one()


def letters(store: Store) -> Sequence[DeadLetter]:
    """All of them, newest first."""
    with store.transaction() as connection:
        rows = connection.execute(select(*_COLUMNS).order_by(*_NEWEST_FIRST)).mappings()
        return [DeadLetter(**row) for row in rows]


def letter(store: Store, letter_id: int) -> tuple[DeadLetter, bytes]:
    """One of them, and its bytes.

    Raises:
        UsageError: there is none of this id.
    """
    statement = select(*_COLUMNS, DeadLetterRow.data).where(DeadLetterRow.id == letter_id)
    with store.transaction() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise UsageError(f"there is no dead letter {letter_id}; `grader dead-letters list` shows those that there are")
    values = dict(row)
    data = values.pop("data")
    return DeadLetter(**values), data


def remove(store: Store, found: DeadLetter, actor: str, done: str) -> bool:
    """Takes one away, and says so in the audit trail; False where it came again meanwhile, and stays.

    Args:
        done: what became of it: `posted` or `removed`.
    """
    with store.transaction() as connection:
        gone = connection.execute(
            delete(DeadLetterRow).where(DeadLetterRow.id == found.id, DeadLetterRow.came_at == found.came_at)
        ).rowcount
        if gone:
            record(
                connection, f"dead_letter_{done}", actor, letter=found.id, task_id=found.task_id, reason=found.reason
            )
    return bool(gone)
