"""Judges the form of one item: whether it is a statement at all.

Three of the signs (a question mark, terms without a relating word, an absurd word) may stand in an honest item, so
they are only held against a submission that shows them repeatedly; see `judging`.
"""

import re

from checks.reflections.reading import Reading
from checks.reflections.reasons import Reason

_SHORTEST = 2.0
"""Words, with and without function words."""
_FILLER_WORDS = 3
_MARKUP_ORDERS = re.compile(
    r"<\|?/?(?:im_start|im_end|system|user|assistant|inst|learner|verdict|endoftext|s)\b|\[/?inst\]"
    r"|\"(?:role|outcome|verdict|score|grade|passed|accept|check)\"\s*:"
    r"|#{2,}\s*(?:end|new|system|instruction|task|note|grader)|\b(?:system|assistant)\s*:"
)
_ENCODED = re.compile(r"(?<![\w/.:+=-])(?=[A-Za-z+/]*[0-9=+/])[A-Za-z0-9+/]{24,}={0,2}(?![\w/.-])")
_QUESTION_ENDS = ("?", "？", "؟")
_GREEK_QUESTION = re.compile("[\u0370-\u03ff][^\\w]*[;\u037e]$")
_CLOSERS = " \t\r\n\"'»”)*_`"
_RELATING = frozenset(
    {
        *("few", "many", "large", "small", "heavy", "light", "long", "slow", "idle", "keepup", "negation", "share"),
        "offload",
        *("number2", "number4", "number8", "number64"),
    }
)  # fmt: skip
_KEYWORDS_FROM, _SINGLE_TERM = 6, 2
_LONGEST_WORD = {"han": 5, "hangul": 6, "thai": 14}
"""A longer run of these scripts is more than one word."""
_LONGEST_SPACED_WORD = 40
_PARTICLES = tuple("을를이가은는에의로와과도만럼고서다요해한된할면며지음라때함게기")
"""Last syllables of Korean words that relate to others."""
_CASES = (
    # Turkish, Finnish, Hungarian and Estonian suffixes that stand for prepositions and conjunctions
    "lardan", "lerden", "larda", "lerde", "larin", "lerin", "lari", "leri", "lara", "lere", "lariyla", "leriyle",
    "irken", "urken", "arken", "erken", "mis", "mus", "miyor", "muyor", "masi", "mesi", "sinin", "inda", "inde",
    "indan", "inden", "inin", "unun", "arak", "erek", "acak", "ecek", "mayan", "meyen", "mak", "mek", "makta",
    "mekte", "ssa", "sta", "lla", "lta", "iksi", "sten", "iden", "misen", "imen", "oknak", "eknek", "okbol", "ekbol",
    "okkal", "ekkel", "okat", "eket", "okban", "ekben", "aval", "evel", "dega", "tega", "dele", "sega",
    # Slavic endings of adjectives and nouns that depend on another word
    "ого", "его", "ому", "ему", "ыми", "ими", "ами", "ями", "ых", "их", "ах", "ях", "ания", "ения", "ании", "ении",
    "анием", "ением", "ною", "ою", "ych", "ego", "emu", "ymi", "eho", "ovych", "owych", "owania", "kami", "iami",
)  # fmt: skip
"""Endings by which terse notes in inflecting languages relate their words; lists of terms rarely bear them."""


def problem_of_form(reading: Reading, raw: str) -> Reason | None:
    """What is wrong with the item whatever it is about, or None."""
    if not reading.words:
        return Reason.EMPTY
    if _is_order(reading, raw):
        return Reason.INJECTION
    if "filler" in reading.concepts and len(reading.content) <= _FILLER_WORDS:
        return Reason.FILLER
    if reading.length < _SHORTEST or reading.said < _SHORTEST:
        return Reason.TOO_SHORT
    strange = {reading.words[hit.piece].text for hit in reading.hits if hit.concept in {"absurd", "alive"}}
    if "alive" in reading.concepts and len(strange) > 1:
        return Reason.NONSENSE
    return None


def is_question(raw: str) -> bool:
    """Whether it ends in asking."""
    text = raw.rstrip(_CLOSERS)
    return text.endswith(_QUESTION_ENDS) or bool(_GREEK_QUESTION.search(text[-3:]))


def is_keywords(reading: Reading) -> bool:
    """Whether it strings terms together without a word that relates them."""
    if len(reading.words) < _KEYWORDS_FROM or reading.function_count:
        return False
    explained = {number for hit in reading.hits for number in range(hit.piece, hit.piece + hit.size)}
    if 2 * len(explained) < len(reading.words):
        return False
    said = {hit.piece for hit in reading.hits if hit.concept in _RELATING}
    run = longest = 0
    clauses: dict[int, int] = {}
    before = -1
    for number, piece in enumerate(reading.words):
        clauses[piece.clause] = clauses.get(piece.clause, 0) + 1
        sentence = piece.kind == "number" or len(piece.text) > _LONGEST_WORD.get(piece.kind, _LONGEST_SPACED_WORD)
        inflected = piece.text.endswith(_PARTICLES if piece.kind == "hangul" else _CASES)
        if sentence or number in said or inflected:
            run = 0
            clauses[piece.clause] += _SINGLE_TERM
        else:
            run = run + 1 if piece.clause == before else 1
        before = piece.clause
        longest = max(longest, run)
    singles = sum(size <= _SINGLE_TERM for size in clauses.values())
    return longest >= _KEYWORDS_FROM or (singles >= _KEYWORDS_FROM - 1 and 4 * singles >= 3 * len(clauses))


def _is_order(reading: Reading, raw: str) -> bool:
    """Whether it speaks to a grader, openly or encoded. Nothing here obeys; such an item just says nothing."""
    if _MARKUP_ORDERS.search(reading.text) or _ENCODED.search(raw):
        return True
    return len({hit.piece for hit in reading.hits if hit.concept == "order"}) > 1
