"""Tells which held-out image each delivered one is, from nothing but mean colours.

Crop, flip and resize leave an image's mean colour where it was. Normalisation moves all of them by one unknown map
per channel, and the channel order is unknown: both are estimated from the set. What changes colours image by image
(hue, saturation, grayscale) makes this impossible, and that is said rather than guessed around.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grader_service.held_out.plan import TO_RGB, ShardPlan, codes, steps

Problem = Literal["no_images", "no_colour", "colours_changed"]

_SAMPLE = 1024
_SEARCH = 256
_FEWEST_TO_FIT = 24
_SURE_FIT, _GOOD_FIT = 0.08, 0.25
"""Mean distance from the nearest code, in steps, none counted above 0.5: surely right, and good enough; points thrown
at random lie at 0.4 and more."""
_NEAR = 0.5
_STARTS = 600
_GREY = 0.02
_MANY, _FEW = 48, 8
"""Colours that an estimate was made from, and codes on which it may not put all of them: noise has one mean colour."""
_KNOWN = (
    ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    ((0.0, 0.0, 0.0), (255.0, 255.0, 255.0)),
    ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    ((127.5, 127.5, 127.5), (127.5, 127.5, 127.5)),
    ((128.0, 128.0, 128.0), (128.0, 128.0, 128.0)),
    ((128.0, 128.0, 128.0), (1.0, 1.0, 1.0)),
    ((123.675, 116.28, 103.53), (1.0, 1.0, 1.0)),
    ((127.5, 127.5, 127.5), (255.0, 255.0, 255.0)),
)


@dataclass(frozen=True)
class Normalisation:
    """How received channels relate to RGB levels of 0 to 255: `received[c] = (rgb[order[c]] - mean[c]) / std[c]`."""

    order: tuple[int, int, int] = (0, 1, 2)
    """Which of red, green and blue each received channel is; (2, 1, 0) for BGR."""
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def to_rgb(self, received: NDArray[np.float64]) -> NDArray[np.float64]:
        """[N, 3] received means as RGB levels."""
        rgb = np.empty_like(received)
        rgb[:, self.order] = received * self.std + self.mean
        return rgb


@dataclass(frozen=True)
class Identities:
    """What a set of mean colours says."""

    ids: NDArray[np.int32]
    """[N] place in the plan; -1 where no code is near."""
    problem: Problem | None = None
    """Why nothing could be told; every id is -1 then."""
    normalisation: Normalisation | None = None
    """As estimated or given; null with a problem."""


class Identifier:
    """Knows the codes of one plan."""

    def __init__(self, plan: ShardPlan, *, normalisation: Normalisation | None = None) -> None:
        """Prepares to name images.

        Args:
            plan: the shard, or the shards made as parts of it.
            normalisation: taken as it is when known, such as from a graph; estimated from each set if absent.
        """
        self._codes = codes(plan).astype(np.float64)
        luma, chroma = steps(plan)
        self._to_steps = np.linalg.inv(TO_RGB) / np.array([[luma], [chroma], [chroma]])
        from scipy.spatial import cKDTree  # noqa: PLC0415 - its import costs more than most commands need

        self._tree = cKDTree(self._codes @ self._to_steps.T)
        self._given = normalisation

    def identify_means(self, means: NDArray[np.floating]) -> Identities:
        """Which image each row is.

        Args:
            means: [N, 3], mean of each channel over an image as delivered, any affine scale common to the set, RGB or
                BGR. A strided subsample of pixels will do; the middle of the frame is best where corners may be filled.
                At least 64 images, unless the normalisation is given or an ordinary one.
        """
        received = np.asarray(means, np.float64).reshape(-1, 3)
        finite = np.isfinite(received).all(axis=1)
        if not finite.any():
            return self._nothing(len(received), "no_images")
        sample = received[finite]
        if _grey(sample):
            return self._nothing(len(received), "no_colour")
        sample = sample[:: -(-len(sample) // _SAMPLE)]
        fit = self._given
        if fit is None:
            fit, residual = self._estimate(sample)
            if residual > _GOOD_FIT:
                return self._nothing(len(received), "colours_changed")
        ids = np.full(len(received), -1, np.int32)
        distance, nearest = self._nearest(fit.to_rgb(received[finite]))
        if self._given is None and _one_colour(sample, nearest):
            return self._nothing(len(received), "colours_changed")
        ids[finite] = np.where(distance <= _NEAR, nearest, -1)
        return Identities(ids, None, fit)

    def _nothing(self, images: int, problem: Problem) -> Identities:
        return Identities(np.full(images, -1, np.int32), problem)

    def _nearest(self, rgb: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Distance in steps and place of the nearest code."""
        distance, nearest = self._tree.query(rgb @ self._to_steps.T)
        return np.asarray(distance), np.asarray(nearest)

    def _estimate(self, sample: NDArray[np.float64]) -> tuple[Normalisation, float]:
        """The best of the ordinary normalisations and of fits to the set, and its residual."""
        few = sample[:: -(-len(sample) // _SEARCH)]
        best, least = Normalisation(), np.inf
        for start in itertools.chain(_ordinary(), self._guesses(sample)):
            fit, residual = self._refine(start, few)
            if residual < least:
                best, least = fit, residual
            if least <= _SURE_FIT:
                break
        return self._refine(best, sample)

    def _refine(self, fit: Normalisation, sample: NDArray[np.float64]) -> tuple[Normalisation, float]:
        """Nearest code and least squares in turn, until it stays."""
        distance, nearest = self._nearest(fit.to_rgb(sample))
        residual = _residual(distance)
        for _ in range(12):
            near = distance <= max(2 * residual, _NEAR / 2)
            if len(np.unique(nearest[near])) < _FEWEST_TO_FIT:
                break
            better = self._least_squares(fit.order, sample[near], self._codes[nearest[near]])
            if better is None:
                break
            distance, nearest = self._nearest(better.to_rgb(sample))
            now = _residual(distance)
            if now > residual * 0.995:
                return (better, now) if now < residual else (fit, residual)
            fit, residual = better, now
        return fit, residual

    def _least_squares(
        self, order: tuple[int, int, int], received: NDArray[np.float64], rgb: NDArray[np.float64]
    ) -> Normalisation | None:
        """The map per channel; the codes are exact, so the received values are regressed on them."""
        mean, std = [], []
        for channel, source in enumerate(order):
            level = rgb[:, source]
            spread = level - level.mean()
            slope = float(spread @ received[:, channel]) / max(float(spread @ spread), 1e-12)
            if slope <= 0 or not np.isfinite(slope):
                return None
            std.append(1 / slope)
            mean.append(float(level.mean()) - float(received[:, channel].mean()) / slope)
        return Normalisation(order, (mean[0], mean[1], mean[2]), (std[0], std[1], std[2]))

    def _guesses(self, sample: NDArray[np.float64]) -> Iterator[Normalisation]:
        """From the quantiles of both sets; then from places around there, always the same ones."""
        levels = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
        generator = np.random.default_rng(0)
        had: NDArray[np.float64] = np.quantile(sample, levels, axis=0)
        if np.ptp(had[1:-1], axis=0).min() <= 1e-9 * (1 + np.abs(had).max()):
            return  # one colour over and over tells no scale
        want: NDArray[np.float64] = np.quantile(self._codes, levels, axis=0)
        bases = []
        for order in ((0, 1, 2), (2, 1, 0)):
            for rows in (slice(1, -1), slice(None), slice(0, None, len(levels) - 1)):
                lines = [np.polyfit(had[rows, c], want[rows, order[c]], 1) for c in range(3)]
                bases.append((order, np.array(lines)))
        spread = sample.std(axis=0)
        for number in range(_STARTS + len(bases)):
            order, fits = bases[number % len(bases)]
            scale, shift = fits[:, 0].copy(), fits[:, 1].copy()
            if number >= len(bases):
                # Channels share most of an error of scale: their standard deviations differ little.
                change = 1 + generator.normal(0, 0.05) + generator.normal(0, 0.015, 3)
                centre = sample.mean(axis=0)
                shift += scale * centre * (1 - change) + generator.normal(0, 3.0) + generator.normal(0, 2.0, 3)
                scale *= change
            if (scale * spread > 1e-9).all():
                yield Normalisation(order, (shift[0], shift[1], shift[2]), (scale[0], scale[1], scale[2]))


def _one_colour(sample: NDArray[np.float64], nearest: NDArray[np.intp]) -> bool:
    """True when many different images would all be the same few: a scale fits them by chance and names none of them."""
    return len(np.unique(nearest)) <= _FEW and len(np.unique(sample, axis=0)) >= _MANY


def _residual(distance: NDArray[np.float64]) -> float:
    return float(np.minimum(distance, _NEAR).mean())


def _ordinary() -> Iterator[Normalisation]:
    """What training code mostly does, for RGB and for BGR."""
    for mean, std in _KNOWN:
        for order in ((0, 1, 2), (2, 1, 0)):
            turned = [(mean[source], std[source]) for source in order]
            yield Normalisation(
                order, (turned[0][0], turned[1][0], turned[2][0]), (turned[0][1], turned[1][1], turned[2][1])
            )
            # A mean and deviation in the usual order, put on BGR images by mistake.
            if order == (2, 1, 0) and len(set(mean)) > 1:
                yield Normalisation(order, mean, std)


def _grey(sample: NDArray[np.float64]) -> bool:
    """True when the channels say the same of every image; a lone image, or one image over and over, is not judged."""
    spread = sample.std(axis=0)
    if spread.max() <= 1e-9 * (1 + np.abs(sample).max()):
        return False
    scaled = (sample - sample.mean(axis=0)) / np.maximum(spread, 1e-12)
    return bool(max((scaled[:, 0] - scaled[:, 1]).std(), (scaled[:, 1] - scaled[:, 2]).std()) < _GREY)
