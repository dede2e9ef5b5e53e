"""Guesses which languages a submission is written in, by its commonest words."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

from checks.reflections.lexicon import function_words
from checks.reflections.text import Piece

_ENOUGH_COMMON_WORDS, _SECOND_LANGUAGE = 2.0, 0.3


def languages_of(items: Iterable[list[Piece]]) -> tuple[str, ...] | None:
    """The languages that the common words of all the items show, likeliest first; None when too few show any."""
    scores: defaultdict[str, float] = defaultdict(float)
    for words in items:
        for piece in words:
            for language, weight in _language_weights().get(piece.text, ()):
                scores[language] += weight
    if not scores or max(scores.values()) < _ENOUGH_COMMON_WORDS:
        return None
    least = _SECOND_LANGUAGE * max(scores.values())
    return tuple(
        language for language, score in sorted(scores.items(), key=lambda item: (-item[1], item[0])) if score >= least
    )


@cache
def _language_weights() -> dict[str, list[tuple[str, float]]]:
    """Common word to its languages; a word of many languages says little about each."""
    owners: dict[str, list[str]] = {}
    for language, words in function_words().items():
        for word in words:
            owners.setdefault(word, []).append(language)
    return {word: [(language, 1 / len(known)) for language in known] for word, known in owners.items()}
