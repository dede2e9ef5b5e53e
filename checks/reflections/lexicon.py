"""Finds concepts in a text by word lists in many languages.

The lists and the form of their patterns are described in `compile_lexicon`; here their compiled index is matched, in
time linear in the text. Matching is partial by nature: a word the lists lack is not seen, and a few words mean
something else in another language. Judging therefore never depends on a single hit.
"""

import json
import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from checks.reflections.text import UNSPACED_KINDS, Piece

_COMPOUND_FROM, _COMPOUND_TO = 7, 40
_LONGEST_STEM = 24
_MISTYPED_FROM = 5
_LAST_LATIN = "\u024f"
_DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}")
_ARABIC_PREFIXES = ("وال", "بال", "كال", "فال", "ولل", "لل", "ال", "و", "ف", "ب", "ل", "ك")
_HEBREW_PREFIXES = ("וה", "שה", "מה", "לה", "בה", "כש", "ה", "ו", "ב", "ל", "מ", "ש", "כ")
_MASKING = frozenset({"memory", "storage", "generic", "otherdata", "clipmodel"})
"""A phrase of these is not also about the words in it: video memory is no video."""
_MASKED = frozenset({"video", "image", "gpu", "model", "core", "audio", "text"})
_INHERITED = frozenset({"image", "decode", "video", "audio", "gpu", "cpu", "core", "slow"})
"""A longer unspaced entry that begins with one of these keeps its meaning too."""
_NONE: frozenset[str] = frozenset()


class Hit(NamedTuple):
    """One concept at one place."""

    concept: str
    at: float
    piece: int
    """Index of the piece that it begins in."""
    size: int
    """Pieces that it covers."""


class Lexicon:
    """The compiled index and how to match it."""

    def __init__(self, index: Mapping[str, Mapping[str, str]], phrases: Mapping[str, list[list[object]]]) -> None:
        """Takes what `compile_lexicon.Index.as_json` gives."""
        self._whole, self._stems = index["whole"], index["stems"]
        self._inside, self._unspaced = index["inside"], index["unspaced"]
        self._phrases = phrases
        self._longest_unspaced = max(map(len, self._unspaced), default=0)
        self._longest_inside = max(map(len, self._inside), default=0)

    def find(self, text: list[Piece], languages: Collection[str] | None = None) -> list[Hit]:
        """Every concept in the text, in order.

        `languages` bounds which languages may explain a single word in Latin letters; None is any. International and
        most English terms always may.
        """
        hits: list[Hit] = []
        for number, piece in enumerate(text):
            if piece.kind in UNSPACED_KINDS:
                self._scan(text, number, hits)
            else:
                self._look_up(text, number, hits, languages)
        return _unmasked(hits)

    def _look_up(self, text: list[Piece], number: int, hits: list[Hit], languages: Collection[str] | None) -> None:
        piece = text[number]
        found: set[tuple[str, int]] = set()
        for form in _forms(piece):
            found = self._longest(form, text, number, languages)
            if found:
                break
        found = found or {(concept, 1) for concept in self._mistyped(piece.text, languages)}
        if _COMPOUND_FROM <= len(piece.text) <= _COMPOUND_TO:
            found |= {(concept, 1) for concept in self._inner(piece.text, languages)}
        hits.extend(Hit(concept, piece.at, number, size) for concept, size in sorted(found))

    def _longest(
        self, form: str, text: list[Piece], number: int, languages: Collection[str] | None
    ) -> set[tuple[str, int]]:
        """Concepts of the phrases, and of the longest single word, that begin here."""
        found: set[tuple[str, int]] = set()
        singles = _allowed(self._whole.get(form), languages) | _allowed(self._stems.get(form), languages)
        for end in range(min(len(form), _LONGEST_STEM), 0, -1):
            stem = form[:end]
            if not singles:
                singles = _allowed(self._stems.get(stem), languages)
            for concept, whole, rest in self._phrases.get(stem, ()):
                if not (whole and end < len(form)) and _continues(rest, text, number + 1):
                    found.add((str(concept), 1 + len(_words(rest))))
        return found | {(concept, 1) for concept in singles}

    def _mistyped(self, word: str, languages: Collection[str] | None) -> frozenset[str]:
        """Concepts of what it is with two letters swapped ("vidoe"); short words turn into others too easily."""
        if not (_MISTYPED_FROM <= len(word) <= _LONGEST_STEM and word.isascii()):
            return _NONE
        for at in range(1, len(word) - 1):
            swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            if found := _allowed(self._whole.get(swapped) or self._stems.get(swapped), languages):
                return found
        return _NONE

    def _inner(self, word: str, languages: Collection[str] | None) -> set[str]:
        """Compounds: parts after the beginning of a long word."""
        found: set[str] = set()
        for start in range(2, len(word) - 2):
            for end in range(start + 3, min(len(word), start + self._longest_inside) + 1):
                found |= _allowed(self._inside.get(word[start:end]), languages)
        return found

    def _scan(self, text: list[Piece], number: int, hits: list[Hit]) -> None:
        """Cuts a run without spaces: the longest entry at each place, and on from its end."""
        piece = text[number]
        run, step = piece.text, piece.width / len(piece.text)
        start = 0
        while start < len(run):
            at = piece.at + start * step
            taken = 0
            for end in range(min(len(run), start + self._longest_unspaced), start, -1):
                singles = _allowed(self._unspaced.get(run[start:end]), None)
                if singles and not taken:
                    taken = end - start
                    hits.extend(Hit(concept, at, number, 1) for concept in sorted(singles))
                    if singles & _MASKING:
                        break
                elif singles and end - start > 1:
                    hits.extend(Hit(concept, at, number, 1) for concept in sorted(singles & _INHERITED))
            if len(run) - start <= self._longest_unspaced:
                self._phrase_from(run[start:], at, text, number, hits)
            start += taken or 1

    def _phrase_from(self, first: str, at: float, text: list[Piece], number: int, hits: list[Hit]) -> None:
        """Phrases whose first word ends a run without spaces."""
        for concept, _, rest in self._phrases.get(first, ()):
            if _continues(rest, text, number + 1):
                hits.append(Hit(str(concept), at, number, 1 + len(_words(rest))))


@cache
def _named(concepts: str) -> tuple[tuple[str, str], ...]:
    """(concept, language or nothing) of an entry."""
    return tuple((name.partition(":")[0], name.partition(":")[2]) for name in concepts.split())


def _allowed(concepts: str | None, languages: Collection[str] | None) -> frozenset[str]:
    """Concepts of an entry, without those whose language is not among the languages."""
    if not concepts:
        return _NONE
    return frozenset(
        concept for concept, language in _named(concepts) if not language or languages is None or language in languages
    )


def _words(rest: object) -> list[tuple[str, bool]]:
    return rest if isinstance(rest, list) else []


def _forms(piece: Piece) -> tuple[str, ...]:
    """The word as typed, without accents, and without the articles that Arabic and Hebrew attach in front.

    Only Latin words are looked up as typed, for Vietnamese; elsewhere a typed letter would end the match too early. A
    letter drawn out ("sloooow") counts once.
    """
    first = piece.text[0]
    forms: tuple[str, ...] = (piece.text,)
    if piece.text != piece.exact and first <= _LAST_LATIN:
        forms = (piece.exact, piece.text)
    if _DRAWN_OUT.search(piece.text):
        forms += (_DRAWN_OUT.sub(r"\1\1", piece.text), _DRAWN_OUT.sub(r"\1", piece.text))
    if "\u0590" <= first <= "\u06ff":
        prefixes = _HEBREW_PREFIXES if first < "\u0600" else _ARABIC_PREFIXES
        return forms + tuple(
            piece.text[len(prefix) :]
            for prefix in prefixes
            if piece.text.startswith(prefix) and len(piece.text) > len(prefix) + 1
        )
    return forms


def _continues(rest: object, text: list[Piece], number: int) -> bool:
    """Whether the further words of a phrase stand here."""
    words = _words(rest)
    if number + len(words) > len(text):
        return False
    return all(_stands(text[at], word, whole=whole) for at, (word, whole) in enumerate(words, number))


def _stands(piece: Piece, word: str, *, whole: bool) -> bool:
    """Whether a piece is this word, or begins with it."""
    if whole and piece.kind not in UNSPACED_KINDS:
        return word in (piece.text, piece.exact) or ("\u0590" <= piece.text[0] <= "\u06ff" and word in _forms(piece))
    if piece.text.startswith(word) or piece.exact.startswith(word):
        return True
    return "\u0590" <= piece.text[0] <= "\u06ff" and any(form.startswith(word) for form in _forms(piece))


def _unmasked(hits: list[Hit]) -> list[Hit]:
    masked = {
        number
        for hit in hits
        if hit.concept in _MASKING and hit.size > 1
        for number in range(hit.piece, hit.piece + hit.size)
    }
    if not masked:
        return hits
    return [hit for hit in hits if hit.size > 1 or hit.piece not in masked or hit.concept not in _MASKED]


class _Compiled(NamedTuple):
    lexicon: Lexicon
    common: dict[str, frozenset[str]]
    covered: frozenset[str]


@cache
def _compiled() -> _Compiled:
    data = json.loads((files(__package__) / "lexicon.json").read_text(encoding="utf-8"))
    return _Compiled(
        Lexicon(data, data["phrases"]),
        {language: frozenset(words.split()) for language, words in data["common"].items()},
        frozenset(data["covered"]),
    )


def concepts() -> Lexicon:
    """The lexicon of all concepts; read once."""
    return _compiled().lexicon


def function_words() -> dict[str, frozenset[str]]:
    """Language to its commonest words, folded."""
    return _compiled().common


def covered_languages() -> frozenset[str]:
    """Languages whose words the concepts hold; of others only international terms are known."""
    return _compiled().covered


@cache
def all_function_words() -> frozenset[str]:
    """The commonest words of all languages."""
    return frozenset().union(*function_words().values())
