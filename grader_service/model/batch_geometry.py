"""How the image batches of two loaders differ, in words; pure, so that a run and a judge can both say it."""

import math
from collections.abc import Sequence

_SIDE_TOLERANCE = 0.1
"""Sides may differ by this share: what a crop is rounded to is no difference in work."""
_CHANNELS = (1, 3, 4)


def geometry_difference(dali_shape: Sequence[int], loader_shape: Sequence[int]) -> str | None:
    """In words, how the batches of the two sides differ in image size or channels; None when they do not.

    Batch size and the order of the axes make no difference; sides may differ by a tenth.

    Args:
        dali_shape: of the DALI batch, `[N, H, W, C]` or `[N, C, H, W]`.
        loader_shape: of the learner's loader's image batch, a claim; nothing is said unless it has four dimensions.
    """
    if len(dali_shape) != 4 or len(loader_shape) != 4 or 0 in (*dali_shape, *loader_shape):
        return None
    ours, theirs = height_width_channels(dali_shape[1:]), height_width_channels(loader_shape[1:])
    told = []
    if any(abs(math.log(a / b)) > math.log1p(_SIDE_TOLERANCE) for a, b in zip(ours[:2], theirs[:2], strict=True)):
        share = ours[0] * ours[1] / (theirs[0] * theirs[1])
        told.append(
            f"DALI delivers {ours[0]} × {ours[1]} pixels and your DataLoader {theirs[0]} × {theirs[1]} "
            f"({share:.2g} times as many)"
        )
    if ours[2] != theirs[2]:
        told.append(f"DALI delivers {ours[2]} channels and your DataLoader {theirs[2]}")
    return "; ".join(told) or None


def image_axes(image: Sequence[int]) -> tuple[int, int, int]:
    """Axes of height, width and channels in an image of this shape, `[C, H, W]` or `[H, W, C]`."""
    return (1, 2, 0) if image[0] in _CHANNELS and image[2] not in _CHANNELS else (0, 1, 2)


def height_width_channels(image: Sequence[int]) -> tuple[int, int, int]:
    """Lengths of these axes."""
    height, width, channels = (image[axis] for axis in image_axes(image))
    return height, width, channels
