"""Opens the database: PostgreSQL for several hosts, SQLite for one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from grader_service.errors import ConfigurationError, StoreUnavailable
from grader_service.store.keepalive import KEEPALIVE

SCHEMA = "0018"
"""The newest of the migrations; written here too, so that a command which only asks need not load them."""
FIRST = "0018"
"""The first of the migrations, with which schemas begin that were released."""
_BUSY_S = 30.0
_OPTIONS = "-c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000 -c jit=off"
"""Of PostgreSQL. A host that hangs inside a transaction must not block others with its locks. No statement of ours runs
for so long that compiling it first (JIT) would pay."""
_SNAPSHOT = "grader_snapshot"
_MIGRATE = "run `grader store migrate`"
NOT_PERMITTED = "42501"
"""Of PostgreSQL's errors: the role has no right to do this."""
_RIGHTS = (
    "; each service has its own role: `grader store migrate`, as the owner, gives it its rights, and others it lacks"
)


class Store:
    """A database with a schema that this version can work with.

    Args:
        url: an SQLAlchemy URL: `sqlite:///path`, or `postgresql+psycopg://…`.
    """

    def __init__(self, url: str, *, pool_size: int = 5) -> None:
        parsed = make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        options: dict[str, Any] = {"pool_pre_ping": True}
        if self.is_sqlite:
            if parsed.database and parsed.database != ":memory:":
                Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            options["connect_args"] = {"timeout": _BUSY_S, "check_same_thread": False}
        elif parsed.get_backend_name() == "postgresql":
            options |= {"pool_size": pool_size, "max_overflow": pool_size, "pool_timeout": _BUSY_S}
            options["connect_args"] = {**KEEPALIVE, "options": _OPTIONS}
        else:
            raise ConfigurationError(
                f"database {parsed.get_backend_name()!r} is not supported; use postgresql or sqlite"
            )
        self.engine: Engine = create_engine(parsed, **options)
        if self.is_sqlite:
            event.listen(self.engine, "connect", _configure_sqlite)
            event.listen(self.engine, "begin", _begin_immediate)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction: committed at the end of the block, rolled back by an exception.

        Raises:
            StoreUnavailable: the database failed; nothing of the block was kept.
        """
        with answering(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Reads that see the database as it is at the first of them, however long they take; nobody waits for them.

        Raises:
            StoreUnavailable: the database failed.
        """
        options: dict[str, Any] = {_SNAPSHOT: True} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with answering(), self.engine.connect().execution_options(**options) as connection:
            if not self.is_sqlite:
                for patience in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    connection.exec_driver_sql(f"set local {patience} = 0")
            yield connection

    def migrate(self, revision: str = "head") -> None:
        """Brings the schema to this version; safe to call by several processes at once, and beside workers.

        A newer schema that this version can work with stays as it is.

        Args:
            revision: of the schema; an older one only for rows that were saved from it.

        Raises:
            ConfigurationError: the schema is a newer one, and no longer for this version, or was never released.
            StoreUnavailable: the database does not answer, or others held for too long what had to be locked.
        """
        from grader_service.store import migrating  # noqa: PLC0415 - few commands migrate, and all would wait for it

        found = self.schema()
        if found is not None and not FIRST <= found <= SCHEMA:
            return self.check_schema()
        return migrating.upgrade(self.engine, revision)

    def schema(self) -> str | None:
        """Version of the schema that the database has; None when it has none of ours.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        try:
            with self.engine.connect() as connection:
                return schema_of(connection) if inspect(connection).has_table("alembic_version") else None
        except SQLAlchemyError as error:
            raise StoreUnavailable(f"the database does not answer: {str(error)[:300]}") from error

    def check_schema(self) -> None:
        """Refuses to work on a schema that this version was not made for.

        Newer ones say what the oldest version is that can work with them.

        Raises:
            ConfigurationError: the schema is older, or too new; the message says what to do.
            StoreUnavailable: the database does not answer.
        """
        found = self.schema()
        if found == SCHEMA:
            return
        if found is not None:
            require_migratable(found, "the database")
        if found is None or found < SCHEMA:
            raise ConfigurationError(
                f"the database has schema {found or 'none'}, this grader needs {SCHEMA}: {_MIGRATE}"
            )
        with self.transaction() as connection:
            oldest = oldest_version(connection)
        if oldest > SCHEMA:
            raise ConfigurationError(
                f"the database has schema {found}, for graders of {oldest} or newer, and this one is of {SCHEMA}: "
                "this grader is the older one, install the version that the others have"
            )

    def close(self) -> None:
        """Closes every connection."""
        self.engine.dispose()


@contextmanager
def answering() -> Iterator[None]:
    """Around what asks the database.

    Raises:
        StoreUnavailable: it failed.
    """
    try:
        yield
    except (IntegrityError, DataError):
        raise  # not the database's fault, and no better the next time
    except SQLAlchemyError as error:
        denied = getattr(getattr(error, "orig", None), "sqlstate", None) == NOT_PERMITTED
        raise StoreUnavailable(f"the database failed: {str(error)[:500]}{_RIGHTS if denied else ''}") from error


def require_migratable(schema: str, whose: str) -> None:
    """Refuses a schema from which no migration leads to this version's.

    Args:
        schema: that was found.
        whose: what has it, for the message.

    Raises:
        ConfigurationError: it was never released.
    """
    if schema < FIRST:
        raise ConfigurationError(
            f"{whose} has schema {schema}, which was never released; expected {FIRST} or newer: start with an empty "
            "database, or use the version that made this one"
        )


def schema_of(connection: Connection) -> str | None:
    """Version of the schema of a database that was migrated; None where that broke off before the first one."""
    found: str | None = connection.exec_driver_sql("select version_num from alembic_version").scalar()
    return found


def oldest_version(connection: Connection) -> str:
    """Schema of the oldest version that can work with the one that the database has."""
    oldest: str = connection.exec_driver_sql("select oldest from compatibility").scalar_one()
    return oldest


def _configure_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_immediate` says
    cursor = connection.cursor()
    # FULL: an answer that was given is on disk, also after a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={int(_BUSY_S * 1000)}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A transaction that reads and then writes must not find that somebody wrote in between.
    connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(_SNAPSHOT) else "BEGIN IMMEDIATE")
