"""Which backups were made."""

from sqlalchemy import func, insert, select

from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.retention_tables import BackupRow


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
