"""The two lists, their entries, and why an entry does or does not count."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

_BULLETS = re.compile(r"(?m)^[ \t]*(?:(?:[-*•‣▪–]|\(?\d{1,2}[.):])[ \t]+|\d{1,2}[、．])")
_FEWEST_BULLETS, _MOST_BULLETS = 2, 64
_MOST_CHARS, _FEWEST_CHARS, _ALL_CHARS = 2400, 120, 14_000


class Side(StrEnum):
    """Which list an entry stands in."""

    WINS = "where_dali_wins"
    LOSES = "where_dali_loses"


class Reason(StrEnum):
    """Why an entry does or does not count; stable, for staff. Behind it what a learner reads, where that is a fault."""

    told: str

    def __new__(cls, value: str, told: str = "") -> Self:
        """A text with another one beside it."""
        made = str.__new__(cls, value)
        made._value_, made.told = value, told
        return made

    COUNTED = "counted"
    NOT_NEEDED = "not_needed"
    EMPTY = "empty", "no words"
    TOO_SHORT = "too_short", "too short to describe a situation"
    INJECTION = "injection", "addressed to the grader, which has no effect here; describe a situation"
    UNFILLED = "unfilled", "a placeholder or a template that is still to be filled in"
    QUESTION = "question", "a question; say what you think happens"
    KEYWORDS = "keywords", "terms in a row; make a statement of them"
    FRAGMENT = "fragment", "a piece of a sentence that runs over several entries; put each situation into one entry"
    COPIED = "copied", "the text of the lab's pages or our example; use your own words and your own situation"
    DUPLICATE = "duplicate", "the same situation as an earlier entry"
    ON_BOTH_SIDES = "on_both_sides", "in the other list, too; one situation cannot stand on both sides"
    NONSENSE = "nonsense", "words that do not add up to a situation"
    VAGUE = "vague", "too general; say which situation you mean and what makes the difference there"
    UNTRUE = "untrue", "does not fit how data is loaded and prepared; check which part does what, and where"
    OFF_TOPIC = "off_topic", "not about where the time goes when data is loaded and prepared"
    OTHER_SIDE = "other_side", "what is said there belongs in the other list"
    UNREAD = "unread", "in a language, or in words, that the automatic reading does not know"


@dataclass(eq=False)
class Item:
    """One entry as it stands in its list; it counts until something is found that speaks against it."""

    side: Side
    number: int
    """1-based position in its list."""
    text: str
    """As typed."""
    read: str
    """What is judged: a beginning of the text, so that time stays bounded; nobody needs more to name a situation."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """What the text model says of it; see `checks.reflections.judging.scores_of`."""
    reason: Reason = Reason.COUNTED
    twin: int | None = None
    """Number of the entry that it repeats."""

    @property
    def counted(self) -> bool:
        """Whether it is one of the situations that count."""
        return self.reason is Reason.COUNTED

    def drop(self, reason: Reason, twin: int | None = None) -> None:
        """It does not count, for the first reason that is found."""
        if self.counted:
            self.reason, self.twin = reason, twin


Lists = Mapping[Side, Sequence[Item]]


def items_of(wins: Sequence[str], loses: Sequence[str]) -> Lists:
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
