"""The formats that the grader exports: documents for other platforms (`VERDICTS`) and tables of cohorts (`TABLES`).

To add one, write a module with a function of the type of `write`, then add its name to the `Literal` and its entry to
the mapping. `gradescope` for a cohort is a zip archive of documents: `exports.cohorts.bundle` writes it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Literal

from pydantic import BaseModel

from grader_service.exports.cohorts import parquet, table
from grader_service.exports.cohorts.cells import Columns, Row
from grader_service.exports.cohorts.targets import writing
from grader_service.exports.gradescope import gradescope
from grader_service.exports.junit import junit
from grader_service.exports.prairielearn import prairielearn
from grader_service.model.verdict import Verdict

VerdictFormatName = Literal["gradescope", "prairielearn", "junit"]
TableFormatName = Literal["csv", "json", "jsonl", "parquet"]
CohortFormatName = Literal[TableFormatName, "gradescope"]


@dataclass(frozen=True)
class VerdictFormat:
    """A format of another platform for verdicts."""

    write: Callable[[Sequence[Verdict]], str]
    """Makes one document, of exactly one verdict unless it takes several."""
    ending: str
    """Suffix of file names, such as `.json`."""
    takes_several: bool = False


@dataclass(frozen=True)
class TableFormat:
    """A format for rows, of which there may be more than fit into memory."""

    write: Callable[[IO[bytes], Iterable[Row], Columns], int]
    """Writes all rows, which are read once, and returns how many. Known columns first, then others as they come."""
    require: Callable[[str], None] = lambda _: None
    """Raises UsageError where the format cannot be written to a target, before that is touched."""


def _json(document: BaseModel) -> str:
    return document.model_dump_json(indent=2, exclude_none=True) + "\n"


VERDICTS: Mapping[VerdictFormatName, VerdictFormat] = {
    "gradescope": VerdictFormat(lambda verdicts: _json(gradescope(*verdicts)), ".json"),
    "prairielearn": VerdictFormat(lambda verdicts: _json(prairielearn(*verdicts)), ".json"),
    "junit": VerdictFormat(junit, ".xml", takes_several=True),
}
TABLES: Mapping[TableFormatName, TableFormat] = {
    "csv": TableFormat(table.write_csv),
    "json": TableFormat(table.write_json),
    "jsonl": TableFormat(table.write_json_lines),
    "parquet": TableFormat(parquet.write, parquet.require),
}


def write_table(target: str, form: TableFormatName, rows: Iterable[Row], columns: Columns) -> int:
    """Writes all rows, which are read once, to a file, or to standard output for `-`; returns how many.

    Raises:
        UsageError: the file cannot be written, or not in this format.
    """
    chosen = TABLES[form]
    chosen.require(target)
    with writing(target) as file:
        return chosen.write(file, rows, columns)
