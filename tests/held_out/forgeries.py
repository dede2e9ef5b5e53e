"""What cheats would deliver instead of decoded images, and what honest loaders do: from a file's bytes to pixels.

Each maker takes the JPEG, a crop box and an output shape and gives uint8 [H, W, 3].
"""

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Source:
    """One held-out image and its neighbour in the shard."""

    jpeg: bytes
    other: bytes
    size: tuple[int, int]


Maker = Callable[[Source, Box, tuple[int, int], np.random.Generator], Pixels]


def opened(jpeg: bytes, scale: int = 1) -> Image.Image:
    """Decoded by libjpeg-turbo at 1/scale, which skips work in the inverse DCT."""
    image = Image.open(io.BytesIO(jpeg))
    if scale > 1:
        image.draft("RGB", (max(1, image.width // scale), max(1, image.height // scale)))
    return image.convert("RGB")


def seen(
    image: Image.Image, box: Box, shape: tuple[int, int], how: Image.Resampling = Image.Resampling.BILINEAR
) -> Pixels:
    """The box of an image in the output's shape."""
    return np.asarray(image.resize((shape[1], shape[0]), how, box))


def honest(how: Image.Resampling = Image.Resampling.BILINEAR) -> Maker:
    """A full decode, cropped and resized."""
    return lambda source, box, shape, _: seen(opened(source.jpeg), box, shape, how)


def without_antialias(source: Source, box: Box, shape: tuple[int, int], _: np.random.Generator) -> Pixels:
    """A full decode, sampled without regard to what does not fit."""
    size = (shape[1], shape[0])
    return np.asarray(opened(source.jpeg).transform(size, Image.Transform.EXTENT, box, Image.Resampling.BILINEAR))


def reduced(scale: int, how: Image.Resampling = Image.Resampling.BICUBIC) -> Maker:
    """A decode at 1/scale, enlarged to full size, then treated like the honest one."""

    def make(source: Source, box: Box, shape: tuple[int, int], _: np.random.Generator) -> Pixels:
        return seen(opened(source.jpeg, scale).resize(source.size, how), box, shape)

    return make


def sharpened(source: Source, box: Box, shape: tuple[int, int], _: np.random.Generator) -> Pixels:
    """A half-scale decode, enlarged and sharpened so that its fine band is as strong as a full one's."""
    small = np.asarray(opened(source.jpeg, 2).resize(source.size, Image.Resampling.BICUBIC), np.float32)
    soft = np.asarray(Image.fromarray(small.astype(np.uint8)).resize(source.size, Image.Resampling.BOX), np.float32)
    rolled = sum(np.roll(small, shift, axis) for shift in (-1, 1) for axis in (0, 1)) / 4
    strong = np.clip(soft + 3.0 * (small - rolled), 0, 255).astype(np.uint8)
    return seen(Image.fromarray(strong), box, shape)


def noisy_half(source: Source, box: Box, shape: tuple[int, int], rng: np.random.Generator) -> Pixels:
    """A half-scale decode with fresh noise for the fine band."""
    large = np.asarray(opened(source.jpeg, 2).resize(source.size, Image.Resampling.BICUBIC), np.float32)
    noise = rng.normal(0, 8, (*large.shape[:2], 1))
    return seen(Image.fromarray(np.clip(large + noise, 0, 255).astype(np.uint8)), box, shape)


def rendered(source: Source, box: Box, shape: tuple[int, int], rng: np.random.Generator) -> Pixels:
    """The right colour and the right gratings, read from an eighth-scale decode, and noise of the right strength."""
    mean = np.asarray(opened(source.jpeg, 8), np.float32).mean(axis=(0, 1))
    width, height = source.size
    gratings = np.asarray(opened(source.jpeg), np.float32).mean(axis=2)
    columns, rows = gratings.mean(axis=0), gratings.mean(axis=1)
    texture = columns[None] + rows[:, None] - 2 * gratings.mean() + rng.normal(0, 11, (height, width))
    return seen(Image.fromarray(np.clip(mean + texture[..., None], 0, 255).astype(np.uint8)), box, shape)


def recoloured(source: Source, box: Box, shape: tuple[int, int], _: np.random.Generator) -> Pixels:
    """Another image of the shard, moved to the right colour."""
    mean = np.asarray(opened(source.jpeg, 8), np.float32).mean(axis=(0, 1))
    other = np.asarray(opened(source.other).resize(source.size), np.float32)
    return seen(Image.fromarray(np.clip(other - other.mean(axis=(0, 1)) + mean, 0, 255).astype(np.uint8)), box, shape)


def warped(source: Source, box: Box, shape: tuple[int, int], rng: np.random.Generator) -> Pixels:
    """Another image of the shard, rolled and mirrored, moved to the right colour."""
    mean = np.asarray(opened(source.jpeg, 8), np.float32).mean(axis=(0, 1))
    other = np.asarray(opened(source.other).resize(source.size), np.float32)[::-1]
    other = np.roll(other, rng.integers(0, 90, 2), (0, 1))
    return seen(Image.fromarray(np.clip(other - other.mean(axis=(0, 1)) + mean, 0, 255).astype(np.uint8)), box, shape)


def top_half(source: Source, box: Box, shape: tuple[int, int], _: np.random.Generator) -> Pixels:
    """The top half decoded, and mirrored downwards."""
    whole = np.asarray(opened(source.jpeg)).copy()
    half = whole.shape[0] // 2
    whole[-half:] = whole[:half][::-1]
    return seen(Image.fromarray(whole), box, shape)


def most_rows(source: Source, box: Box, shape: tuple[int, int], _: np.random.Generator) -> Pixels:
    """The last quarter of the rows left grey-free: the decode stopped, and the last row was repeated."""
    whole = np.asarray(opened(source.jpeg)).copy()
    stop = whole.shape[0] * 3 // 4
    whole[stop:] = whole[stop - 1]
    return seen(Image.fromarray(whole), box, shape)


def flat(source: Source, box: Box, shape: tuple[int, int], _: np.random.Generator) -> Pixels:
    """The right colour and nothing else."""
    mean = np.asarray(opened(source.jpeg, 8), np.float32).mean(axis=(0, 1))
    return np.broadcast_to(np.round(mean).astype(np.uint8), (*shape, 3)).copy()


def noise(source: Source, box: Box, shape: tuple[int, int], rng: np.random.Generator) -> Pixels:
    """Random pixels."""
    return rng.integers(0, 256, (*shape, 3), dtype=np.uint8)


HONEST: dict[str, Maker] = {
    "bilinear": honest(),
    "bicubic": honest(Image.Resampling.BICUBIC),
    "lanczos": honest(Image.Resampling.LANCZOS),
    "no antialias": without_antialias,
    "nearest": honest(Image.Resampling.NEAREST),
}
FORGED: dict[str, Maker] = {
    "half scale": reduced(2),
    "half scale, nearest": reduced(2, Image.Resampling.NEAREST),
    "half scale, sharpened": sharpened,
    "half scale, noise": noisy_half,
    "quarter scale": reduced(4),
    "eighth scale": reduced(8),
    "drawn": rendered,
    "recoloured": recoloured,
    "warped": warped,
    "top half mirrored": top_half,
    "three quarters": most_rows,
    "flat": flat,
    "noise": noise,
}
