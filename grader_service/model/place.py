"""A line of the learner's own source."""

from typing import Annotated

from pydantic import Field

from grader_service.model.base import ShortText, Wire


class Place(Wire):
    """A line of a module or of a notebook's cell, with the lines around it."""

    file: ShortText
    line: Annotated[int, Field(ge=1, le=10_000_000)]
    cell: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """1-based number of the notebook's code cell; the line counts inside it."""
    source: ShortText = ""
    """The line itself, without its indentation."""
    function: ShortText = ""
    context: Annotated[tuple[ShortText, ...], Field(max_length=3)] = ()
    """The line before, the line and the line after, as written; fewer at the ends of the source, empty if unknown."""
    context_from: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    """Number of the first line of `context`."""

    @property
    def lines(self) -> tuple[tuple[int, str], ...]:
        """The line and those around it behind their numbers; none where the source is not known."""
        if self.context:
            return tuple(enumerate(self.context, self.context_from))
        return ((self.line, self.source),) if self.source else ()

    @property
    def where(self) -> str:
        """Such as `cell 3, line 2` or `lab/data.py, line 17`."""
        return f"cell {self.cell}, line {self.line}" if self.cell is not None else f"{self.file}, line {self.line}"
