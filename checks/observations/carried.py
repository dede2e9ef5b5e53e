"""What every probe says of a carried graph, and which of several graphs trains."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from grader_service.model.base import ShortText, Wire


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
