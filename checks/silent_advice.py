"""Mistakes that raise nothing, as advice under the step that they belong to."""

from collections.abc import Iterator
from typing import Literal

from checks.diagnosis import silent_mistakes
from grader_service.model.evidence import Evidence
from grader_service.model.feedback import Advice

About = Literal["data", "batch", "rates"]
"""The data set and its loader; the DALI pipeline and its batch; the learner's own measurement."""
MOST_ADVICE = 2
"""Of one step; staff see all of them in the evidence."""


def silent_advice(evidence: Evidence, about: About) -> Iterator[Advice]:
    """The first mistakes of one kind, as the evidence shows them."""
    found = [mistake for mistake in silent_mistakes(evidence) if mistake.about == about]
    for mistake in found[:MOST_ADVICE]:
        yield Advice(code=f"advice.{mistake.id}", text=mistake.cause, next=mistake.remedy, place=mistake.place)
