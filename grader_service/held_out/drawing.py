"""Draws one held-out image: its colour, two gratings by which a crop is found again, and texture of its own."""

import functools
import io
from pathlib import Path
from typing import IO

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from PIL import Image

from grader_service.held_out.plan import key

QUALITY = 85
_GRATING = 7
_CYCLES = 39
_SHORTEST_PX = 6.4
_FINE_SHIFT = 3
"""Random bytes divided by eight: ±16 levels in every pixel."""
_CELL, _SPREAD = 4, 13
_WIDE, _WIDE_SPREAD = 3, 11
"""The smooth band is drawn on cells of 4 pixels, in values of ±13 levels, over cells three times as wide with ±11 more;
with fine band and gratings never more than ±56 levels."""


def wavelength_px(size: tuple[int, int]) -> float:
    """Wavelength of both gratings, pixels: 12.8 for 500 × 375, longer in larger images, to survive shrinking."""
    return max(_SHORTEST_PX, max(size) / _CYCLES)


def draw_jpeg(seed: str, index: int, size: tuple[int, int], mark: NDArray[np.uint8]) -> bytes:
    """Image `index` of a shard as the bytes of a file; see `write_jpeg`."""
    file = io.BytesIO()
    write_jpeg(file, seed, index, size, mark)
    return file.getvalue()


def write_jpeg(file: Path | IO[bytes], seed: str, index: int, size: tuple[int, int], mark: NDArray[np.uint8]) -> None:
    """Writes image `index` of a shard as a baseline JPEG, 4:2:0, quality 85, without metadata or restart markers.

    Every random number comes from AES-128 in counter mode with a key of the seed's: no two images share texture, and
    who decodes some of them can tell nothing about the rest.

    Args:
        file: where to; for one on a disk Pillow lets go of the interpreter's lock while it compresses.
        size: (width, height), pixels.
        mark: (mean Y, Cb, Cr) of this image.
    """
    luma = _texture(_Entropy(seed, index), size, int(mark[0]))
    planes = [Image.fromarray(luma), Image.new("L", size, int(mark[1])), Image.new("L", size, int(mark[2]))]
    Image.merge("YCbCr", planes).save(file, "JPEG", quality=QUALITY, subsampling="4:2:0")


class _Entropy:
    """Random bytes of one image."""

    def __init__(self, seed: str, index: int) -> None:
        nonce = index.to_bytes(8, "big") + bytes(8)
        self._cipher = Cipher(algorithms.AES(key(seed, "texture")[:16]), modes.CTR(nonce)).encryptor()

    def take(self, height: int, width: int) -> NDArray[np.uint8]:
        """uint8 [height, width], uniform."""
        return np.frombuffer(self._cipher.update(bytes(height * width)), np.uint8).reshape(height, width)


def _texture(entropy: _Entropy, size: tuple[int, int], tone: int) -> NDArray[np.uint8]:
    """uint8 [height, width] luma. Sums wrap around on the way, and end between 0 and 255."""
    width, height = size
    luma: NDArray[np.uint8] = np.right_shift(entropy.take(height, width), np.uint8(_FINE_SHIFT))
    phases = entropy.take(1, 2)[0]
    columns, rows = (_grating(side, wavelength_px(size), int(phase)) for side, phase in zip(size, phases, strict=True))
    luma += columns + np.uint8((tone - 16) % 256)
    luma += rows[:, None]
    luma += _smooth(entropy, size)
    return luma


def _smooth(entropy: _Entropy, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Random values on two grids of cells with straight lines between; two's complement in uint8."""
    cells = (-(-size[0] // _CELL), -(-size[1] // _CELL))
    wide = _levels(entropy, -(-cells[0] // _WIDE), -(-cells[1] // _WIDE), _WIDE_SPREAD)
    grid = _stretched(wide, cells, _WIDE) + _levels(entropy, *cells, _SPREAD)
    smooth = _stretched(grid, size, _CELL)
    smooth -= np.uint8(_SPREAD + _WIDE_SPREAD)
    return smooth


def _levels(entropy: _Entropy, width: int, height: int, spread: int) -> NDArray[np.uint8]:
    """uint8 [height, width] from 0 to twice the spread."""
    return (entropy.take(height, width).astype(np.uint16) * (2 * spread + 1) >> 8).astype(np.uint8)


def _stretched(grid: NDArray[np.uint8], size: tuple[int, int], cell: int) -> NDArray[np.uint8]:
    """The grid enlarged by `cell`, less what overhangs `size`."""
    box = (0.0, 0.0, size[0] / cell, size[1] / cell)
    return np.array(Image.fromarray(grid).resize(size, Image.Resampling.BILINEAR, box), np.uint8)


@functools.lru_cache(maxsize=256)
def _grating(side: int, wavelength: float, phase: int) -> NDArray[np.uint8]:
    """uint8 [side], two's complement: a cosine of ±7 levels; `phase` counts 256ths of a cycle."""
    turns = np.arange(side) / wavelength + phase / 256
    return np.round(_GRATING * np.cos(2 * np.pi * turns)).astype(np.int8).view(np.uint8)
