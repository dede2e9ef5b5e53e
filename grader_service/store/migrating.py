"""Brings a database's schema to this version, beside workers that go on."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from grader_service.errors import StoreUnavailable
from grader_service.store.advisory_locks import AdvisoryLock
from grader_service.store.keepalive import KEEPALIVE

log = structlog.get_logger(__name__)

_OPTIONS = "-c lock_timeout=3s -c statement_timeout=0 -c idle_in_transaction_session_timeout=60000"
"""A request for a table's lock makes all later ones wait behind it, so it is given up soon. A statement that has its
lock may take long."""
_PATIENCE_S = 300.0
"""The service's own transactions are over by then: they end after 30 s in a statement, or 60 s without one."""
_PAUSE_S = 2.0
_PASSES = frozenset({"55P03", "40P01"})
"""Lock not available; deadlock detected."""
_OLDEST = text(
    "select pid, state, extract(epoch from clock_timestamp() - xact_start) as age_s from pg_stat_activity "
    "where datname = current_database() and xact_start is not null and pid <> pg_backend_pid() "
    "order by xact_start limit 3"
)


def upgrade(engine: Engine, target: str = "head") -> None:
    """Applies what is missing up to a version; safe to call by several processes at once.

    With PostgreSQL each migration is a transaction of its own, on a connection of its own. One that does not get its
    locks is undone and tried again. With SQLite, which knows one writer, all are one transaction.

    Raises:
        StoreUnavailable: the database does not answer, or others hold what a migration must lock; what was not
            migrated is as it was before.
    """
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            _upgrade(connection, target)
        return
    with alone(engine) as connection:
        until = time.monotonic() + _PATIENCE_S
        while not _tried(connection, target):
            _wait(until, connection, "a table that must be changed is in use")


@contextmanager
def alone(engine: Engine) -> Iterator[Connection]:
    """A connection to PostgreSQL on which nobody else migrates until the block ends.

    Raises:
        StoreUnavailable: the database does not answer, or somebody else migrates for too long.
    """
    until = time.monotonic() + _PATIENCE_S
    with _own_connection(engine) as connection:
        while not _alone(connection):
            _wait(until, connection, "another process migrates this database")
        yield connection


def configuration() -> Config:
    """Of Alembic, with our migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    return config


def _upgrade(connection: Connection, target: str) -> None:
    config = configuration()
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _tried(connection: Connection, target: str) -> bool:
    try:
        _upgrade(connection, target)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) not in _PASSES:
            raise
        connection.rollback()
        return False
    return True


def _alone(connection: Connection) -> bool:
    # Polled: a statement that waits for the lock is a transaction, for which a concurrent index build would wait.
    alone = connection.execute(text(f"select pg_try_advisory_lock({AdvisoryLock.MIGRATE:d})")).scalar_one()
    connection.commit()
    return bool(alone)


def _wait(until: float, connection: Connection, why: str) -> None:
    oldest = connection.execute(_OLDEST).all()
    connection.commit()
    others = ", ".join(f"pid {row.pid} ({row.state}, for {row.age_s:.0f} s)" for row in oldest) or "none"
    log.warning("migration_waits", why=why, oldest_transactions=others)
    if time.monotonic() > until:
        raise StoreUnavailable(
            f"the schema could not be brought to this version within {_PATIENCE_S:.0f} s: {why}. The oldest "
            f"transactions are: {others}. Wait for them or end them (`select pg_terminate_backend(PID)`), then "
            "`grader store migrate` again; no migration is half done, and workers may go on meanwhile"
        )
    time.sleep(_PAUSE_S)


@contextmanager
def _own_connection(engine: Engine) -> Iterator[Connection]:
    own = create_engine(engine.url, poolclass=NullPool, connect_args={**KEEPALIVE, "options": _OPTIONS})
    try:
        with own.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise StoreUnavailable(f"the schema could not be migrated: {str(error)[:500]}") from error
