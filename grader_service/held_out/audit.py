"""Compares one delivered image with our own decode of the file: was all of it decoded, at full resolution?

A decode at half scale costs less and lacks the finest texture. So the image is compared with *what a full decode has
and a half-scale decode has not*, both seen through the crop that was found. An image that was enlarged from a reduced
decode, drawn from its mark, or copied from another one has nothing of it.
"""

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader_service.held_out.drawing import draw_jpeg
from grader_service.held_out.plan import ShardPlan, marks
from grader_service.held_out.reference import Box, Reference, decode, samplings
from grader_service.held_out.registration import Place, correlation, locate
from grader_service.model.measurement import ContentKind

_LEAST_RMS = 0.9
"""Levels of difference between two scales, seen through the crop, below which an honest output may have lost it."""
_DECODED = 0.55
_LEAST_BLOCK = 0.3
_PRESENT = 0.5
"""Correlation from which a coarser band is taken to be there, in an image whose finest one is not."""
_LOCATED = 0.25
_GRID = 4
_LEAST_BLOCK_PX = 8
Image = tuple[int, NDArray[np.uint8]]
"""Place in the plan that an image's colour says, and its pixels [H, W, C]."""
_chance = random.SystemRandom()


@dataclass(frozen=True)
class Audit:
    """What the pixels of one delivered image say."""

    kind: ContentKind
    texture: float
    """Correlation of the finest comparable band with our own decode, 1 for equal; 0 where nothing could be compared."""
    worst_block: float
    """The least of it over a grid of four by four blocks."""
    area: float
    """Share of the source image that is visible, 0 to 1."""
    bottom: float
    """How far down the visible part reaches, as a share of the source's height."""
    box: Box
    mirrored: bool
    band: int = 0
    """0: the band that only a full decode has; 1: only full and half; 2: all but an eighth."""


def spot_check(plan: ShardPlan, images: Sequence[Image], most: int) -> list[Audit]:
    """The audits of at most `most` of these images, which the system's generator chooses; each is drawn again."""
    colours = marks(plan)
    return [
        audit_image(pixels, decode(draw_jpeg(plan.seed, index, plan.sizes[index], colours[index])))
        for index, pixels in _chance.sample(images, min(most, len(images)))
    ]


def audit_image(delivered: NDArray[np.generic], reference: Reference) -> Audit:
    """Judges one image.

    Args:
        delivered: [H, W, C] or [C, H, W], C of 1 or 3, integers or floats on any scale.
        reference: our decode (`reference.decode`) of the file that its colour says it is.
    """
    luma = luma_of(delivered)
    if luma is None:
        return _nothing(reference, ContentKind.UNKNOWN)
    if float(luma.std()) < 1e-6 * (1.0 + float(np.abs(luma).max())):
        return _nothing(reference, ContentKind.RENDERED)
    place = locate(luma, reference)
    seen = np.ascontiguousarray(luma[:, ::-1]) if place.mirrored else luma
    x0, y0, x1, y1 = place.box
    area = (x1 - x0) * (y1 - y0) / (reference.size[0] * reference.size[1])
    views = _best_views(seen, reference, place)
    bands = [_Band(seen, finer, coarser) for finer, coarser in itertools.pairwise([*views, np.zeros_like(seen)])]
    finest = next((number for number, band in enumerate(bands[:-1]) if band.rms >= _LEAST_RMS), None)
    if finest is None:
        return _nothing(reference, ContentKind.UNKNOWN)
    band = bands[finest]
    kind = _kind(bands[finest:], place, scaled=finest > 0)
    bottom = y1 / reference.size[1]
    return Audit(kind, band.whole, band.worst, min(area, 1.0), bottom, place.box, place.mirrored, finest)


def luma_of(delivered: NDArray[np.generic]) -> NDArray[np.float32] | None:
    """float32 [H, W]: the channels added up; null when it is no image or holds what is not finite."""
    image = np.asarray(delivered)
    if image.ndim == 3 and image.shape[2] not in (1, 3) and image.shape[0] in (1, 3):
        image = np.moveaxis(image, 0, 2)
    if image.ndim != 3 or image.shape[2] not in (1, 3) or min(image.shape[:2]) < 2 * _GRID:
        return None
    luma = image.astype(np.float32).sum(axis=2)
    return luma if np.isfinite(luma).all() else None


def _nothing(reference: Reference, kind: ContentKind) -> Audit:
    box = (0.0, 0.0, float(reference.size[0]), float(reference.size[1]))
    return Audit(kind, 0.0, 0.0, 0.0, 0.0, box, mirrored=False)


def _kind(bands: "list[_Band]", place: Place, *, scaled: bool) -> ContentKind:
    """What the finest comparable band and the coarser ones behind it say."""
    band, *coarser = bands
    if band.whole >= _DECODED and band.worst >= _LEAST_BLOCK:
        return ContentKind.COARSE if scaled else ContentKind.FULL
    if band.whole < _PRESENT and any(one.whole >= _PRESENT and one.worst >= _LEAST_BLOCK for one in coarser):
        return ContentKind.REDUCED
    return ContentKind.RENDERED if place.gratings or place.match >= _LOCATED else ContentKind.UNKNOWN


def _best_views(luma: NDArray[np.float32], reference: Reference, place: Place) -> list[NDArray[np.float32]]:
    """The box at four scales, sampled in the way that fits best.

    When an output is smaller than its crop, a resize without antialiasing folds the fine texture back instead of
    removing it. Then that is what a full decode looks like.
    """
    shape = (luma.shape[0], luma.shape[1])
    full = {way: reference.view(0, place.box, shape, way) for way in samplings(place.box, shape)}
    best = max(full, key=lambda way: correlation(luma, full[way]))
    return [full[best], *(reference.view(scale, place.box, shape, best) for scale in (1, 2, 3))]


class _Band:
    """What one scale has and the next lacks, looked for in the delivered image when it is asked for."""

    def __init__(self, luma: NDArray[np.float32], finer: NDArray[np.float32], coarser: NDArray[np.float32]) -> None:
        self._luma, self._coarser, self._detail = luma, coarser, finer - coarser

    @functools.cached_property
    def rms(self) -> float:
        """How much of it there is to be seen, levels."""
        return float(_without_gratings(self._detail).std())

    @functools.cached_property
    def whole(self) -> float:
        """How much of it the whole image has; see `Audit.texture`."""
        return _partial(self._luma, self._coarser, self._detail)

    @functools.cached_property
    def worst(self) -> float:
        """The least of it in any block; as `whole` in an image that is too small for blocks."""
        height, width = self._luma.shape
        if min(height, width) < _GRID * _LEAST_BLOCK_PX:
            return self.whole
        rows = np.linspace(0, height, _GRID + 1).astype(int)
        columns = np.linspace(0, width, _GRID + 1).astype(int)
        blocks = (
            (slice(y0, y1), slice(x0, x1))
            for y0, y1 in itertools.pairwise(rows)
            for x0, x1 in itertools.pairwise(columns)
        )
        return min(_partial(self._luma[block], self._coarser[block], self._detail[block]) for block in blocks)


def _partial(luma: NDArray[np.float32], known: NDArray[np.float32], detail: NDArray[np.float32]) -> float:
    """Correlation of `luma` and `detail`, after what either shares with `known` is taken away."""
    wanted, base, part = (_without_gratings(plane).ravel() for plane in (luma, known, detail))
    power = float(base @ base)
    if power > 0:
        wanted = wanted - base * (float(base @ wanted) / power)
        part = part - base * (float(base @ part) / power)
    return correlation(wanted, part)


def _without_gratings(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    """Less the mean of each row and column: gratings are the same in every image, so they prove nothing."""
    centred = plane - plane.mean(axis=0)
    flat: NDArray[np.float32] = centred - centred.mean(axis=1, keepdims=True)
    return flat
