"""What a trusted pod kept of the images that it delivered, as arrays that the host owns."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from grader_service.grading.dialogue import Stopped, ask, parse
from grader_service.model.base import Count, Wire
from sandbox.api import Pod

COPIES = 12
"""Images copied out of one window; a run has at least two windows of the arm, so that an audit has 24 or more."""
_TIMEOUT_S = 120.0
_chance = random.SystemRandom()
Side = Annotated[int, Field(ge=0, le=1 << 16)]
"""All of them 0 where no image was copied."""


class Contents(Wire):
    """Says what the bytes beside it are."""

    kind: Literal["contents"]
    images: Annotated[int, Field(ge=0, le=10_000_000)]
    channels: Annotated[int, Field(ge=1, le=4)]
    places: Annotated[tuple[Count, ...], Field(max_length=256, fail_fast=True)]
    shape: tuple[Side, Side, Side]
    labels: Annotated[tuple[int, ...], Field(max_length=1_000_000, fail_fast=True)] | None = None


@dataclass(frozen=True)
class Delivered:
    """One window's images."""

    means: NDArray[np.float32]
    """[images, channels], each channel's mean over a grid of pixels, in whatever scale the graph has."""
    copies: tuple[tuple[int, NDArray[np.uint8]], ...]
    """(place in `means`, pixels `[H, W, C]`) of the images chosen beforehand."""
    labels: tuple[int, ...] | None = None
    """The reader's label of every image, where it was asked for."""


def sample_places(batches: int, batch_size: int, copies: int = COPIES) -> list[tuple[int, int]]:
    """Different (batch, sample) places, drawn by the system's generator."""
    images = batches * batch_size
    places = _chance.sample(range(images), min(copies, images))
    return sorted(divmod(place, batch_size) for place in places)


def fetch_contents(pod: Pod, request: Mapping[str, object]) -> Delivered | Stopped:
    """Asks for what was kept; never inside a timed window."""
    message = ask(pod, request, timeout_s=_TIMEOUT_S)
    if isinstance(message, Stopped):
        return message
    answer = parse(pod, message, Contents)
    if isinstance(answer, Stopped):
        return answer
    height, width, depth = answer.shape
    means_bytes, copy_bytes = 4 * answer.images * answer.channels, height * width * depth
    wrong_places = any(place >= answer.images for place in answer.places)
    if len(message.blob) != means_bytes + copy_bytes * len(answer.places) or wrong_places:
        return Stopped(pod.reject("contents that do not have the size that they say"))
    if answer.labels is not None and len(answer.labels) != answer.images:
        return Stopped(pod.reject("labels for another number of images"))
    means = np.frombuffer(message.blob, "<f4", answer.images * answer.channels).astype(np.float32)
    pixels = np.frombuffer(message.blob, np.uint8, offset=means_bytes)
    copies = tuple(
        (place, pixels[number * copy_bytes : (number + 1) * copy_bytes].reshape(height, width, depth))
        for number, place in enumerate(answer.places)
    )
    return Delivered(means.reshape(answer.images, answer.channels), copies, answer.labels)
