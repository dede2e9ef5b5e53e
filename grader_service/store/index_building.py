"""Builds an index within a migration, beside those who write to its table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
import structlog
from alembic import op

log = structlog.get_logger(__name__)

_VALID = sa.text("select indisvalid from pg_index where indexrelid = to_regclass(:name)")
_LOCK_TIMEOUT = "10min"
"""A concurrent build waits for each transaction that is older than it; nobody waits behind it meanwhile."""


def build_index(name: str, table: str, columns: Sequence[str], where: str | None = None, **options: Any) -> None:
    """Builds an index; with PostgreSQL outside of a transaction, and once more where an earlier build broke off.

    What the migration did before is committed by it. So a migration that builds an index does nothing before it that
    cannot be done twice: best nothing at all.

    Args:
        name: of the index.
        table: on which it is.
        columns: in their order.
        where: a condition in SQL, for rows that it is to have.
        options: of `op.create_index`.
    """
    condition = None if where is None else sa.text(where)
    options |= {"sqlite_where": condition, "postgresql_where": condition}
    if op.get_context().dialect.name == "sqlite":
        op.create_index(name, table, columns, **options)
        return
    with _outside_of_transactions():
        valid = op.get_bind().execute(_VALID, {"name": name}).scalar()
        if valid:
            return
        log.info("index_build", index=name, table=table, again=valid is not None)
        if valid is not None:
            op.drop_index(name, table_name=table, postgresql_concurrently=True)
        op.create_index(name, table, columns, postgresql_concurrently=True, **options)


@contextmanager
def _outside_of_transactions() -> Iterator[None]:
    with op.get_context().autocommit_block():
        op.execute(f"set lock_timeout = '{_LOCK_TIMEOUT}'")
        try:
            yield
        finally:
            op.execute("reset lock_timeout")
