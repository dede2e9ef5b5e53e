"""Counts over a stream of identified images: how many were known, how many different, how many came again too soon."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader_service.held_out.identity import Identities


@dataclass(frozen=True)
class Figures:
    """Of the images delivered in timed windows."""

    delivered: int
    identified: int
    """Of them, those that are an image of the current shard."""
    distinct: int
    stale: int
    """Those that belong to another part of the plan."""
    repeated: int
    problem: str | None = None
    """Why identities could not be told; the counts are 0 then."""


def figures(
    found: Identities,
    images: int,
    *,
    windows: Sequence[int] = (),
    part: range | None = None,
    epochs: Sequence[int] = (),
) -> Figures:
    """Counts what was delivered.

    Args:
        found: identities in order of delivery; best told for all windows of an arm at once.
        windows: how many of them belong to each uninterrupted stretch; one stretch if absent.
        images: in the plan.
        part: places that make up the current shard; the whole plan if absent.
        epochs: how many images an epoch may have beside all of them, such as without an incomplete last batch.
    """
    part = part or range(images)
    ids = np.split(found.ids, np.cumsum(windows)[:-1] if len(windows) else [])
    known = [row[(row >= part.start) & (row < part.stop)] for row in ids]
    lengths = (len(part), *epochs)
    return Figures(
        delivered=sum(map(len, ids)),
        identified=sum(map(len, known)),
        distinct=len(np.unique(np.concatenate(known))),
        stale=sum(int((row >= 0).sum()) for row in ids) - sum(map(len, known)),
        repeated=sum(min(repeats(row, length) for length in lengths) for row in known),
        problem=found.problem,
    )


def repeats(ids: NDArray[np.int32], epoch: int) -> int:
    """How many images came again before the rest of the shard had come.

    The stream is cut into epochs of `epoch` images, and every image that was in the same epoch before counts. Where
    the first cut lies is unknown, so the place with the fewest is taken: a stream of whole shuffled epochs has none,
    wherever it begins and however it was shuffled, and a ring of k images has all but k of every epoch.
    """
    last: dict[int, int] = {}
    pairs = 0
    # How many pairs a cut just before place p separates, for p modulo `epoch`, as differences.
    change = np.zeros(epoch + 1, np.int64)
    for place, image in enumerate(ids.tolist()):
        before = last.get(image)
        last[image] = place
        if before is None or place - before >= epoch:
            continue
        pairs += 1
        low, high = (before + 1) % epoch, place % epoch
        change[low] += 1
        change[high + 1] -= 1
        if low > high:
            change[0] += 1
    return pairs - int(np.cumsum(change[:-1]).max(initial=0))
