"""Parquet, for those who installed its library: it is larger than the whole service."""

import importlib
from collections.abc import Iterable
from datetime import datetime
from typing import IO, Any

from grader_service.errors import UsageError
from grader_service.exports.cohorts.cells import Cell, Columns, Row, Type, chunks
from grader_service.exports.cohorts.table import spooled

_GROUP = 5000
"""Rows of one row group, which are in memory at once."""


def library() -> Any:
    """`pyarrow`.

    Raises:
        UsageError: it is not installed; the message says what to run.
    """
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise UsageError(
            'Parquet files need pyarrow, which is not installed: run pip install "grader-service[parquet]", '
            "or choose csv, json or jsonl"
        ) from error


def require(target: str) -> None:
    """Raises UsageError where no Parquet file can be written: to standard output, or without its library."""
    if target == "-":
        raise UsageError("a Parquet file cannot go to standard output; name a file")
    library()


def write(file: IO[bytes], rows: Iterable[Row], columns: Columns) -> int:
    """Writes rows in groups; moments become timestamps in UTC, numbers 64 bits, every cell may be null."""
    arrow = library()
    kinds: dict[Type, Any] = {
        "text": arrow.string(),
        "number": arrow.float64(),
        "whole": arrow.int64(),
        "moment": arrow.timestamp("ms", tz="UTC"),
    }
    with spooled(rows, columns) as (found, count, again):
        schema = arrow.schema([(name, kinds[kind]) for name, kind in found.items()])
        with arrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for some in chunks(again, _GROUP):
                arrays = [
                    arrow.array([_value(row.get(name), kind) for row in some], type=kinds[kind])
                    for name, kind in found.items()
                ]
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
        return count


def _value(cell: Cell, kind: Type) -> Any:
    return datetime.fromisoformat(cell) if kind == "moment" and isinstance(cell, str) else cell
