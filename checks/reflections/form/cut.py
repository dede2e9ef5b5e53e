"""One sentence that was cut into several entries."""

from collections.abc import Sequence
from itertools import pairwise

_ENDS = (".", "!", "?", "。", "！", "？", "।", "…", "؟", "۔")
_ABBREVIATED = ("etc.", "usw.", "и т.д.")
_OPEN_ENDS = (",", "，", "、", "،")


def pieces_of_a_sentence(texts: Sequence[str]) -> set[int]:
    """Positions of entries that are pieces of one sentence.

    Signs are a comma at the end before an entry that goes on in lower case, and a list that opens with a capital, goes
    on in lower case throughout and has its only full stop at the end.
    """
    texts = [text.strip() for text in texts]
    if (
        len(texts) > 1
        and texts[0][:1].isupper()
        and texts[-1].endswith(_ENDS)
        and not texts[-1].endswith(_ABBREVIATED)
        and not texts[0].split()[0].isupper()
        and not any(text.endswith(_ENDS) for text in texts[:-1])
        and all(text[:1].islower() for text in texts[1:])
    ):
        return set(range(len(texts)))
    return {
        number
        for first, (before, after) in enumerate(pairwise(texts))
        if before.endswith(_OPEN_ENDS) and before[:1].isupper() and after[:1].islower()
        for number in (first, first + 1)
    }
