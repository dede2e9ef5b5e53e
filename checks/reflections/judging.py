"""Goes through both lists and says of every item whether it counts, and why not.

Only as many good, distinct items as the lab asks for are needed: once a list has them, the rest is not looked at, so a
weak extra item costs nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from checks.reflections.copying import is_copied
from checks.reflections.distinctness import LOSS_WEIGHTS, WIN_WEIGHTS, same_scenario, same_words
from checks.reflections.form import is_keywords, is_question
from checks.reflections.fragments import fragments
from checks.reflections.languages import languages_of
from checks.reflections.lexicon import covered_languages
from checks.reflections.reader import read
from checks.reflections.reading import Reading
from checks.reflections.reasons import Reason, Side
from checks.reflections.substance import Assessment, assess
from checks.reflections.text import clean, pieces

_BULLETS = re.compile(r"(?m)^[ \t]*(?:[-*•‣▪–]|\(?\d{1,2}[.):])[ \t]+")
_FEWEST_BULLETS, _MOST_BULLETS = 2, 64
_MOST_CHARS, _FEWEST_CHARS, _ALL_CHARS = 2400, 120, 14_000
"""Longer items are judged by their beginning: nobody needs more to name one scenario, and time stays bounded."""
_ABSURD_ITEMS = 2
_ODD = frozenset({"alive", "claim"})
"""Machines that feel and act like people, and what happens inside the network: one may be a figure of speech."""
_ABSURD = _ODD | {"absurd"}
"""The things of everyday life, which may also be somebody's data, tell nothing without one of those."""
_REPEATED = 2


@dataclass(frozen=True)
class Judged:
    """One item and what became of it."""

    side: Side
    number: int
    """1-based position in its list."""
    text: str
    reason: Reason
    twin: int | None = None
    """Number of the item that it repeats."""

    @property
    def counted(self) -> bool:
        """Whether it is one of the scenarios that count."""
        return self.reason is Reason.COUNTED


@dataclass(frozen=True)
class _Submission:
    """What holds for both lists together."""

    languages: Sequence[str] | None
    foreign: bool
    """The lexicon does not cover the language."""
    nonsense: bool
    """Several items hold words that no such scenario needs: grammatical text about nothing."""
    keywords: bool
    """Several items only string terms together; a single one may just be terse."""
    questions: bool
    """Several items ask; a single question may be rhetorical."""


def judge_lists(wins: Sequence[str], loses: Sequence[str], min_wins: int, min_loses: int) -> list[Judged]:
    """Every item of both lists, judged."""
    wins, loses = _split_bullets(wins), _split_bullets(loses)
    longest = max(_FEWEST_CHARS, min(_MOST_CHARS, _ALL_CHARS // max(1, len(wins) + len(loses))))
    cut_wins = [(text, pieces(clean(text[:longest]))) for text in wins]
    cut_loses = [(text, pieces(clean(text[:longest]))) for text in loses]
    languages = languages_of(words for _, words in (*cut_wins, *cut_loses))
    won = [(text, read(text[:longest], languages, words)) for text, words in cut_wins]
    lost = [(text, read(text[:longest], languages, words)) for text, words in cut_loses]
    readings = [reading for _, reading in (*won, *lost)]
    absurd = sum(bool(_ABSURD & reading.concepts) for reading in readings)
    odd = sum(bool(_ODD & reading.concepts) for reading in readings)
    whole = _Submission(
        languages=languages,
        foreign=languages is not None and languages[0] not in covered_languages(),
        nonsense=absurd >= _ABSURD_ITEMS and odd > 0,
        keywords=sum(map(is_keywords, readings)) >= _REPEATED,
        questions=sum(map(is_question, (*wins, *loses))) >= _REPEATED,
    )
    return [
        *_judge_list(Side.WINS, won, [], min_wins, whole),
        *_judge_list(Side.LOSES, lost, [reading for _, reading in won], min_loses, whole),
    ]


def _judge_list(
    side: Side,
    items: Sequence[tuple[str, Reading]],
    opposite: Sequence[Reading],
    needed: int,
    whole: _Submission,
) -> list[Judged]:
    judged: list[Judged] = []
    kept: list[tuple[int, Reading]] = []
    cut = fragments(items, whole.languages)
    doubtful: list[int] = []
    for number, (text, reading) in enumerate(items, start=1):
        if len(kept) >= needed:
            judged.append(Judged(side, number, text, Reason.NOT_NEEDED))
            continue
        result = Assessment(Reason.FRAGMENT) if number - 1 in cut else _assess(side, text, reading, whole)
        item = _compared(Judged(side, number, text, result.reason), reading, kept, opposite, weak=result.weak)
        if item.counted:
            kept.append((number, reading))
        elif result.weak and item.reason is result.reason:
            doubtful.append(len(judged))
        judged.append(item)
    if kept and (needed - len(kept) == 1 or whole.foreign):
        _add_doubtful(judged, doubtful, items, kept, needed)
    return judged


def _add_doubtful(
    judged: list[Judged],
    doubtful: Sequence[int],
    items: Sequence[tuple[str, Reading]],
    kept: list[tuple[int, Reading]],
    needed: int,
) -> None:
    """Counts items without quite enough evidence beside those that are beyond doubt."""
    for position in doubtful:
        reading = items[position][1]
        again = _compared(judged[position], reading, kept, (), weak=True)
        if again.reason is Reason.DUPLICATE:
            judged[position] = again
        elif len(kept) < needed:
            judged[position] = replace(again, reason=Reason.COUNTED)
            kept.append((position + 1, reading))


def _assess(side: Side, text: str, reading: Reading, whole: _Submission) -> Assessment:
    if not reading.words:
        return Assessment(Reason.EMPTY)
    if is_copied(text[: max(len(reading.text), _FEWEST_CHARS)]):
        return Assessment(Reason.COPIED)
    if whole.nonsense and _ABSURD & reading.concepts:
        return Assessment(Reason.NONSENSE)
    if whole.keywords and is_keywords(reading):
        return Assessment(Reason.KEYWORDS)
    if whole.questions and is_question(text):
        return Assessment(Reason.QUESTION)
    return assess(reading, side, text[:_MOST_CHARS], foreign=whole.foreign)


def _compared(
    item: Judged,
    reading: Reading,
    kept: Sequence[tuple[int, Reading]],
    opposite: Sequence[Reading],
    *,
    weak: bool,
) -> Judged:
    """The item, unless it says again what another one says."""
    if not (item.counted or weak or item.reason is Reason.OTHER_SIDE):
        return item
    both = next((other for other, won in enumerate(opposite, 1) if same_words(reading, won)), None)
    if both:
        return replace(item, reason=Reason.ON_BOTH_SIDES, twin=both)
    weights = WIN_WEIGHTS if item.side is Side.WINS else LOSS_WEIGHTS
    twin = next((other for other, earlier in kept if same_scenario(reading, earlier, weights)), None)
    if twin and item.reason is not Reason.OTHER_SIDE:
        return replace(item, reason=Reason.DUPLICATE, twin=twin)
    return item


def _split_bullets(items: Sequence[str]) -> Sequence[str]:
    """A list typed as one string with a line per bullet is taken as the list it shows."""
    if len(items) != 1 or len(_BULLETS.findall(items[0])) < _FEWEST_BULLETS:
        return items
    return [part.strip() for part in _BULLETS.split(items[0]) if part.strip()][:_MOST_BULLETS]
