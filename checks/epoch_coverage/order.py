"""What the probe `epoch_order` observed: in which order numbered images came from every carried graph."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from checks.epoch_coverage.iterating import Reader
from checks.not_carried import first_words
from checks.operator_names import place_of
from grader_service.model.base import ShortText, Wire
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.place import Place

Number = Annotated[int, Field(ge=0, lt=64)]
Stream = Annotated[
    tuple[Annotated[tuple[Number, ...], Field(min_length=1, max_length=16)], ...], Field(min_length=1, max_length=64)
]
"""Per batch, the numbers of its images."""


class Line(Wire):
    """Where a reader stands in the learner's source."""

    file: ShortText
    line: int | None

    @property
    def place(self) -> Place | None:
        """The line for feedback; None where the graph does not say it."""
        return place_of(self.file, self.line)


class Shards(Wire):
    """The graph run as each of its shards; the shard's number is set by the probe."""

    files: Annotated[int, Field(ge=1, lt=64)]
    numbers: Annotated[tuple[Stream | None, ...], Field(min_length=1, max_length=4)]


class OrderedGraph(Wire):
    """One carried graph."""

    name: ShortText
    refused: Annotated[str, Field(max_length=600)]
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
    def is_for_validation(self) -> bool:
        """Whether its variable says so."""
        return any(word in self.name.lower() for word in ("val", "eval", "test"))

    @property
    def place(self) -> Place | None:
        """The reader's line; None where the graph does not say it."""
        return next(filter(None, (line.place for line in self.lines)), None)

    @property
    def stopped(self) -> str:
        """What stopped it, as a sentence for feedback; empty where nothing did."""
        return f"{first_words(self.problem).rstrip('.')}." if self.problem else ""

    @property
    def not_told_apart(self) -> Feedback:
        """Feedback where the images that came do not say which files they are."""
        return Feedback(
            outcome=f"Which files `{self.name}` delivers is not known: its images and labels do not tell them apart.",
            seen=self.stopped,
            next=NextStep(text="Return the reader's labels from the pipeline:", code="return images, labels"),
        )

    def reader(self, files: int, shard: int | None = None) -> Reader:
        """The reader as DALI's iterator sees it, on so many files."""
        count = self.shard_count
        number = self.number("shard_id", 0) if shard is None else shard
        return Reader(files, count, number, self.flag("pad_last_batch"), self.flag("stick_to_shard"))


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
