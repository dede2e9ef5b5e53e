"""Which backups were made, and who makes one now."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import func, insert, select, text

from grader_service.errors import UsageError
from grader_service.store.advisory_locks import AdvisoryLock
from grader_service.store.clock import db_now
from grader_service.store.engine import Store, answering
from grader_service.store.retention_tables import BackupRow


@contextmanager
def alone(store: Store) -> Iterator[None]:
    """Nobody else makes a backup of this database, or removes old ones, until the block ends.

    Raises:
        UsageError: somebody does.
        StoreUnavailable: the database failed.
    """
    taken = UsageError("another backup of this database is being made; wait until it is done")
    if store.is_sqlite:
        with Path(f"{store.engine.url.database}.backup-lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise taken from None
            yield
        return
    with answering(), store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.execute(text(f"select pg_try_advisory_lock({AdvisoryLock.BACKUP:d})")).scalar_one():
            raise taken
        try:
            yield
        finally:
            connection.execute(text(f"select pg_advisory_unlock({AdvisoryLock.BACKUP:d})"))


def made(store: Store, name: str, begun_at: float) -> None:
    """Remembers a backup that is whole.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        connection.execute(insert(BackupRow).values(name=name, begun_at=begun_at, finished_at=db_now()))


def age_s(store: Store) -> float | None:
    """Seconds since the newest backup was begun; None where none was made.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        age: float | None = connection.execute(select(db_now() - func.max(BackupRow.begun_at))).scalar_one()
    return None if age is None else max(0.0, age)


def now(store: Store) -> float:
    """The database's clock: seconds since 1970.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        return float(connection.execute(select(db_now())).scalar_one())
