"""All rows of the database as JSON lines, and back; the lines are the same for either database."""

import base64
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import JSON, Connection, LargeBinary, MetaData, Table, func, insert, inspect, select

from grader_service.store import regrade_tables, retention_tables, review_tables  # noqa: F401 - their tables are ours, too
from grader_service.store.tables import Base

_AT_ONCE = 100
_VERSION = "alembic_version"
"""Says which schema it is; the migrations write it."""


def there(connection: Connection) -> list[str]:
    """Names of our tables that the database has; others in it are not ours."""
    return sorted({*Base.metadata.tables, _VERSION} & set(inspect(connection).get_table_names()))


def tables(connection: Connection) -> list[Table]:
    """Every table of ours as the database has it, in an order in which they can be filled."""
    found = _found(connection)
    for table in found.tables.values():
        for column in table.columns:
            if isinstance(column.type, JSON):
                column.type = JSON(none_as_null=True)
    return [table for table in found.sorted_tables if table.name != _VERSION]


def lines(connection: Connection, table: Table) -> Iterator[bytes]:
    """The rows of a table, each a line of JSON."""
    statement = select(table).execution_options(yield_per=_AT_ONCE)
    for row in connection.execute(statement).mappings():
        yield line_of(row)


def line_of(row: Mapping[Any, Any]) -> bytes:
    """One row as a line of JSON; bytes are written in base64."""
    return json.dumps(dict(row), default=_text, separators=(",", ":")).encode() + b"\n"


def values_of(table: Table, document: Mapping[str, Any]) -> dict[str, Any]:
    """What a line says, as it is inserted into the table."""
    binary = {column.name for column in table.columns if isinstance(column.type, LargeBinary)}
    return {
        name: base64.b64decode(value) if name in binary and value is not None else value
        for name, value in document.items()
    }


def fill(connection: Connection, table: Table, rows: Iterable[bytes]) -> int:
    """Inserts such lines into an empty table; returns how many there were."""
    filled = 0
    waiting = iter(rows)
    while some := [values_of(table, json.loads(row)) for row in itertools.islice(waiting, _AT_ONCE)]:
        connection.execute(insert(table), some)
        filled += len(some)
    _count_on(connection, table)
    return filled


def drop_all(connection: Connection) -> None:
    """Drops every table of ours, with all that is in it."""
    _found(connection).drop_all(connection)


def _found(connection: Connection) -> MetaData:
    found = MetaData()
    found.reflect(connection, only=there(connection))
    return found


def _text(value: object) -> str:
    if isinstance(value, (bytes, memoryview)):
        return base64.b64encode(value).decode()
    raise TypeError(f"a column holds a {type(value).__name__}, which no line can say")


def _count_on(connection: Connection, table: Table) -> None:
    """Numbers that PostgreSQL gives go on after the largest that was filled in; SQLite looks by itself."""
    if connection.dialect.name == "sqlite":
        return
    for column in table.primary_key.columns:
        sequence = connection.execute(select(func.pg_get_serial_sequence(table.name, column.name))).scalar_one()
        largest = connection.execute(select(func.max(column))).scalar_one() if sequence else None
        if largest is not None:
            connection.execute(select(func.setval(sequence, largest)))
