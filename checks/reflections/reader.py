"""Reads one item: words, concepts, numbers, facts."""

from collections.abc import Collection
from dataclasses import replace

from checks.reflections.facts import facts_of
from checks.reflections.lexicon import Hit, concepts
from checks.reflections.reading import Reading
from checks.reflections.text import Piece, clean, pieces

_WRITTEN = {"number2": 2.0, "number4": 4.0, "number8": 8.0, "number64": 64.0}
"""Number words, by their order of magnitude only."""
_UNITS = frozenset(
    {
        *("gb", "gib", "g", "mb", "mib", "kb", "tb", "gbit", "mbit", "bit", "b", "ms", "s", "sec", "min", "h", "d"),
        *("khz", "hz", "fps", "px", "p", "m", "k", "w"),
    }
)  # fmt: skip
"""After one of these a number counts no cores and no cards."""
_LONGEST_NUMBER = 12


def read(text: str, languages: Collection[str] | None = None, words: list[Piece] | None = None) -> Reading:
    """Reads one item; `languages` as `languages_of` gives them, `words` where they were cut before."""
    cleaned = clean(text)
    words = pieces(cleaned) if words is None else words
    hits = concepts().find(words, languages)
    numbers, percentages = _numbers(words, hits)
    reading = Reading(cleaned, words, hits, numbers, percentages)
    return replace(reading, facts=facts_of(reading))


def _numbers(words: list[Piece], hits: list[Hit]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    numbers: list[tuple[float, float]] = []
    percentages: list[tuple[float, float]] = []
    percent_words = {hit.piece for hit in hits if hit.concept == "percent"}
    for index, piece in enumerate(words):
        if piece.kind != "number":
            continue
        value = _value(piece.text)
        after = words[index + 1] if index + 1 < len(words) else None
        before = words[index - 1] if index else None
        if (
            (after and (after.kind == "sign" or index + 1 in percent_words))
            or (before and before.kind == "sign")
            or (index - 1 in percent_words)
        ):
            percentages.append((value, piece.at))
        elif not (after and after.text in _UNITS):
            numbers.append((value, piece.at))
    numbers.extend((_WRITTEN[hit.concept], hit.at) for hit in hits if hit.concept in _WRITTEN)
    return numbers, percentages


def _value(text: str) -> float:
    """Reads 1.5, 1,5 and 4,096."""
    digits = text.replace(",", "." if text.count(",") == 1 and len(text.rpartition(",")[2]) != len("000") else "")
    try:
        return float(digits[:_LONGEST_NUMBER])
    except ValueError:
        return 0.0
