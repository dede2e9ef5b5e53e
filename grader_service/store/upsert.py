"""Inserts that say what happens when the row is there already: both databases can, each in a dialect of its own."""

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from grader_service.store.tables import Base


def insert_into(connection: Connection, row: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """An insert with `on_conflict_do_update` and `on_conflict_do_nothing`, for the database of this connection."""
    return sqlite.insert(row) if connection.dialect.name == "sqlite" else postgresql.insert(row)
