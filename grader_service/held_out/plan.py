"""Which held-out images to make: how many, how large, and the colour by which each is known again."""

import functools
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader_service.model.evidence import ImageSize

DEFAULT_SIZE = (500, 375)
MIN_SIDE, MAX_SIDE = 96, 1600
MAX_IMAGES = 8192

# Colour channels of a code lie in this range, so that a texture of at most ±56 levels hardly ever leaves 0 to 255.
_LOWEST, _HIGHEST = 56.5, 198.5
TO_RGB = np.array([[1.0, 0.0, 1.402], [1.0, -0.344136, -0.714136], [1.0, 1.772, 0.0]])
"""JFIF: RGB from (Y, Cb - 128, Cr - 128)."""


@dataclass(frozen=True)
class ShardPlan:
    """Which images to make."""

    seed: str
    """128 bits from the system's generator, hexadecimal; recorded in the verdict, so that a shard can be made again."""
    sizes: tuple[tuple[int, int], ...]
    """(width, height) of each image, pixels."""

    @property
    def mean_pixels(self) -> float:
        """Mean number of pixels of an image; 0 for a plan without images."""
        return sum(width * height for width, height in self.sizes) / max(1, len(self.sizes))

    @property
    def size_text(self) -> str:
        """Range of the sizes, for a person."""
        widths, heights = zip(*self.sizes, strict=True)
        return f"{_range(widths)} × {_range(heights)} px"


def new_seed() -> str:
    """A fresh 128-bit seed from the operating system's generator."""
    return secrets.token_hex(16)


def key(seed: str, purpose: str) -> bytes:
    """32 bytes for one purpose: what one purpose gives away, such as sizes, says nothing of another."""
    return hashlib.sha256(f"{purpose} {seed}".encode()).digest()


def plan_shard(seed: str, learner_sizes: Sequence[ImageSize], images: int) -> ShardPlan:
    """As many images as asked for, their sizes drawn from the learner's own set and clamped to 96 to 1600 pixels.

    One plan may hold several shards that are told apart by colour: make them as parts of it (`PendingShard`).

    Raises:
        ValueError: more than 8192 images, for which there are not enough colours.
    """
    if images > MAX_IMAGES:
        raise ValueError(f"A plan holds at most {MAX_IMAGES} images, not {images}")
    generator = np.random.default_rng(list(key(seed, "sizes")))
    pool = [(_clamp(size.width), _clamp(size.height)) for size in learner_sizes] or [DEFAULT_SIZE]
    picks = generator.integers(0, len(pool), images)
    return ShardPlan(seed, tuple(pool[int(pick)] for pick in picks))


def marks(plan: ShardPlan) -> NDArray[np.uint8]:
    """The colour of each image as it is drawn: uint8 [N, 3], rows (mean Y, Cb, Cr), all different.

    Chroma is flat over the whole image and is a whole number, which JPEG at quality 85 keeps exactly. Crops, flips and
    resizes leave it alone. Luma carries the texture, so its mean wanders with the crop: codes lie further apart in it.
    """
    lattice = _lattice(len(plan.sizes))
    generator = np.random.default_rng(list(key(plan.seed, "colours")))
    chosen = lattice[generator.permutation(len(lattice))[: len(plan.sizes)]].astype(np.int16)
    # A regular lattice fits itself one step further on; moved points fit in one place only.
    luma, chroma = (round(step) for step in steps(plan))
    reach = np.minimum([luma // 4, (chroma - 2) // 4, (chroma - 2) // 4], 3)
    return (chosen + generator.integers(-reach, reach + 1, chosen.shape)).astype(np.uint8)


def codes(plan: ShardPlan) -> NDArray[np.float32]:
    """The mean colour that each image has when decoded: float32 [N, 3], RGB levels 0 to 255."""
    return to_rgb(marks(plan))


def steps(plan: ShardPlan) -> tuple[float, float]:
    """Mean distance of neighbouring codes of this plan: (in mean Y, in Cb and in Cr), levels."""
    lattice = _lattice(len(plan.sizes))
    luma, chroma = (np.diff(np.unique(lattice[:, column])) for column in (0, 1))
    return float(luma.min(initial=255)), float(chroma.min(initial=255))


def to_rgb(colours: NDArray[np.uint8]) -> NDArray[np.float32]:
    """RGB levels of (Y, Cb, Cr) rows, not clipped; chroma rounded as decoders do, luma where drawing puts it."""
    chroma = np.rint((colours[:, 1:] - 128.0) @ TO_RGB[:, 1:].T)
    rgb: NDArray[np.float32] = (colours[:, :1] - 0.5 + chroma).astype(np.float32)
    return rgb


@functools.cache
def _lattice(images: int) -> NDArray[np.uint8]:
    """The coarsest lattice with enough points: luma steps are at least three chroma steps."""
    for chroma in range(24, 1, -1):
        points = _points(chroma, 3 * chroma)
        if len(points) < images:
            continue
        luma = 3 * chroma
        while len(wider := _points(chroma, luma + 1)) >= images:
            points, luma = wider, luma + 1
            if luma >= 60:
                break
        return points
    raise ValueError(f"No room for {images} colours")


def _points(chroma: int, luma: int) -> NDArray[np.uint8]:
    reach = 96 // chroma * chroma
    axis = np.arange(128 - reach, 129 + reach, chroma)
    tones = np.arange(128 - 66 // luma * luma, 128 + 67, luma)
    grid = np.stack(np.meshgrid(tones, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    rgb = to_rgb(grid.astype(np.uint8))
    inside = ((rgb >= _LOWEST) & (rgb <= _HIGHEST)).all(axis=1)
    return grid[inside].astype(np.uint8)


def _range(sides: Sequence[int]) -> str:
    return str(min(sides)) if min(sides) == max(sides) else f"{min(sides)}–{max(sides)}"


def _clamp(side: int) -> int:
    return min(max(side, MIN_SIDE), MAX_SIDE)
