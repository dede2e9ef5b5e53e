"""Says what may have been meant by an id that is not known."""

import difflib
from collections.abc import Collection

_ALIKE = 0.6
"""Share of equal letters from which on an id counts as meant."""
_SHORTEST, _LONGEST = 3, 128
"""Letters of a beginning that says anything, and of a word that is looked at."""


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known id that is most like a word, or the only one that begins with it; None where none is."""
    word = word[:_LONGEST]
    close = difflib.get_close_matches(word, known, n=1, cutoff=_ALIKE)
    begun = [name for name in known if len(word) >= _SHORTEST and name.startswith(word)]
    return close[0] if close else begun[0] if len(begun) == 1 else None


def instead(word: str, known: Collection[str], called: str) -> str:
    """The end of a message that says that a word is no known id: what may have been meant, and all that there are.

    Args:
        known: ids in the order in which they are listed.
        called: what they are, such as `labs`.
    """
    listed = f"{called} are: {', '.join(known) or 'none'}"
    close = nearest(word, known)
    return f"; {listed}" if close is None else f'; did you mean "{close}"? {listed[0].upper()}{listed[1:]}'
