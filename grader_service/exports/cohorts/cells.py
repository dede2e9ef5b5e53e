"""What stands in a table's cells, and how a cell is written for spreadsheets; pure.

A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab, a carriage return or a line feed (or the
full-width form of a sign) for a formula, whoever wrote it (OWASP, "CSV Injection"). Learners choose their names and
file names, so such texts get an apostrophe in front in CSV files. Texts that begin with an apostrophe get another one,
so that whoever takes one apostrophe away from every text that begins with one has the texts as they were. Numbers are
ours and stay as they are; JSON and Parquet hold every text unchanged.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

from grader_service.model.base import neutralise
from grader_service.report.formats import utc_of

T = TypeVar("T")
Cell = str | float | int | bool | None
Row = dict[str, Cell]
"""Column to cell; a column that is not there is empty."""
Type = Literal["text", "number", "whole", "moment"]
"""Of a column; a moment is ISO 8601 text in UTC, such as `2026-09-21T14:13:20.000Z`."""
Columns = dict[str, Type]

_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """All items, at most so many at a time."""
    iterator = iter(items)
    while some := list(itertools.islice(iterator, size)):
        yield some


def text(value: str | None, most: int = 8192) -> str | None:
    """Text that any encoding can carry and no terminal obeys, cut to `most` characters."""
    return None if value is None else neutralise(value)[:most]


def moment(seconds: float | None) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC with milliseconds; None for what no calendar holds."""
    found = utc_of(seconds)
    return None if found is None else found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def csv_cell(value: Cell) -> str:
    """One cell as CSV holds it: nothing for None, and never a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_DANGEROUS) else value
    return repr(value)
