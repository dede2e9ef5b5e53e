"""Writes rows as CSV, JSON, JSON lines or Parquet; as many as there are, with a few in memory.

CSV and Parquet want all columns first, and which checks there are is known after the last row: rows go through a
temporary file.
"""

import csv
import io
import itertools
import json
import tempfile
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import IO, Any

from grader_service.errors import UsageError
from grader_service.regrade.exports import parquet
from grader_service.regrade.exports.cells import Columns, Row, csv_cell
from grader_service.regrade.exports.rows import type_of
from grader_service.regrade.exports.targets import writing

_AT_ONCE = 1000


class Form(StrEnum):
    """A format of a table."""

    CSV = "csv"
    """RFC 4180: UTF-8, commas, CRLF; texts that a spreadsheet would run are made harmless, see `cells`."""
    JSON = "json"
    """One array of objects."""
    JSONL = "jsonl"
    """One object a line."""
    PARQUET = "parquet"


def write_table(target: str, form: Form, rows: Iterable[Row], columns: Columns) -> int:
    """Writes all rows; returns how many.

    Args:
        target: a file, or `-` for standard output, which takes no Parquet.
        form: the format.
        rows: read once.
        columns: those that every row has; what else rows hold follows in the order in which it is seen.

    Raises:
        UsageError: the file cannot be written, or Parquet has no place or no library.
    """
    if form is Form.PARQUET:
        if target == "-":
            raise UsageError("a Parquet file cannot go to standard output; name a file")
        parquet.library()
    with writing(target) as file:
        if form is Form.JSON:
            return _json(file, rows)
        if form is Form.JSONL:
            return _json_lines(file, rows)
        with tempfile.TemporaryFile() as spool:
            found, count = _spooled(spool, rows, columns)
            spool.seek(0)
            again = (json.loads(line) for line in spool)
            if form is Form.CSV:
                _csv(file, found, again)
            else:
                parquet.write(file, found, again)
            return count


def _spooled(spool: IO[bytes], rows: Iterable[Row], columns: Columns) -> tuple[Columns, int]:
    found, count = dict(columns), 0
    for row in rows:
        for name in row:
            if name not in found:
                found[name] = type_of(name, columns)
        spool.write(_line(row))
        count += 1
    return found, count


def _csv(file: IO[bytes], columns: Columns, rows: Iterable[Row]) -> None:
    lines = ([csv_cell(row.get(name)) for name in columns] for row in rows)
    for some in _chunks(itertools.chain([[csv_cell(name) for name in columns]], lines)):
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\r\n").writerows(some)
        file.write(text.getvalue().encode())


def _json(file: IO[bytes], rows: Iterable[Row]) -> int:
    count = 0
    for row in rows:
        file.write(b"[\n" if count == 0 else b",\n")
        file.write(_line(row).rstrip())
        count += 1
    file.write(b"\n]\n" if count else b"[]\n")
    return count


def _json_lines(file: IO[bytes], rows: Iterable[Row]) -> int:
    count = 0
    for row in rows:
        file.write(_line(row))
        count += 1
    return count


def _line(row: Row) -> bytes:
    # ASCII: no reader takes U+2028 or U+0085 in a name for the end of a line.
    return json.dumps(row, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def _chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(items)
    while some := list(itertools.islice(iterator, _AT_ONCE)):
        yield some
