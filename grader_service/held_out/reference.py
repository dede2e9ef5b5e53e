"""Our own decodes of one held-out image, at each scale that JPEG offers, and their look through a crop box."""

import io
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from grader_service.held_out.drawing import wavelength_px

Sampling = Literal["antialias", "bilinear", "nearest"]
Box = tuple[float, float, float, float]
"""x0, y0, x1, y1: pixels of the source image, edges, origin top left."""
_FOLDS = 1.05
"""Times that a box is as large as the output, from which a resize without antialiasing folds fine texture back."""


@dataclass(frozen=True)
class Reference:
    """Luma of one image, decoded by libjpeg-turbo at full, half, quarter and eighth scale."""

    size: tuple[int, int]
    """(width, height), pixels."""
    scales: tuple[Image.Image, ...]
    """Mode F, from full scale downwards."""

    @property
    def wavelength_px(self) -> float:
        """Of the gratings."""
        return wavelength_px(self.size)

    def view(self, scale: int, box: Box, shape: tuple[int, int], sampling: Sampling) -> NDArray[np.float32]:
        """The box of the decode at 1/2^scale as float32 [height, width] of `shape`, enlarged or shrunk linearly."""
        image = self.scales[scale]
        fx, fy = image.width / self.size[0], image.height / self.size[1]
        # Where 8-pixel blocks overhang the edge, a reduced decode is a fraction of a pixel too wide.
        if scale:
            fx = fy = 0.5**scale
        inside = (box[0] * fx, box[1] * fy, min(box[2] * fx, image.width), min(box[3] * fy, image.height))
        size = (shape[1], shape[0])
        if sampling == "antialias":
            return np.asarray(image.resize(size, Image.Resampling.BILINEAR, inside))
        how = Image.Resampling.BILINEAR if sampling == "bilinear" else Image.Resampling.NEAREST
        return np.asarray(image.transform(size, Image.Transform.EXTENT, inside, how))


def samplings(box: Box, shape: tuple[int, int]) -> tuple[Sampling, ...]:
    """How an output of this [height, width] may have been sampled from the box, so that it has to be looked at so."""
    folds = max((box[2] - box[0]) / shape[1], (box[3] - box[1]) / shape[0]) > _FOLDS
    return ("antialias", "bilinear", "nearest") if folds else ("antialias",)


def decode(jpeg: bytes) -> Reference:
    """Decodes the file at four scales.

    Raises:
        OSError: it is no JPEG; ours are.
    """
    with Image.open(io.BytesIO(jpeg)) as image:
        size = image.size
    scales = []
    for scale in range(4):
        with Image.open(io.BytesIO(jpeg)) as image:
            image.draft("L", (max(1, size[0] >> scale), max(1, size[1] >> scale)))
            scales.append(image.convert("F"))
    return Reference(size, tuple(scales))
