"""Whether a graph does the work that it is timed for: everything that is held against one, in one place.

What was seen in experiments with the graph (`sandbox/guest/trusted/experiments.py`), in the order of asking:

| seen | problem | outcome |
| --- | --- | --- |
| experiments would not tell what the graph does later, or failed | `not_examined` | inconclusive |
| nine in ten images stay as they are when all files show other pictures | `independent` | failed |
| nine in ten images differ from what the whole decoded file gives | `unlike` | failed |
| one of these for more than 5 % of the images, or many go by other files than their own | `unclear` | inconclusive |
| decoders decode clearly less than the standard job shows, of all pixels or of some images | `lesser` | inconclusive |

Nothing else is held against a graph, and nothing excuses one of these. A graph with a problem is not timed.
"""

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from grader_service.measure.work_parity import standard_work
from grader_service.model.base import Count, LongText
from grader_service.model.measurement import GraphProof, GraphSeen

LEAST_SHARE = 0.95
"""Share of the images that must be as they should: a graph may lose a few, such as to an augmentation that erases."""
LEAST_OWN = 0.75
"""Share of the images that must be seen to go by their own file: an augmentation may paste another image over one. Of
those that go by another one a quarter is not found out, so that a third of all may."""
LEAST_AT_ALL = 0.1
"""Share of the images below which the graph as a whole is at fault."""
WORK_FLOOR = 0.8
"""Least share of the standard job's work that counts as the same work."""
MOST_SCANT = 0.1
"""Share of the images of which less than a sixteenth may be decoded; the standard job shows at least 0.08 of each."""
AREA_SD, LOW_SD = 0.27, 0.4
"""Standard deviations of one standard window's area, and of whether it reaches the lowest third."""

Share = Annotated[float, Field(ge=0, le=1)]


class Observed(GraphSeen):
    """What the clean room says of a graph."""

    alike: Count = 0
    own: Count = 0
    credits: Annotated[dict[str, Share], Field(max_length=8)] = Field(default_factory=dict)
    doubt: LongText
    """Why nothing was seen that could be relied on; empty when it could."""


def judge(found: Observed, sizes: Sequence[tuple[int, int]]) -> GraphProof:
    """The proof of a graph; `problem` and `note` are empty when it does its work.

    Args:
        sizes: (width, height) of the held-out images, pixels.
    """
    area, low = standard_work(sizes)
    problem, note = _problem(found, area, low)
    seen = found.model_dump(exclude={"doubt"})
    return GraphProof(**seen, standard_area=area, standard_low=low, problem=problem, note=note)


def not_examined(doubt: str, sizes: Sequence[tuple[int, int]]) -> GraphProof:
    """The proof of a graph that could not be tried out."""
    return judge(Observed(samples=1, doubt=doubt, seconds=0.0), sizes)


def _problem(found: Observed, area: float, low: float) -> tuple[str | None, str]:
    if found.doubt:
        return "not_examined", found.doubt
    own, alike, stayed = (number / found.samples for number in (found.own, found.alike, found.stayed))
    if stayed > 1 - LEAST_AT_ALL:
        return "independent", (
            f"When the files showed other pictures, {found.stayed} of {found.samples} images stayed exactly as they "
            "were, so they were not made from the files."
        )
    if alike < LEAST_AT_ALL:
        return "unlike", (
            f"{found.samples - found.alike} of {found.samples} images differ from what the same graph makes of the "
            "whole decoded files."
        )
    if min(alike, 1 - stayed) < LEAST_SHARE or own < LEAST_OWN:
        return "unclear", (
            f"Of {found.samples} images {found.own} changed with the picture in their own file, {found.stayed} stayed "
            f"as they were when all files showed other pictures, and {found.alike} were the same when the file held "
            "the picture without loss."
        )
    if not found.windows:
        return None, ""
    errors = 2 / math.sqrt(found.windows)
    if found.area + errors * AREA_SD < WORK_FLOOR * area:
        return "lesser", (
            f"Your graph decodes {found.area:.0%} of each image on average; the standard augmentation "
            f"(RandomResizedCrop with scale (0.08, 1)) shows {area:.0%}, and a PyTorch loader decodes all of it."
        )
    if found.low + errors * LOW_SD < WORK_FLOOR * low:
        return "lesser", (
            f"{found.low:.0%} of the windows that your graph decodes reach the lowest third of an image; of those of "
            f"the standard augmentation {low:.0%} do. A JPEG is read from its top, so windows near it are less work."
        )
    if found.scant > MOST_SCANT:
        return "lesser", (
            f"Of {found.scant:.0%} of the images your graph decodes less than a sixteenth; the standard augmentation "
            "(RandomResizedCrop with scale (0.08, 1)) shows at least 8% of each."
        )
    return None, ""
