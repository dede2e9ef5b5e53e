"""Whether two sides of a comparison do the same work: how much of each image they decode and show.

Pure functions over a reference plan (see `sandbox/guest/trusted/reference_plan.py` and the steps in
`sandbox/guest/graph/view.py`) and image sizes. What comes out is compared in `grader_service.batch_geometry`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

AREA_FLOOR = 0.8
"""Least share of the standard job's area that counts as the same work."""
STANDARD = {"op": "random_resized_crop", "area": [0.08, 1.0], "ratio": [3 / 4, 4 / 3], "size": [224, 224]}
"""The standard job: torchvision's `RandomResizedCrop` with its defaults."""
_GRID = 64

Sizes = Sequence[tuple[int, int]]
"""(width, height) of source images, pixels."""


def expected_area(plan: Mapping[str, object], sizes: Sizes) -> float | None:
    """Mean share of a source image that shows in the output of the plan's job, in (0, 1].

    Args:
        plan: a reference plan; only `view` is read.
        sizes: of the held-out images, at least one.

    Returns:
        None when the graph computes a window in a way that cannot be read from it, or chooses between decoders.
    """
    return _shown(_steps(plan), sizes)


def decoded_area(plan: Mapping[str, object], sizes: Sizes) -> float | None:
    """Mean share of a source image that the decoder itself has to decode, in (0, 1]; None when it cannot be read.

    It is 1 unless the graph decodes a window only (`image_random_crop`, `image_crop`, `image_slice`).
    """
    return _shown([step for step in _steps(plan) if step.get("decoder")], sizes)


def standard_area(sizes: Sizes) -> float:
    """Mean share that torchvision's `RandomResizedCrop` shows of images of these sizes; about 0.5."""
    area = _shown([STANDARD], sizes)
    assert area is not None  # noqa: S101 - the standard job is known
    return area


def lesser_job(plan: Mapping[str, object], sizes: Sizes) -> str | None:
    """Says that the graph decodes clearly less of each image than the standard job; None when it does not.

    The rule: what the decoder decodes of an image must on average be at least 0.8 of what torchvision's default
    `RandomResizedCrop` shows of it. A loader of PyTorch decodes whole images whatever it shows, so a graph that decodes
    tiny windows wins by doing less, not by being faster. What the learner's own loader is said to do makes no
    difference, since that is a claim. A window cut out after decoding is not limited, for it saves no decoding. A
    window that cannot be read from the graph, or one of several decoders, is not judged here but by its pixels: see
    `held_out.proof.prove`, which compares the area found in them with `standard_area`.
    """
    decoded, standard = decoded_area(plan, sizes), standard_area(sizes)
    if decoded is None or decoded >= AREA_FLOOR * standard:
        return None
    return (
        f"Your graph decodes {decoded:.0%} of each image on average; the standard augmentation (RandomResizedCrop with "
        f"scale (0.08, 1)) shows {standard:.0%}, and a PyTorch loader decodes all of it. Use random_area=[0.08, 1.0], "
        "or decode whole images and crop afterwards."
    )


def _steps(plan: Mapping[str, object]) -> list[Mapping[str, object]]:
    steps = plan.get("view")
    return [step for step in steps if isinstance(step, Mapping)] if isinstance(steps, Sequence) else []


def _shown(steps: Iterable[Mapping[str, object]], sizes: Sizes) -> float | None:
    """Follows the sizes of all images through the steps; the order is kept, so that a resize changes what a crop is."""
    width, height = (np.array(sides, np.float64) for sides in zip(*sizes, strict=True))
    share = np.ones(len(sizes))
    for step in steps:
        kind, size = step.get("op"), _pair(step.get("size"))
        if kind in ("unknown", "several"):
            return None
        if kind == "resize":
            height, width = _resized(height, width, size, str(step.get("mode")))
            continue
        if kind in ("random_crop", "random_resized_crop"):
            aspects, which = np.unique(np.round(width / height, 3), return_inverse=True)
            parts = [_mean_window(aspect, _pair(step.get("area")), _pair(step.get("ratio"))) for aspect in aspects]
            side = np.sqrt(np.array(parts)[which])
            tall, wide = side, side
        elif kind == "slice":
            given = _pair(step.get("share"))
            tall, wide = np.full(len(sizes), given[0]), np.full(len(sizes), given[1])
        else:
            tall = np.minimum(size[0] or height, height) / height
            wide = np.minimum(size[1] or width, width) / width
        share = share * tall * wide
        height, width = np.maximum(height * tall, 1), np.maximum(width * wide, 1)
        if kind == "random_resized_crop":
            height, width = _resized(height, width, size, "stretch")
    return float(share.mean())


def _resized(
    height: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    width: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    size: tuple[float, float],
    mode: str,
) -> tuple["np.ndarray[tuple[int], np.dtype[np.float64]]", "np.ndarray[tuple[int], np.dtype[np.float64]]"]:
    if not any(size):
        return height, width
    if mode == "stretch" and all(size):
        return np.full_like(height, size[0]), np.full_like(width, size[1])
    scales = [wanted / side for wanted, side in zip(size, (height, width), strict=True) if wanted]
    scale = np.max(scales, axis=0) if mode == "not_smaller" else np.min(scales, axis=0)
    return height * scale, width * scale


def _mean_window(aspect: float, area: tuple[float, float], ratio: tuple[float, float]) -> float:
    """Mean share of a random window in an image of width/height `aspect`, over those windows that fit into it.

    Area is uniform and the logarithm of the ratio is uniform, and what does not fit is drawn again, as DALI and
    torchvision do. Where nothing fits, both take the largest window of an allowed ratio.
    """
    areas = area[0] + (area[1] - area[0]) * (np.arange(_GRID) + 0.5) / _GRID
    low, high = math.log(ratio[0]), math.log(ratio[1])
    ratios = np.exp(low + (high - low) * (np.arange(_GRID) + 0.5) / _GRID)
    wide, tall = np.sqrt(areas[:, None] * ratios / aspect), np.sqrt(areas[:, None] * aspect / ratios)
    fits = (wide <= 1) & (tall <= 1)
    if not fits.any():
        return float(min(1.0, ratio[1] / aspect, aspect / ratio[0]))
    return float(np.broadcast_to(areas[:, None], fits.shape)[fits].mean())


def _pair(value: object) -> tuple[float, float]:
    if isinstance(value, Sequence) and len(value) == 2:
        return float(value[0]), float(value[1])
    return 0.0, 0.0
