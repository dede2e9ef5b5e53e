"""The text model: linear scores over hashed features, in integers, so that every machine gives the same bits.

`model.bin` and `model.json` beside this file are made by `bench/reflections_train.py` from the labelled lists; its card
is docs/reflections.md. Scores are log-odds: 0 is even.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from checks.prose.text import length, sentences
from checks.reflections.meaning.features import BITS, buckets, known_units, words_said

HEADS = ("side", "win", "loss", "untrue", "vague", "off_topic", "keywords", "salad", "dream", "injection")
"""`side`: positive for `where_dali_wins`. `win`, `loss`: positive for a good entry of that list, against everything
that may stand there instead. The others: that flaw against a good entry."""
KNOWN_BITS = 17
_FEWEST_WORDS = 4
_NONE = 9.0


@dataclass(frozen=True)
class Model:
    """Weights as they lie in `model.bin`, and numbers from `model.json`."""

    weights: NDArray[np.int8]
    """Shape (2**BITS, heads)."""
    scales: Sequence[float]
    biases: Sequence[float]
    rarity: NDArray[np.int64]
    """Shape (2**BITS,): how much a shared feature says that two texts are about the same; 0 to 255."""
    shared: NDArray[np.int8]
    """Shape (2**BITS,): how much a feature that both texts hold says that they tell of the same situation."""
    differing: NDArray[np.int8]
    """Shape (2**BITS,): the same for a feature that only one of them holds."""
    sameness: Mapping[str, float]
    """Scales of both, weights of the likeness, its root and the overlap, and `bias`."""
    known: NDArray[np.uint8]
    """Shape (2**KNOWN_BITS / 8,): one bit for each word (by hash) that the training texts hold."""
    decision: Mapping[str, float]
    """Weight of each signal of a submission, and `bias`; positive speaks for good lists."""
    thresholds: Mapping[str, float]

    def scores(self, text: str) -> dict[str, float]:
        """What the model says of a text: head to log-odds."""
        found = buckets(text)
        sums = self.weights[found].sum(axis=0, dtype=np.int64)
        root = sqrt(len(found))
        weighed = zip(HEADS, sums, self.scales, self.biases, strict=True)
        return {head: int(total) * scale / root + bias for head, total, scale, bias in weighed}

    def order_in(self, text: str) -> float:
        """How much speaks for an order to a grader in the text: log-odds of its most suspicious sentence.

        What would stand as a win or a loss speaks against it, and sentences of few words say too little.
        """
        found = [self.scores(sentence) for sentence in sentences(text) if length(sentence) >= _FEWEST_WORDS]
        return max((one["injection"] - max(0.0, one["win"], one["loss"]) for one in found), default=-_NONE)

    def compare(self, one: str, other: str) -> tuple[float, float]:
        """Log-odds that two entries tell of the same situation, and their likeness; see `comparison`."""
        shared, differing, likeness, overlap = comparison(one, other, self.rarity)
        weights = self.sameness
        total = fsum(
            [
                weights["bias"],
                weights["shared"] * int(self.shared[shared].sum(dtype=np.int64)) / sqrt(max(1, len(shared))),
                weights["differing"]
                * int(self.differing[differing].sum(dtype=np.int64))
                / sqrt(max(1, len(differing))),
                weights["likeness"] * likeness,
                weights["root"] * sqrt(likeness),
                weights["overlap"] * overlap,
            ]
        )
        return total, likeness

    def share_known(self, texts: Iterable[str]) -> float:
        """Share of the words that the training texts hold as well, 0 to 1; 1 for texts without words."""
        places = [unit & (1 << KNOWN_BITS) - 1 for text in texts for unit in known_units(text)]
        held = sum(bool(self.known[place >> 3] >> (place & 7) & 1) for place in places)
        return held / len(places) if places else 1.0

    def weigh(self, signals: Mapping[str, float]) -> float:
        """Log-odds that lists with these signals are good; summed exactly, so that no order of addition shows."""
        return fsum([self.decision["bias"], *(self.decision[name] * value for name, value in signals.items())])


class ModelFileError(Exception):
    """The files of the text model do not belong together; reinstall the package."""


@cache
def model() -> Model:
    """The model; read and checked once for each process.

    Raises:
        ModelFileError: `model.bin` is not the file that `model.json` describes.
    """
    folder = files(__package__)
    raw = (folder / "model.bin").read_bytes()
    told = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    if sha256(raw).hexdigest() != told["sha256"] or tuple(told["heads"]) != HEADS:
        raise ModelFileError("checks/reflections/meaning: model.bin is not the file that model.json describes")
    size = 1 << BITS
    held = np.frombuffer(raw, dtype=np.uint8)
    weights, rarity, shared, differing, known = np.split(held, [size * (len(HEADS) + more) for more in range(4)])
    return Model(
        weights=weights.view(np.int8).reshape(len(HEADS), size).T.copy(),
        rarity=rarity.astype(np.int64),
        shared=shared.view(np.int8),
        differing=differing.view(np.int8),
        known=known,
        **{name: told[name] for name in ("scales", "biases", "sameness", "decision", "thresholds")},
    )


def comparison(
    one: str, other: str, rarity: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], float, float]:
    """Features that two texts share, those that one of them holds, their likeness and their overlap.

    The likeness (0 to 1) counts shared features, rare ones more; the overlap (0 to 1) is their share of the shorter
    text.
    """
    left, right = words_said(one), words_said(other)
    shared = np.intersect1d(left, right, assume_unique=True)
    differing = np.setxor1d(left, right, assume_unique=True)
    lengths = _square_of(rarity[left]) * _square_of(rarity[right])
    likeness = _square_of(rarity[shared]) / sqrt(lengths) if lengths else 0.0
    return shared, differing, likeness, len(shared) / max(1, min(len(left), len(right)))


def _square_of(values: NDArray[np.int64]) -> int:
    return int(values @ values)
