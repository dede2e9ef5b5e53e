"""A line of the learner's source, as a graph or an object says it."""

from checks.operator_names import place_of
from grader_service.model.base import ShortText, Wire
from grader_service.model.place import Place


class Line(Wire):
    """Where something stands in the learner's source."""

    file: ShortText
    line: int | None

    @property
    def place(self) -> Place | None:
        """The line for feedback; None where it is not known."""
        return place_of(self.file, self.line)
