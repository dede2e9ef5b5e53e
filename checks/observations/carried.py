"""What every probe says of a carried graph and of lines in it, and which of several graphs trains."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import Field

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


class SeenGraph(Wire):
    """One carried graph."""

    name: ShortText
    refused: Annotated[str, Field(max_length=600)]

    @property
    def is_for_validation(self) -> bool:
        """Whether its variable says so."""
        return any(word in self.name.lower() for word in ("val", "eval", "test"))


GraphT = TypeVar("GraphT", bound=SeenGraph)


def training_graph(graphs: Sequence[GraphT], name: str | None) -> GraphT | None:
    """The graph that the lab names, else the best candidate that is not for validation; None where none ran."""
    usable = [graph for graph in graphs if not graph.refused]
    if name is not None:
        return next((graph for graph in usable if graph.name == name), None)
    return next((graph for graph in usable if not graph.is_for_validation), usable[0] if usable else None)
