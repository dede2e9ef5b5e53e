"""The check `stable_batches`: every batch of an epoch has the same shape and type."""

from collections.abc import Sequence
from typing import Annotated

from checks.api import Check, Result, failed, passed
from checks.codes import GRAPH_PROBE, common
from checks.operator_names import fn_name, place_of
from checks.probing import read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Tier
from pydantic import Field

Size = Annotated[int, Field(ge=0, le=2**31)]
Shape = Annotated[tuple[Size, ...], Field(max_length=8)]


class Params(Wire):
    """What a lab may set."""

    batches: Annotated[int, Field(ge=2, le=16)] = 4
    """Batches that the grader draws; the probe reads it too."""


class Batch(Wire):
    """One batch of the image output."""

    images: Annotated[int, Field(ge=0, le=2**20)]
    shapes: Annotated[tuple[Shape, ...], Field(min_length=1, max_length=8)]
    """Different shapes of its images."""


class Place(Wire):
    """A line of the learner's that decides on the size of images."""

    operator: ShortText
    file: ShortText
    line: Annotated[int, Field(ge=0, le=10_000_000)] | None


class Observation(Wire):
    """What the probe returns."""

    batches: Annotated[tuple[Batch, ...], Field(min_length=2, max_length=16)]
    dtype: ShortText
    places: Annotated[tuple[Place, ...], Field(max_length=8)] = ()


class StableBatchesCheck(Check[Params, Observation]):
    """Judges whether every batch of an epoch has the same shape, whatever the sizes of the JPEGs are.

    A shape that changes makes cuDNN search for its algorithms again and torch.compile compile again.

    Evidence:
        batches: drawn by the grader from the learner's graph, on JPEGs of eight sizes, in a pod
            without learner code.
        places: operators of the graph that resize or crop, with the learner's own line.
    Points: all or nothing.
    Errors: 0 false accepts and 0 false rejects on the controls in `controls/`.
    Cannot detect: a graph that changes its shape after more batches than were drawn, and what the learner's own
        iterator does to the last batch.
    """

    id = "stable_batches"
    version = "1.0.0"
    title = "Every batch has one shape"
    needs = frozenset({Need.DISCOVERY})
    probes = ("stable_batches",)
    codes = common("stable_batches", GRAPH_PROBE) | {
        "stable_batches.ragged": "images of one batch have different shapes",
        "stable_batches.changes": "the shape changes from batch to batch",
        "stable_batches.ok": "every batch has the same shape",
    }
    """Every code that it can answer with, and what it means."""
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """Takes what the probe observed, or answers at once where it could not."""
        return read_probe(evidence, "stable_batches", Observation, ProbeSite.GRAPH)

    def judge(self, observation: Observation, params: Params) -> Result:
        """Decides; the same observation and parameters give the same result."""
        details = observation.model_dump(mode="json") | {
            "wanted_batches": params.batches
        }
        ragged = next(
            (batch for batch in observation.batches if len(batch.shapes) > 1), None
        )
        if ragged is not None:
            feedback = _another_shape(
                f"One batch holds {ragged.images} images of different shapes.",
                ragged.shapes,
                observation,
            )
            return failed(
                "stable_batches.ragged", feedback, tier=Tier.GRAPH, details=details
            )
        shapes = list(
            dict.fromkeys(
                (batch.images, *batch.shapes[0]) for batch in observation.batches
            )
        )
        if len(shapes) > 1:
            feedback = _another_shape(
                "The shape changes from batch to batch.", shapes, observation
            )
            return failed(
                "stable_batches.changes", feedback, tier=Tier.GRAPH, details=details
            )
        feedback = Feedback(
            outcome="Every batch has the same shape.",
            seen=f"All {len(observation.batches)} that the grader drew, from JPEGs of eight sizes, are "
            f"{observation.dtype} {list(shapes[0])}.",
            numbers={"batches": len(observation.batches)},
        )
        return passed(feedback, tier=Tier.GRAPH, details=details)


def _another_shape(
    outcome: str, shapes: Sequence[tuple[int, ...]], observation: Observation
) -> Feedback:
    """What a learner reads where shapes differ, with the last operator that decides on sizes."""
    seen = f"There are {', '.join(str(list(shape)) for shape in shapes[:3])}."
    place = None
    if observation.places:
        last = observation.places[-1]
        place = place_of(last.file, last.line)
        at = f", at {place.where}" if place is not None else ""
        seen += f" `{fn_name(last.operator)}` decides on sizes last{at}."
    return Feedback(
        outcome=outcome,
        seen=seen,
        next=NextStep(
            text="Bring every image to one size in the graph:",
            code="images = fn.resize(images, size=(224, 224))",
            place=place,
        ),
    )


CHECK = StableBatchesCheck()
