"""What the probe `augmentation` observed, and how often images were flipped, cropped and changed in colour."""

import math
from collections.abc import Iterable
from typing import Annotated, NamedTuple

from pydantic import Field

from checks.not_carried import first_words
from checks.observations.carried import SeenGraph
from checks.operator_names import where
from checks.results import Result, unverified
from grader_service.model.base import ShortText, Wire

Number = Annotated[float, Field(ge=-1e12, le=1e12)]
Count = Annotated[int, Field(ge=0)]
Ends = tuple[Number | None, Number | None]
"""Level in the middle, and growth from one end to the other, in grey levels of the ramp that went in."""
MOVED = 8.0
"""Grey levels of a ramp of 255: three per cent of an image's side."""
STEEP = 16.0
"""Less growth than this says nothing about the direction."""
RECOLOURED = 4.0


class RandomOperator(Wire):
    """An operator that draws numbers, as the learner's graph says it."""

    name: ShortText
    file: ShortText
    line: int | None
    probability: Number | None


class Build(Wire):
    """The samples of one build of the graph."""

    span: Number | None
    """From black to white, in the values that come out."""
    distinct: tuple[Count, Count, Count]
    """How many visibly different samples came of the ramp across, the ramp down and the plain colour."""
    distinct_per_batch: Annotated[tuple[Count, ...], Field(max_length=64)]
    across: Annotated[tuple[Ends, ...], Field(max_length=256)]
    down: Annotated[tuple[Ends, ...], Field(max_length=256)]
    turned: Annotated[tuple[Number | None, ...], Field(max_length=256)]
    """Growth of the ramp across in the direction down: not zero where the image was rotated."""
    colours: Annotated[tuple[Annotated[tuple[Number | None, ...], Field(max_length=4)], ...], Field(max_length=256)]
    filled: Annotated[tuple[Number | None, ...], Field(max_length=256)]


class Flips(NamedTuple):
    """How often the direction of a ramp was reversed."""

    reversed: int
    samples: int


class AugmentedGraph(SeenGraph):
    """One carried graph, and the samples that it gave."""

    problem: Annotated[str, Field(max_length=600)] = ""
    random: Annotated[tuple[RandomOperator, ...], Field(max_length=32)] = ()
    operators: Count = 0
    crops: Annotated[tuple[ShortText, ...], Field(max_length=64)] = ()
    splits: Count = 0
    """Operators that split a batch by a condition."""
    origins: dict[ShortText, Count] = Field(default_factory=dict)
    """Files of DALI's automatic augmentation, and how many operators they made."""
    runs: Annotated[tuple[Build, ...], Field(max_length=2)] = ()
    """One; empty where it did not run."""
    equal_runs: bool = False
    """Whether a second build gave the same samples, as a fixed seed makes it."""

    @property
    def changes(self) -> bool:
        """Whether samples of one image differ visibly."""
        return any(max(build.distinct) > 1 for build in self.runs)

    @property
    def flips(self) -> tuple[Flips, Flips]:
        """How often the ramp across ran the other way, and the one down."""
        across = _flips(ends for build in self.runs for ends in build.across)
        return across, _flips(ends for build in self.runs for ends in build.down)

    @property
    def most_flipped(self) -> Flips:
        """Of both directions the one in which flips are neither never nor always, else the one with more."""
        return max(self.flips, key=lambda one: (0 < one.reversed < one.samples, one.reversed))

    @property
    def moves(self) -> bool:
        """Whether samples hold different parts of the image."""
        return any(
            _range(level for level, _ in ends) > MOVED
            or _range(abs(growth) for _, growth in ends if growth is not None) > MOVED
            for build in self.runs
            for ends in (build.across, build.down)
        )

    @property
    def recolours(self) -> bool:
        """Whether the plain colour came out as different colours."""
        return any(
            _range(colour[channel] for colour in build.colours if channel < len(colour)) > RECOLOURED
            for build in self.runs
            for channel in range(4)
        )

    @property
    def where(self) -> str:
        """The learner's line of the first random operator, such as ` in graph.py, line 12`."""
        return next(filter(None, (where(one.file, one.line) for one in self.random)), "")


class Augmentation(Wire):
    """The observations of `augmentation`."""

    graphs: Annotated[tuple[AugmentedGraph, ...], Field(max_length=16)]
    batch_size: Annotated[int, Field(ge=1, le=4096)]


def not_run(graph: AugmentedGraph) -> Result:
    """The result where a graph gave no samples."""
    return unverified(
        "not_run",
        f"`{graph.name}` gave no samples to look at, so nothing is counted.",
        seen=first_words(graph.problem or "No image came."),
        next="Check that it returns images, and that no crop is larger than an image.",
    )


def binomial_p(successes: int, trials: int, probability: float) -> float:
    """Two-sided p-value: the chance of a count that is no likelier than this one."""

    def log_chance(count: int) -> float:
        ways = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
        return ways + count * math.log(probability) + (trials - count) * math.log1p(-probability)

    limit = log_chance(successes) + 1e-9
    return min(1.0, math.fsum(math.exp(c) for count in range(trials + 1) if (c := log_chance(count)) <= limit))


def _flips(ends: Iterable[Ends]) -> Flips:
    """Counts samples whose ramp runs the other way; those that are nearly flat are left out."""
    growths = [growth for _, growth in ends if growth is not None and abs(growth) >= STEEP]
    return Flips(sum(growth < 0 for growth in growths), len(growths))


def _range(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else 0.0
