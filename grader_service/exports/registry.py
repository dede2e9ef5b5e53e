"""Every format that the grader exports. A new one is a module that writes it, and its name and entry here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO

from pydantic import BaseModel

from grader_service.exports.cohorts import parquet, table
from grader_service.exports.cohorts.cells import Columns, Row
from grader_service.exports.cohorts.targets import writing
from grader_service.exports.gradescope import gradescope
from grader_service.exports.junit import junit
from grader_service.exports.prairielearn import prairielearn
from grader_service.model.verdict import Verdict


class VerdictForm(StrEnum):
    """What verdicts are written as, for other platforms."""

    GRADESCOPE = "gradescope"
    PRAIRIELEARN = "prairielearn"
    JUNIT = "junit"


class CohortForm(StrEnum):
    """What a cohort is written as: a table, or documents for another platform."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"
    GRADESCOPE = "gradescope"
    """A zip with a `results.json` for each submission, and a manifest; see `bundle`."""


@dataclass(frozen=True)
class VerdictFormat:
    """A format of another platform for verdicts."""

    write: Callable[[Sequence[Verdict]], str]
    """Makes a document of verdicts: of one, unless it takes several."""
    ending: str
    """Of the names of its files."""
    takes_several: bool = False


@dataclass(frozen=True)
class TableFormat:
    """A format for rows, of which there may be more than fit into memory."""

    write: Callable[[IO[bytes], Iterable[Row], Columns], int]
    """Writes all rows, which are read once, and returns how many; columns that are not among those which every row has
    follow in the order in which they are seen."""
    require: Callable[[str], None] = lambda _: None
    """Raises UsageError where the format cannot be written to a target, before that is touched."""


def _json(document: BaseModel) -> str:
    return document.model_dump_json(indent=2, exclude_none=True) + "\n"


VERDICTS: Mapping[VerdictForm, VerdictFormat] = {
    VerdictForm.GRADESCOPE: VerdictFormat(lambda verdicts: _json(gradescope(verdicts[0])), ".json"),
    VerdictForm.PRAIRIELEARN: VerdictFormat(lambda verdicts: _json(prairielearn(verdicts[0])), ".json"),
    VerdictForm.JUNIT: VerdictFormat(junit, ".xml", takes_several=True),
}
TABLES: Mapping[CohortForm, TableFormat] = {
    CohortForm.CSV: TableFormat(table.write_csv),
    CohortForm.JSON: TableFormat(table.write_json),
    CohortForm.JSONL: TableFormat(table.write_json_lines),
    CohortForm.PARQUET: TableFormat(parquet.write, parquet.require),
}


def write_table(target: str, form: CohortForm, rows: Iterable[Row], columns: Columns) -> int:
    """Writes all rows; returns how many.

    Args:
        target: a file, or `-` for standard output.
        form: one of `TABLES`.
        rows: read once.
        columns: those that every row has.

    Raises:
        UsageError: the file cannot be written, or not in this format.
    """
    chosen = TABLES[form]
    chosen.require(target)
    with writing(target) as file:
        return chosen.write(file, rows, columns)
