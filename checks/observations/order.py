"""What the probe `epoch_order` observed: in which order numbered images came from every carried graph."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from checks.not_carried import first_words
from checks.observations.carried import Line, SeenGraph
from checks.observations.iterating import Reader
from checks.results import Result, unverified
from grader_service.model.base import ShortText, Wire
from grader_service.model.place import Place
from grader_service.model.verdict import Tier

Number = Annotated[int, Field(ge=0, lt=64)]
Stream = Annotated[
    tuple[Annotated[tuple[Number, ...], Field(min_length=1, max_length=16)], ...], Field(min_length=1, max_length=64)
]
"""Per batch, the numbers of its images."""


class Shards(Wire):
    """The graph run as each of its shards; the shard's number is set by the probe."""

    files: Annotated[int, Field(ge=1, lt=64)]
    numbers: Annotated[tuple[Stream | None, ...], Field(min_length=1, max_length=4)]


class OrderedGraph(SeenGraph):
    """One carried graph, and the images that came of it."""

    reader_name: ShortText = ""
    """A claim, as the learner's process says."""
    iterator_type: ShortText = ""
    declared_batch_size: int = 0
    readers: Annotated[tuple[Mapping[ShortText, bool | int | ShortText], ...], Field(max_length=8)] = ()
    """Arguments as the learner wrote them."""
    lines: Annotated[tuple[Line, ...], Field(max_length=8)] = ()
    problem: Annotated[str, Field(max_length=600)] = ""
    streams: Annotated[tuple[Stream | None, ...], Field(max_length=2)] = ()
    """Two epochs, and one of a second build, with the graph's own seed; null where the images cannot be told apart."""
    shards: Shards | None = None

    def flag(self, name: str) -> bool:
        """A reader's argument that is on or off."""
        return any(reader.get(name) is True for reader in self.readers)

    def number(self, name: str, default: int) -> int:
        """A reader's argument that is a number."""
        return next((value for reader in self.readers if type(value := reader.get(name)) is int), default)

    @property
    def shard_count(self) -> int:
        """`num_shards` as the learner wrote it; 1 where it is left out."""
        return max(1, self.number("num_shards", 1))

    @property
    def shard_id(self) -> int:
        """As the learner wrote it; 0 where it is left out."""
        return self.number("shard_id", 0)

    @property
    def place(self) -> Place | None:
        """The reader's line; None where the graph does not say it."""
        return next(filter(None, (line.place for line in self.lines)), None)

    @property
    def stopped(self) -> str:
        """What stopped it, as a sentence for feedback; empty where nothing did."""
        return f"{first_words(self.problem).rstrip('.')}." if self.problem else ""

    def reader(self, files: int, shard: int | None = None) -> Reader:
        """The reader as DALI's iterator sees it, on so many files."""
        number = self.shard_id if shard is None else shard
        return Reader(files, self.shard_count, number, self.flag("pad_last_batch"), self.flag("stick_to_shard"))


class Order(Wire):
    """The observations of `epoch_order`."""

    batch_size: Annotated[int, Field(ge=1, le=64)]
    files: Annotated[int, Field(ge=2, lt=64)]
    graphs: Annotated[tuple[OrderedGraph, ...], Field(max_length=16)]

    def usable(self) -> list[OrderedGraph]:
        """The graphs that ran, best candidate first."""
        return [graph for graph in self.graphs if not graph.refused]

    def chosen(self, name: str | None) -> OrderedGraph | None:
        """The graph that the lab names, else the best candidate."""
        return next((graph for graph in self.usable() if name in (None, graph.name)), None)


def not_told_apart(graph: OrderedGraph) -> Result:
    """The result where the images that came do not say which files they are."""
    return unverified(
        "no_numbers",
        f"Which files `{graph.name}` delivers is not known: its images and labels do not tell them apart.",
        seen=graph.stopped,
        next="Return the reader's labels from the pipeline:",
        write="return images, labels",
        tier=Tier.GRAPH,
    )
