"""How much of each image the standard job decodes and shows, to hold a graph's decoding work against.

Pure functions over image sizes. What comes out of both sides is compared in `grader_service.model.batch_geometry`.
"""

import math
from collections.abc import Sequence

import numpy as np

from grader_service.held_out.proof import LOWEST

AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
"""The standard job: torchvision's `RandomResizedCrop` with its defaults."""
_GRID = 64
_TALLEST = 1 / 6
"""Width over height of the tallest images that are taken for what they are: of taller ones the standard job's window is
so small a part, and so near the middle, that a graph could leave most of a file unread."""
_ATTEMPTS = 10
"""Windows that are drawn before one that fits is given up."""

Sizes = Sequence[tuple[int, int]]
"""(width, height) of source images, pixels."""


def standard_work(sizes: Sizes) -> tuple[float, float]:
    """Share of all pixels that the standard job shows, and share of them in images whose window reaches their end.

    About 0.43 and 0.89 for 500 × 375. The end is the lowest third of an image.
    """
    shapes = np.maximum([width / height for width, height in sizes], _TALLEST)
    aspects, which = np.unique(np.round(shapes, 3), return_inverse=True)
    parts = np.array([_windows(float(aspect)) for aspect in aspects])[which]
    area, low = np.average(parts, axis=0, weights=[width * height for width, height in sizes])
    return float(area), float(low)


def _windows(aspect: float) -> tuple[float, float]:
    """Mean area of a random window in an image of width/height `aspect`, and how often one reaches the lowest third.

    Area is uniform and the logarithm of the ratio is uniform, and what does not fit is drawn again up to ten times, as
    DALI and torchvision do. The place of a window is uniform over those where it fits. Where none of ten fits, both
    take the largest window of an allowed ratio, from the middle.
    """
    areas = AREA[0] + (AREA[1] - AREA[0]) * (np.arange(_GRID) + 0.5) / _GRID
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    ratios = np.exp(low + (high - low) * (np.arange(_GRID) + 0.5) / _GRID)
    wide, tall = np.sqrt(areas[:, None] * ratios / aspect), np.sqrt(areas[:, None] * aspect / ratios)
    fits = (wide <= 1) & (tall <= 1)
    height = min(1.0, aspect / RATIO[0])
    middle = np.array([min(RATIO[1] / aspect, height, 1.0), (1 + height) / 2 > 1 - LOWEST])
    if not fits.any():
        return float(middle[0]), float(middle[1])
    drawn = np.array([np.broadcast_to(areas[:, None], fits.shape)[fits].mean(), _reach(tall[fits])])
    missed = (1 - fits.mean()) ** _ATTEMPTS
    found = (1 - missed) * drawn + missed * middle
    return float(found[0]), float(found[1])


def _reach(tall: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Share of windows of these heights (shares of the image's) that reach the lowest third."""
    room = np.maximum(1 - tall, 1e-9)
    return float(np.minimum(1.0, LOWEST / room).mean())
