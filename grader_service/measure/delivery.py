"""Takes batches from a pod as pixels: what arrived is counted and timed here, whatever the pod says about it."""

import math
import random
import time
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from grader_service.model.base import Wire
from grader_service.model.batch_geometry import image_axes
from grader_service.run.dialogue import Problem, Stopped, hear, parse
from sandbox.api import Pod

COPIES = 24
"""Images kept whole from each window, drawn by the system's generator after they came."""
_COPY_BYTES = 24 << 20
"""Of all of them together; fewer are kept where images are larger than 1 MiB, so that a run's fit into our memory."""
_MOST_CHANNELS = 4
"""Whose means are taken: no image has more, and what has more is not recognised."""
_ROWS = 48
"""Rows of an image that its mean colour is taken from, at most twice as many."""
_chance = random.SystemRandom()
Side = Annotated[int, Field(ge=1, le=16384)]


class Images(Wire):
    """Says what the bytes beside it are: images of one batch or a part of it, 0 to 255."""

    kind: Literal["images"]
    shape: tuple[Side, Side, Side, Side]


class Done(Wire):
    """All batches that were asked for have been sent."""

    kind: Literal["delivered"]


@dataclass(frozen=True)
class Delivered:
    """One window's images, as arrays that the host owns."""

    means: NDArray[np.float32]
    """[images, channels], each channel's mean over a grid of pixels, in whatever scale the graph has."""
    copies: tuple[tuple[int, NDArray[np.uint8]], ...]
    """(place in `means`, pixels `[H, W, C]`) of the images chosen beforehand."""


@dataclass(frozen=True)
class Arrival:
    """What came in one window."""

    images: int
    last_at: float
    """When the last image was here, host's monotonic seconds."""
    shapes: frozenset[tuple[int, int, int]]
    """[H, W, C] of the images; one, unless they changed meanwhile."""
    content: Delivered


def receive(pod: Pod, timeout_s: float, *, most_images: int) -> Arrival | Problem | Stopped:
    """Hears images until the pod says that all were sent; the clock for an image is its arrival.

    Args:
        pod: must be running.
        timeout_s: for all of it.
        most_images: a pod that sends more is ended.
    """
    deadline = time.monotonic() + timeout_s
    means: list[NDArray[np.float32]] = []
    copies: list[tuple[int, NDArray[np.uint8]]] = []
    shapes: set[tuple[int, int, int]] = set()
    count, last_at = 0, time.monotonic()
    while True:
        message = hear(pod, max(0.01, deadline - time.monotonic()))
        if isinstance(message, Stopped):
            return message
        answer = parse(pod, message, Images, Done, Problem)
        if isinstance(answer, (Stopped, Problem)):
            return answer
        if isinstance(answer, Done):
            break
        assert isinstance(answer, Images)  # noqa: S101 - the only other type
        last_at = time.monotonic()
        if len(message.blob) != math.prod(answer.shape) or count + answer.shape[0] > most_images:
            return Stopped(pod.reject("images of another size or number than was said"))
        batch = _channels_last(np.frombuffer(message.blob, np.uint8).reshape(answer.shape))
        shapes.add((int(batch.shape[1]), int(batch.shape[2]), int(batch.shape[3])))
        means.append(_means(batch))
        _keep(copies, batch, count)
        count += len(batch)
    channels = {part.shape[1] for part in means}
    if len(channels) != 1:
        return Problem(kind="arm_problem", text="It delivered no images, or images with changing numbers of channels.")
    return Arrival(count, last_at, frozenset(shapes), Delivered(np.concatenate(means), tuple(copies)))


def _channels_last(batch: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return batch.transpose(0, *(axis + 1 for axis in image_axes(batch.shape[1:])))


def _means(batch: NDArray[np.uint8]) -> NDArray[np.float32]:
    every = max(1, batch.shape[1] // _ROWS)
    rows = batch[:, ::every, :, :_MOST_CHANNELS]
    # Down the columns first: at most 95 bytes are added, which 16 bits hold, and it is many times faster than a mean.
    sums = rows.sum(axis=1, dtype=np.uint16).sum(axis=1, dtype=np.uint64)
    return np.asarray(sums / (rows.shape[1] * rows.shape[2]), np.float32)


def _keep(copies: list[tuple[int, NDArray[np.uint8]]], batch: NDArray[np.uint8], before: int) -> None:
    """A uniform sample of all images so far (reservoir sampling); the place is drawn when the image is here."""
    for number in range(len(batch)):
        place = before + number
        if len(copies) < COPIES:
            copies.append((place, np.ascontiguousarray(batch[number])))
        elif (slot := _chance.randrange(place + 1)) < COPIES:
            copies[slot] = (place, np.ascontiguousarray(batch[number]))
    while len(copies) > 1 and sum(pixels.nbytes for _, pixels in copies) > _COPY_BYTES:
        del copies[_chance.randrange(len(copies))]
