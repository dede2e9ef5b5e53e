"""What a submission has and lacks, told in seconds without measuring: schema `grader.preflight/v1`; never a grade."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from grader_service.model.base import Count, Identifier, Seconds, ShortText, Wire, Word
from grader_service.model.evidence import BatchFacts
from grader_service.model.feedback import Feedback, Sentence
from grader_service.model.run_report import RunReport

MAX_TEXT = 8000
"""Characters of a preflight as plain text."""


class WantedName(Wire):
    """Something that a submission must leave behind when it ends, as the checks of its lab ask for it."""

    name: ShortText
    """Of a variable or function; in words where any name does."""
    holds: Sentence
    steps: Annotated[tuple[Identifier, ...], Field(max_length=64)]
    """Which look at it."""
    any_name: bool = False
    """Found by its type, in a variable of whatever name."""
    optional: bool = False
    """Nothing fails without it."""


class Presence(StrEnum):
    """What became of one thing that was looked for."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"
    """There, and not as it should be."""
    NOT_REACHED = "not_reached"
    """The code ended before, or only a GPU could tell."""


class Part(Wire):
    """One thing that was looked for."""

    state: Presence
    told: Feedback
    """What was seen and wanted, and what to do."""


class NamePart(Part):
    """A name."""

    wanted: WantedName


class DataPart(Part):
    """The learner's JPEG files, as the scanner counted them."""

    images: Count
    """Distinct files that decode; more than are needed are not counted."""
    needed: Count


class GraphPart(Part):
    """Whether the grader can run the learner's DALI graph in a process of its own, which is how it is measured."""

    pipeline: ShortText = ""
    carried: bool
    problem: Word | None = None
    """Why not."""


class BatchPart(Part):
    """The first batch that the graph delivered there."""

    facts: BatchFacts


class ListPart(Part):
    """The form of a list of reflections; what it says is judged only when it is graded."""

    name: ShortText
    entries: Count
    counted: Count
    """Those that count by their form."""
    needed: Count


class Preflight(Wire):
    """The whole answer."""

    schema_id: Literal["grader.preflight/v1"] = Field(default="grader.preflight/v1", alias="schema")
    lab: Identifier
    lab_title: ShortText
    lab_version: ShortText
    grader_version: ShortText
    ready: bool | None
    """Whether nothing is missing; null where the code needs a GPU, without which this was looked at."""
    run: RunReport
    names: Annotated[tuple[NamePart, ...], Field(max_length=256)] = ()
    data: DataPart | None = None
    """Null where the lab asks for none, or no folder was named."""
    graph: GraphPart | None = None
    """Null where the lab asks for none, or none was built."""
    batch: BatchPart | None = None
    lists: Annotated[tuple[ListPart, ...], Field(max_length=8)] = ()
    isolated: bool
    """False for the `process` sandbox."""
    timings_s: Mapping[str, Seconds] = Field(default_factory=dict)
    """Wall-clock seconds of each stage."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """All that was looked for, in order."""
        return (*self.names, *(part for part in (self.data, self.graph, self.batch) if part is not None), *self.lists)

    @property
    def text(self) -> str:
        """What is missing and what to do, as plain text of at most 8000 characters."""
        lines = []
        if self.run.stopped:
            lines.append(f"{self.run.outcome} {self.run.remedy}".rstrip())
        lines += [part.told.text for part in self.parts if part.state in {Presence.MISSING, Presence.WRONG}]
        if self.ready:
            lines.append("Nothing is missing. Nothing was measured or graded.")
        return "\n".join(lines)[:MAX_TEXT]
