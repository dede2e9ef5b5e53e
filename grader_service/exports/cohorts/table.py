"""Writes rows as CSV, JSON or JSON lines; as many as there are, with a few in memory.

CSV and Parquet want all columns first, and which checks there are is known after the last row: rows go through a
temporary file.
"""

import contextlib
import csv
import io
import itertools
import json
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from grader_service.exports.cohorts.cells import Columns, Row, chunks, csv_cell
from grader_service.exports.cohorts.rows import type_of

_AT_ONCE = 1000


@contextlib.contextmanager
def spooled(rows: Iterable[Row], columns: Columns) -> Iterator[tuple[Columns, int, Iterator[Row]]]:
    """All columns, the number of rows, and the rows once more, out of a temporary file."""
    with tempfile.TemporaryFile() as spool:
        found, count = dict(columns), 0
        for row in rows:
            for name in row:
                if name not in found:
                    found[name] = type_of(name, columns)
            spool.write(_line(row))
            count += 1
        spool.seek(0)
        yield found, count, (json.loads(line) for line in spool)


def write_csv(file: IO[bytes], rows: Iterable[Row], columns: Columns) -> int:
    """RFC 4180: UTF-8, commas, CRLF; texts that a spreadsheet would run are made harmless, see `cells`."""
    with spooled(rows, columns) as (found, count, again):
        lines = ([csv_cell(row.get(name)) for name in found] for row in again)
        for some in chunks(itertools.chain([[csv_cell(name) for name in found]], lines), _AT_ONCE):
            text = io.StringIO(newline="")
            csv.writer(text, lineterminator="\r\n").writerows(some)
            file.write(text.getvalue().encode())
        return count


def write_json(file: IO[bytes], rows: Iterable[Row], _: Columns) -> int:
    """One array of objects."""
    count = 0
    for row in rows:
        file.write(b"[\n" if count == 0 else b",\n")
        file.write(_line(row).rstrip())
        count += 1
    file.write(b"\n]\n" if count else b"[]\n")
    return count


def write_json_lines(file: IO[bytes], rows: Iterable[Row], _: Columns) -> int:
    """One object a line."""
    count = 0
    for row in rows:
        file.write(_line(row))
        count += 1
    return count


def _line(row: Row) -> bytes:
    # ASCII: no reader takes U+2028 or U+0085 in a name for the end of a line.
    return json.dumps(row, ensure_ascii=True, allow_nan=False).encode() + b"\n"
