"""Tells scenarios apart: by what they are about first, by their wording second.

Two items are one scenario when nearly all that either says (weighted by how much it narrows a scenario down) is also
said by the other. Concepts carry this across rewording, other word order and other languages; three-letter sequences
catch copies in languages that the lexicon hardly knows. Two different projects that share every recognised concept
look the same here, and a rewording through words that the lexicon lacks looks different.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import fsum

from checks.reflections.reading import Reading
from checks.reflections.text import skeleton

WIN_WEIGHTS = {
    "video": 1.5, "audio": 1.5, "features": 0.5, "augment": 1.2, "views": 0.8, "multi_gpu": 1.2,
    "light_model": 1.0, "infer": 1.0, "hwdec": 0.8, "random": 0.7, "rawformat": 1.0,
    "tuning": 1.0, "edge": 0.7, "cloud": 0.6, "detection": 0.8,
    "text": 1.0, "tabular": 1.0, "series": 1.0, "otherdata": 1.0, "array": 0.6, "cached": 0.7, "tiny": 1.0,
    "smalldata": 0.9, "big_model": 1.0, "many_cores": 1.0, "storage": 1.0,
    "memory": 1.2, "custom": 1.2, "nocuda": 1.2, "latency": 1.2, "effort": 1.0, "repro": 1.2, "overhead": 0.5,
    "faulty": 1.0, "gpu_idle": 0.4,
    "slow": 0.2, "bottle": 0.2, "share": 0.4, "offload": 0.3, "nothing_to_do": 0.4, "scale": 0.3,
    "fast": 0.1, "gpu": 0.1, "model": 0.2, "server": 0.2,
    "picture": 0.4, "photoset": 0.5, "big_picture": 0.8, "high_resolution": 0.1, "cpu_short": 0.7, "few_cores": 0.5,
    "prepare": 0.4, "decode": 0.3, "resize": 0.3, "pillow": 0.2, "loader": 0.2,
    "medical": 1.0, "aerial": 1.0, "factory": 1.0, "retail": 1.0, "traffic": 1.0, "nature": 1.0, "people": 0.6,
    "document": 1.0, "sport": 1.0, "security": 0.8,
}  # fmt: skip
LOSS_WEIGHTS = {
    **{name: weight / 3 for name, weight in WIN_WEIGHTS.items()},
    "text": 1.0, "numeric": 0.5, "tabular": 0.7, "series": 0.7, "otherdata": 1.0, "array": 0.3, "cached": 0.6,
    "tiny": 1.0, "smalldata": 0.9, "model_bound": 1.0, "many_cores": 1.0, "storage": 1.0, "memory": 1.0, "custom": 1.0,
    "nocuda": 1.0, "latency": 1.0, "effort": 1.0, "repro": 1.0, "overhead": 0.5, "faulty": 1.0, "rawformat": 0.8,
    "video": 0.8, "audio": 0.8, "infer": 0.5, "big_model": 0.0, "compute": 0.0, "gpu_busy": 0.0, "gpu_idle": 0.1,
}  # fmt: skip
"""Why DALI loses is what sets these apart; the work that is not there is the same for all of them."""
_FAMILIES = {
    "numeric": {"tabular", "series", "array"},
    "model_bound": {"big_model", "compute", "gpu_busy", "long_step", "hidden"},
    "picture": {"image", "jpeg", "photoset"},
    "big_picture": {"high_resolution", "large_media"},
    "cpu_short": {"few_cores", "slow_cpu", "cpu_busy"},
    "prepare": {"decode", "resize", "preproc", "pillow", "loader"},
}
"""Different words for nearly the same; each family weighs once."""
_APART = frozenset({"video", "audio", "text", "tabular", "series", "otherdata"})
_APART_IN_WINS = _APART | {"augment", "detection", "infer"}
"""One of these on one side only nearly always means another scenario."""
_SAME_SCENARIO, _SAME_BUT_FOR_ONE = 0.51, 0.74
_SAME_WORDING, _SIMILAR_WORDING, _SIMILAR_SCENARIO = 0.9, 0.72, 0.4
_ENOUGH_SAID = 0.65
"""Two items of which hardly anything was understood are not called the same on that."""
_COPY_ACROSS = 0.84
_LETTERS = re.compile(r"[^\W\d_]+")
_COMPARED_CHARS = 600


def same_scenario(left: Reading, right: Reading, weights: Mapping[str, float] = WIN_WEIGHTS) -> bool:
    """Whether two items of one list describe one scenario."""
    alike = likeness(left, right, weights)
    apart = (left.all ^ right.all) & (_APART_IN_WINS if weights is WIN_WEIGHTS else _APART)
    if alike >= (_SAME_BUT_FOR_ONE if apart else _SAME_SCENARIO):
        return _weight(left, right, weights) >= _ENOUGH_SAID
    wording = overlap(letters(left.text), letters(right.text))
    return not apart and (wording >= _SAME_WORDING or (wording >= _SIMILAR_WORDING and alike >= _SIMILAR_SCENARIO))


def same_words(left: Reading, right: Reading) -> bool:
    """Whether an item of one list repeats an item of the other, perhaps negated."""
    return overlap(letters(left.text), letters(right.text)) >= _COPY_ACROSS or (
        len(left.content) > 2 and _topic(left) == _topic(right)
    )


def likeness(left: Reading, right: Reading, weights: Mapping[str, float] = WIN_WEIGHTS) -> float:
    """Weighted share of what both say in what either says, in [0, 1]."""
    either = fsum(weights.get(name, 0.0) for name in _aspects(left) | _aspects(right))
    return _weight(left, right, weights) / either if either else 0.0


def _weight(left: Reading, right: Reading, weights: Mapping[str, float]) -> float:
    """How much both say."""
    return fsum(weights.get(name, 0.0) for name in _aspects(left) & _aspects(right))


@lru_cache(maxsize=1024)
def letters(text: str) -> frozenset[str]:
    """Three-letter sequences, without digits and punctuation."""
    joined = f" {' '.join(_LETTERS.findall(skeleton(text[:_COMPARED_CHARS])))} "
    return frozenset(joined[start : start + 3] for start in range(len(joined) - 2))


def overlap(left: frozenset[str], right: frozenset[str]) -> float:
    """Dice coefficient of two sets."""
    return 2 * len(left & right) / (len(left) + len(right)) if left and right else 0.0


def _aspects(reading: Reading) -> frozenset[str]:
    return reading.all | {family for family, members in _FAMILIES.items() if members & reading.all}


def _topic(reading: Reading) -> frozenset[str]:
    """Content words without negations and the verbs of winning and losing."""
    negations = {reading.words[hit.piece].text for hit in reading.hits if hit.concept in {"negation", "dali", "gain"}}
    return reading.content - negations
