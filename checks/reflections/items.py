"""An entry of one of the two lists, and lists that were typed as one text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from checks.reflections.reasons import Place, Reason, Side

_BULLETS = re.compile(r"(?m)^[ \t]*(?:(?:[-*•‣▪–]|\(?\d{1,2}[.):])[ \t]+|\d{1,2}[、．])")
_FEWEST_BULLETS, _MOST_BULLETS = 2, 64
_MOST_CHARS, _FEWEST_CHARS, _ALL_CHARS = 2400, 120, 14_000


@dataclass(frozen=True)
class Item:
    """One entry as it stands in its list."""

    side: Side
    number: int
    """1-based position in its list."""
    text: str
    """As typed."""
    read: str
    """What is judged: a beginning of the text, so that time stays bounded; nobody needs more to name a situation."""

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.side, self.number


@dataclass(frozen=True)
class Judged:
    """One entry and what became of it."""

    side: Side
    number: int
    text: str
    reason: Reason
    twin: int | None = None
    """Number of the entry that it repeats."""

    @property
    def counted(self) -> bool:
        """Whether it is one of the situations that count."""
        return self.reason is Reason.COUNTED


def items_of(wins: Sequence[str], loses: Sequence[str]) -> dict[Side, list[Item]]:
    """The entries of both lists, in order."""
    lists = {Side.WINS: _split_bullets(wins), Side.LOSES: _split_bullets(loses)}
    count = sum(map(len, lists.values()))
    longest = max(_FEWEST_CHARS, min(_MOST_CHARS, _ALL_CHARS // max(1, count)))
    return {
        side: [Item(side, number, text, text[:longest]) for number, text in enumerate(texts, 1)]
        for side, texts in lists.items()
    }


def _split_bullets(texts: Sequence[str]) -> Sequence[str]:
    """A list typed as one string with a line per bullet is taken as the list it shows."""
    if len(texts) != 1 or len(_BULLETS.findall(texts[0])) < _FEWEST_BULLETS:
        return texts
    return [part.strip() for part in _BULLETS.split(texts[0]) if part.strip()][:_MOST_BULLETS]
