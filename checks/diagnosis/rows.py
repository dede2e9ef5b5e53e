"""The table of diagnoses: one row per known mistake, written in `rows/*.toml` and read once per process.

Each file is a family and holds an array of tables, `[[rows]]`.
A row of an exception says by `exceptions`, `contains`, `pattern`, `source` and `operator` what it is about; every one
that is given must fit. Patterns are regular expressions in which each repetition has an upper bound and none stands
inside another, so that matching takes time linear in the text; a test holds every row to that. They are compiled when
a message first asks for them.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, Self, get_args

from pydantic import StringConstraints, TypeAdapter, model_validator

from grader_service.model.base import Frozen, LongText, ShortText, Wire
from grader_service.model.place import Place

Family = Literal[
    "imports", "device", "graph", "iterator", "decode", "layout", "dataloader", "timing", "distributed", "silent"
]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""The files of rows, in the order in which they are searched."""
SILENT = "silent"
"""The family of mistakes that raise nothing; its rows are found by `checks.diagnosis.silent`."""

RowId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{2,40}$")]
Words = Annotated[str, StringConstraints(min_length=1, max_length=400)]
Pattern = Annotated[str, StringConstraints(min_length=3, max_length=500)]
Order = Literal["specific", "usual", "general"]
ORDERS: tuple[Order, ...] = get_args(Order)


class Row(Wire):
    """One known mistake."""

    id: RowId
    family: Family
    order: Order = "usual"
    """Specific rows are tried first and general ones last, so that each may match what a later one also matches."""
    about: Literal["", "data", "batch", "rates"] = ""
    """Of a silent mistake: the data set and its loader, the DALI pipeline and its batch, or the learner's rates."""
    exceptions: tuple[ShortText, ...] = ()
    """Names of exception types; empty for any."""
    contains: tuple[Words, ...] = ()
    """Texts of which the message must contain one; looked for first, since that is quick. Empty for any."""
    pattern: Pattern | None = None
    """Searched for in the message; its named groups may stand in `cause` and `remedy`."""
    source: Pattern | None = None
    """Searched for in the learner's own line."""
    operator: Pattern | None = None
    """Searched for in the name of the DALI operator that the message names, when it names one."""
    suggest: Literal["operators", "types", "arguments"] | None = None
    """Fill `{nearest}` with the name that the learner may have meant."""
    cause: Words
    remedy: Words
    example: Words | None = None
    """A message, for the documentation and for tests of rows that no test can provoke."""
    provoked: Literal["cpu", "text", "evidence"]
    """How a test meets the row: real code on a CPU, a message as text, or facts of a run."""
    why: Words | None = None
    """Why a `text` row cannot be provoked on a CPU."""
    literal_in: Words | None = None
    """A file of an installed library, relative to site-packages, which holds the text of a `text` row."""
    seen_with: ShortText

    @model_validator(mode="after")
    def _says_what_it_is_about(self) -> Self:
        if self.family == SILENT:
            if self.exceptions or self.contains or self.pattern or self.provoked != "evidence" or not self.about:
                raise ValueError(
                    f"{self.id}: a silent mistake has no exception, is provoked by evidence and about something"
                )
        elif not (self.contains or (self.exceptions and (self.pattern or self.source))):
            raise ValueError(f"{self.id}: name a text, or an exception and a pattern or a source line")
        elif self.provoked == "evidence":
            raise ValueError(f"{self.id}: only silent mistakes are provoked by evidence")
        elif self.provoked == "text" and not (self.example and self.why):
            raise ValueError(f"{self.id}: a row that only text provokes needs an example and a reason")
        return self


class Diagnosis(Frozen):
    """The answer: a row of the table, its texts filled in."""

    id: RowId
    cause: LongText
    remedy: LongText
    place: Place | None = None
    """The learner's own line that the message names inside a graph or a worker; else where the code stopped."""
    about: ShortText = ""
    operator: ShortText = ""
    """The DALI operator that the message names, such as `fn.decoders.image`."""


_ROWS = TypeAdapter(tuple[Row, ...])


@cache
def all_rows() -> tuple[Row, ...]:
    """Every row, in the order in which they are tried; raises pydantic's `ValidationError` if one is malformed."""
    folder = files("checks.diagnosis") / "rows"
    found = [
        {"family": family, **row}
        for family in FAMILIES
        for row in tomllib.loads((folder / f"{family}.toml").read_text("utf-8"))["rows"]
    ]
    return tuple(sorted(_ROWS.validate_python(found), key=lambda row: ORDERS.index(row.order)))


@cache
def exception_rows() -> tuple[Row, ...]:
    """Every row of an exception, in the order in which they are tried."""
    return tuple(row for row in all_rows() if row.family != SILENT)


@cache
def silent_rows() -> dict[str, Row]:
    """Every silent mistake by its id."""
    return {row.id: row for row in all_rows() if row.family == SILENT}


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled pattern of a row."""
    return re.compile(pattern)
