"""The same words again: an entry repeated with a number, a label or a "not" added."""

from collections import Counter
from difflib import SequenceMatcher

from checks.reflections.text import is_unspaced, words

_FEWEST_WORDS = 4
_CHANGED_PER = 20
"""One word in so many may be another one."""
_MOST_ADDED = 3
_MOST_WORDS = 200
"""The comparison takes time in the square of it."""


def same_words(one: str, other: str, *, numbers: bool = False) -> bool:
    """Whether one text is nearly the other, in the same order; numbers tell them apart only if asked to.

    The same words in another order may say the opposite ("fast CPU, slow GPU"), and entries that share a frame differ
    where it matters: nearly all of the shorter one must stand in the longer one.
    """
    left, right = _units(one, numbers=numbers), _units(other, numbers=numbers)
    if numbers and sorted(filter(str.isdigit, left)) != sorted(filter(str.isdigit, right)):
        return False
    if left == right:
        return bool(left)
    shorter = min(len(left), len(right))
    least = shorter - shorter // _CHANGED_PER
    if shorter < _FEWEST_WORDS or max(len(left), len(right)) > shorter + _MOST_ADDED:
        return False
    if (Counter(left) & Counter(right)).total() < least:
        return False  # spares the costlier comparison
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) >= least


def _units(text: str, *, numbers: bool) -> list[str]:
    """Its first words, single characters where no spaces are written."""
    units: list[str] = []
    for word in words(text):
        if is_unspaced(word):
            units.extend(word)
        elif numbers or not word.isdigit():
            units.append(word)
    return units[:_MOST_WORDS]
