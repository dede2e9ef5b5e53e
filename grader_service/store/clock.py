"""The database's clock in SQL: leases are compared with it, so that hosts may disagree about the time."""

from typing import Any

from sqlalchemy import ColumnElement, Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement


class db_now(FunctionElement[float]):  # noqa: N801 - reads as a SQL function
    """Seconds since 1970, UTC, as the database sees them now, also inside a long transaction."""

    type = Float(53)
    inherit_cache = True


@compiles(db_now, "postgresql")
def _postgresql(*_: Any, **__: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


@compiles(db_now, "sqlite")
def _sqlite(*_: Any, **__: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


def days_ago(days: float) -> ColumnElement[float]:
    """The time that was so many days before now."""
    return db_now() - days * 86_400.0


class later(FunctionElement[float]):  # noqa: N801 - reads as a SQL function
    """The later of two times, or the larger of two numbers."""

    type = Float(53)
    inherit_cache = True


@compiles(later, "postgresql")
def _greatest(element: later, compiler: SQLCompiler, **options: Any) -> str:
    return f"greatest({compiler.process(element.clauses, **options)})"


@compiles(later, "sqlite")
def _max(element: later, compiler: SQLCompiler, **options: Any) -> str:
    return f"max({compiler.process(element.clauses, **options)})"
