"""Finds which part of a held-out image a delivered one shows: the crop box, and whether it is mirrored.

The gratings give the scale, a correlation with our own decode gives the place, and least squares on the gradients
bring both below a tenth of a pixel. Rotation, shear and perspective are not looked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from grader_service.held_out.reference import Box, Reference, samplings

_WORK_SIDE = 256
_LEAST_SHARE = 0.12
"""A crop is not looked for below this share of a side."""
_SHARP_PEAK = 9.0
"""Height of a correlation peak, in standard deviations of the plane, from which no other scale is tried."""
_EXACT, _SURE = 0.93, 0.98
"""Match from which an ordinary crop is taken for the one that it is, and below which a crop that is a pixel or two
smaller may match better."""
_CLEAR = 5.0
"""Height of a grating's peak over the mean of the spectrum where it may lie."""
_STEPS = ((2, 3), (1, 2), (0, 2))
"""(scale of our decode, refinements): coarse first, so that a first error of some pixels is no trap."""


@dataclass(frozen=True)
class Place:
    """Where a delivered image lies in its source."""

    box: Box
    mirrored: bool
    match: float
    """Correlation of the delivered luma with our decode of the box, all bands together, -1 to 1."""
    gratings: bool = False
    """Both gratings show, upright: the image was neither rotated nor blurred away, wherever its texture is from."""


def locate(luma: NDArray[np.float32], reference: Reference) -> Place:
    """The best place found; `match` says how far to believe it.

    Args:
        luma: float32 [H, W], the delivered image with its channels added up, any affine scale.
    """
    exact = _frame(luma, reference)
    if exact is not None:
        if exact.match >= _SURE:
            return exact
        refined = _refine(luma, reference, exact)  # a crop beside it may match better
        return replace(refined, gratings=exact.gratings) if refined.match > exact.match else exact
    width, height = reference.size
    best, sharpest = Place((0.0, 0.0, float(width), float(height)), mirrored=False, match=0.0), 0.0
    plane = _Plane(reference)
    across, clear_across = _frequencies(luma.mean(axis=0), reference.wavelength_px, width)
    down, clear_down = _frequencies(luma.mean(axis=1), reference.wavelength_px, height)
    pairs = sorted(
        ((i + j, (x, y)) for i, x in enumerate(across) for j, y in enumerate(down)), key=lambda pair: pair[0]
    )
    for share in [pair for _, pair in pairs] + [(x1 - x0, y1 - y0) for x0, y0, x1, y1 in _frames(luma, reference)]:
        for mirrored in (False, True):
            peak, box = plane.search(luma[:, ::-1] if mirrored else luma, share)
            if peak > sharpest:
                best, sharpest = Place(box, mirrored, 0.0), peak
        if sharpest >= _SHARP_PEAK:
            break
    return replace(_refine(luma, reference, best), gratings=clear_across and clear_down)


def _frames(luma: NDArray[np.float32], reference: Reference) -> Iterator[Box]:
    """The ordinary crops that nobody drew at random, as shares of the sides: all of it, or the middle."""
    width, height = reference.size
    shape = luma.shape[1] / luma.shape[0]
    yield 0.0, 0.0, 1.0, 1.0
    for zoom in (1.0, 0.875):
        x, y = (
            (zoom * height * shape / width, zoom) if width / height > shape else (zoom, zoom * width / shape / height)
        )
        yield (1 - x) / 2, (1 - y) / 2, (1 + x) / 2, (1 + y) / 2


def _frame(luma: NDArray[np.float32], reference: Reference) -> Place | None:
    """An ordinary crop that fits as it is; small outputs without antialiasing are too folded for anything else."""
    (width, height), shape = reference.size, (luma.shape[0], luma.shape[1])
    for x0, y0, x1, y1 in _frames(luma, reference):
        box = (x0 * width, y0 * height, x1 * width, y1 * height)
        for way in samplings((0.0, 0.0, float(width), float(height)), shape):
            view = reference.view(0, box, shape, way)
            for mirrored in (False, True):
                match = correlation(luma[:, ::-1] if mirrored else luma, view)
                if match >= _EXACT:
                    return Place(box, mirrored, match, gratings=True)
    return None


def correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Pearson's correlation of two arrays of one size, -1 to 1; 0 where either is constant."""
    a, b = one.ravel() - one.mean(), other.ravel() - other.mean()
    scale = float(np.sqrt(float(a @ a) * float(b @ b)))
    return float(a @ b) / scale if scale > 1e-9 else 0.0


def _frequencies(profile: NDArray[np.float32], wavelength: float, side: int) -> tuple[list[float], bool]:
    """The two best shares of `side` that a crop may have, and whether the grating is clear to see in the profile."""
    from scipy import fft  # noqa: PLC0415 - its import costs more than most commands need

    length = len(profile)
    window = np.hanning(length + 2)[1:-1]
    padded = fft.next_fast_len(max(1024, 4 * length), real=True)
    spectrum = np.abs(fft.rfft((profile - profile.mean()) * window, padded))
    # Cycles across the output are the crop's width over the wavelength.
    cycles = np.arange(len(spectrum)) * length / padded
    share = cycles * wavelength / side
    allowed = (share >= _LEAST_SHARE) & (share <= 1.03) & (cycles <= 0.49 * length)
    spectrum = np.where(allowed, spectrum, 0.0)
    found: list[float] = []
    clear = bool(allowed.any() and spectrum.max() > _CLEAR * spectrum[allowed].mean())
    for _ in range(2):
        top = int(spectrum.argmax())
        if spectrum[top] <= 0:
            break
        found.append(min(1.0, _vertex(spectrum, top) * length / padded * wavelength / side))
        lobe = -(-2 * padded // length)
        spectrum[max(0, top - lobe) : top + lobe + 1] = 0.0
    return found, clear


def _vertex(values: NDArray[np.floating], top: int) -> float:
    """Where the parabola through a maximum and its neighbours has its vertex."""
    if not 0 < top < len(values) - 1:
        return float(top)
    left, middle, right = (float(values[top + k]) for k in (-1, 0, 1))
    bend = left - 2 * middle + right
    return top + (0.5 * (left - right) / bend if bend < 0 else 0.0)


class _Plane:
    """The whole source at a low resolution, ready to be correlated with."""

    def __init__(self, reference: Reference) -> None:
        from scipy import fft  # noqa: PLC0415 - see `_frequencies`

        self._fft = fft
        width, height = reference.size
        self._size = reference.size
        self._factor = min(0.5, _WORK_SIDE / max(width, height))
        self._shape = (max(8, round(height * self._factor)), max(8, round(width * self._factor)))
        source = reference.view(1, (0.0, 0.0, float(width), float(height)), self._shape, "antialias")
        self._spectrum = fft.rfft2(source - source.mean())

    def search(self, luma: NDArray[np.float32], share: tuple[float, float]) -> tuple[float, Box]:
        """Height of the best peak in standard deviations, and the box that it stands for."""
        height, width = self._shape
        crop = (min(height, max(4, round(height * share[1]))), min(width, max(4, round(width * share[0]))))
        small = np.asarray(Image.fromarray(luma).resize((crop[1], crop[0]), Image.Resampling.BILINEAR))
        plane = np.zeros(self._shape, np.float32)
        plane[: crop[0], : crop[1]] = small - small.mean()
        cross = self._spectrum * np.conj(self._fft.rfft2(plane))
        # Half whitened: gratings repeat, and would give a peak at every wavelength.
        strength = np.abs(cross)
        cross /= np.maximum(strength, 1e-6 * strength.max() + 1e-30) ** 0.75
        heights = self._fft.irfft2(cross, self._shape)
        allowed = heights[: height - crop[0] + 1, : width - crop[1] + 1]
        y, x = np.unravel_index(int(allowed.argmax()), allowed.shape)
        peak = float(allowed[y, x] / (heights.std() + 1e-30))
        sx, sy = self._size[0] / width, self._size[1] / height
        box_width, box_height = share[0] * self._size[0], share[1] * self._size[1]
        x0 = min(float(x) * sx, self._size[0] - box_width)
        y0 = min(float(y) * sy, self._size[1] - box_height)
        return peak, (max(0.0, x0), max(0.0, y0), x0 + box_width, y0 + box_height)


def _refine(luma: NDArray[np.float32], reference: Reference, place: Place) -> Place:
    """Least squares on the gradients, edge by edge of the box."""
    luma = luma[:, ::-1] if place.mirrored else luma
    box, match = place.box, 0.0
    stride = 2 if luma.size > 100_000 and len(luma) % 2 == 0 else 1  # every other row is enough in large outputs
    for scale, times in _STEPS:
        for _ in range(times):
            box, match = _step(luma, reference, scale, box, stride)
    return Place(box, place.mirrored, match)


def _step(luma: NDArray[np.float32], reference: Reference, scale: int, box: Box, stride: int) -> tuple[Box, float]:
    """One improvement of the box, and the correlation before it."""
    height, width = luma.shape
    view = reference.view(scale, box, (height, width), "antialias")
    across = np.gradient(view, axis=1)[::stride].ravel() * (width / (box[2] - box[0]))
    down = np.gradient(view, axis=0)[::stride].ravel() * (height / (box[3] - box[1]))
    view = view[::stride]
    u = np.broadcast_to((np.arange(width, dtype=np.float32) + 0.5) / width, view.shape).ravel()
    v = np.broadcast_to((np.arange(0, height, stride, dtype=np.float32)[:, None] + 0.5) / height, view.shape).ravel()
    flat = view.ravel() - view.mean()
    wanted = luma[::stride].ravel() - luma[::stride].mean()
    basis = np.stack([flat, across * (1 - u), down * (1 - v), across * u, down * v])
    match = float(flat @ wanted / (np.sqrt(float(flat @ flat) * float(wanted @ wanted)) + 1e-12))
    normal = (basis @ basis.T).astype(np.float64)
    normal[np.diag_indices(5)] *= 1 + 1e-6
    try:
        gain, *moves = np.linalg.solve(normal, (basis @ wanted).astype(np.float64))
    except np.linalg.LinAlgError:
        return box, match
    if gain <= 0:
        return box, match
    limit = 2.0 * max(1.0, (box[2] - box[0]) / width, (box[3] - box[1]) / height)
    moved = [edge + float(np.clip(move / gain, -limit, limit)) for edge, move in zip(box, moves, strict=True)]
    x0, x1 = _inside(moved[0], moved[2], reference.size[0])
    y0, y1 = _inside(moved[1], moved[3], reference.size[1])
    return (x0, y0, x1, y1), match


def _inside(low: float, high: float, side: int) -> tuple[float, float]:
    low = min(max(low, 0.0), side - 4.0)
    return low, max(min(high, float(side)), low + 4.0)
