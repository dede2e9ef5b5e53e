"""Mistakes that raise nothing, as advice under the step that they belong to."""

from typing import Annotated, Literal

from pydantic import Field

from checks.arguments import Taken
from checks.diagnosis import silent_mistakes
from grader_service.model.evidence import Evidence
from grader_service.model.feedback import Advice

About = Literal["data", "batch", "rates"]
"""The data set and its loader; the DALI pipeline and its batch; the learner's own measurement."""
MOST_ADVICE = 2
"""Of one step; staff see all of them in the evidence."""


def _about(about: About) -> Taken:
    """The first mistakes of one kind, as the evidence shows them."""

    def take(evidence: Evidence) -> tuple[Advice, ...]:
        found = [mistake for mistake in silent_mistakes(evidence) if mistake.about == about]
        return tuple(
            Advice(code=f"advice.{one.id}", text=one.cause, next=one.remedy, place=one.place)
            for one in found[:MOST_ADVICE]
        )

    return Taken(take)


_Pieces = Annotated[tuple[Advice, ...], Field(max_length=MOST_ADVICE)]
AboutData = Annotated[_Pieces, _about("data")]
AboutBatch = Annotated[_Pieces, _about("batch")]
AboutRates = Annotated[_Pieces, _about("rates")]
"""Types of a check's argument, for mistakes of one kind; never an input to the outcome."""
