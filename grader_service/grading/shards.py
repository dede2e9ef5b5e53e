"""Makes the held-out JPEGs: fresh for each run, sized like the learner's own, nothing in them seen before."""

import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from grader_service.model.evidence import ImageSize

DEFAULT_SIZE = (500, 375)
MIN_SIDE, MAX_SIDE = 96, 1600
QUALITY = 85
_CANVAS = 2048
_CLASSES = 4


@dataclass(frozen=True)
class ShardPlan:
    """Which images to make."""

    seed: str
    """128 bits from the system's generator, hexadecimal; recorded in the verdict, so that a shard can be made again."""
    sizes: tuple[tuple[int, int], ...]
    """(width, height) of each image, pixels."""

    @property
    def size_text(self) -> str:
        """Range of the sizes, for a person."""
        widths, heights = zip(*self.sizes, strict=True)
        return f"{_range(widths)} × {_range(heights)} px"


def new_seed() -> str:
    """A fresh 128-bit seed from the operating system's generator."""
    return secrets.token_hex(16)


def plan_shard(seed: str, learner_sizes: Sequence[ImageSize], images: int) -> ShardPlan:
    """As many images as asked for, their sizes drawn from the learner's own set and clamped to 96 to 1600 pixels."""
    generator = np.random.default_rng(int(seed, 16))
    pool = [(_clamp(size.width), _clamp(size.height)) for size in learner_sizes] or [DEFAULT_SIZE]
    picks = generator.integers(0, len(pool), images)
    return ShardPlan(seed, tuple(pool[int(pick)] for pick in picks))


def make_shard(plan: ShardPlan, folder: Path) -> list[str]:
    """Writes the images into class folders below `folder`; returns their paths relative to it, in order.

    Files are baseline JPEGs, 4:2:0, quality 85, without metadata: about 2.5 bits per pixel, like photographs.
    """
    key = int(plan.seed, 16)
    canvas = _canvas(np.random.default_rng([key & (2**64 - 1), key >> 64, 1]))
    names = [f"class_{index % _CLASSES}/{index:05d}.jpg" for index in range(len(plan.sizes))]
    for number in range(_CLASSES):
        target = folder / f"class_{number}"
        target.mkdir(exist_ok=True)
        target.chmod(0o755)

    def write(index: int) -> None:
        generator = np.random.default_rng([key & (2**64 - 1), key >> 64, 2, index])
        _image(generator, canvas, plan.sizes[index]).save(
            folder / names[index], "JPEG", quality=QUALITY, subsampling="4:2:0"
        )
        (folder / names[index]).chmod(0o644)

    # Pillow and numpy let go of the interpreter lock where the time is spent.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(write, range(len(names))))
    return names


def _canvas(generator: "np.random.Generator") -> "np.ndarray[tuple[int, ...], np.dtype[np.int16]]":
    """A square of luma texture in bands of 4 to 32 pixels, from which each image takes its own piece."""
    total = np.zeros((_CANVAS, _CANVAS), np.int16)
    for block, spread in ((32, 22), (16, 16), (8, 14), (4, 12)):
        side = _CANVAS // block
        coarse = generator.integers(-spread * 2, spread * 2 + 1, (side, side), dtype=np.int16)
        image = Image.fromarray((coarse + 128).astype(np.uint8)).resize((_CANVAS, _CANVAS), Image.Resampling.BICUBIC)
        total += np.asarray(image, np.int16) - 128
    return total


def _image(
    generator: "np.random.Generator",
    canvas: "np.ndarray[tuple[int, ...], np.dtype[np.int16]]",
    size: tuple[int, int],
) -> Image.Image:
    width, height = size
    left, top = (int(generator.integers(0, _CANVAS - side + 1)) for side in (width, height))
    piece = canvas[top : top + height, left : left + width]
    fine = np.frombuffer(generator.bytes(width * height), np.int8).reshape(height, width) >> 3
    tone, *chroma = (int(value) for value in generator.integers(96, 161, 3))
    luma = np.clip(piece + fine + tone, 0, 255).astype(np.uint8)
    planes = [Image.fromarray(luma), *(Image.new("L", size, value) for value in chroma)]
    return Image.merge("YCbCr", planes)


def _range(sides: Sequence[int]) -> str:
    return str(min(sides)) if min(sides) == max(sides) else f"{min(sides)}–{max(sides)}"


def _clamp(side: int) -> int:
    return min(max(side, MIN_SIDE), MAX_SIDE)
