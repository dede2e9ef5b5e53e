"""Finds concepts in a text by word lists in many languages.

The lists and the form of their patterns are described in `compile_lexicon`; here their compiled index is matched, in
time linear in the text. Matching is partial by nature: a word the lists lack is not seen, and a few words mean
something else in another language. Judging therefore never depends on a single hit.
"""

import json
import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
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
_WORDS_KEPT = 8192
"""Learners of one lab share most of their words, so what one of them means is looked up once."""


class Hit(NamedTuple):
    """One concept at one place."""

    concept: str
    at: float
    piece: int
    """Index of the piece that it begins in."""
    size: int
    """Pieces that it covers."""


_Rest = tuple[tuple[str, bool], ...]
"""The further words of a phrase, and whether each stands whole."""


class _Form(NamedTuple):
    """What the lists say of one form of a word."""

    singles: frozenset[str]
    """Concepts of the longest single word that it begins with."""
    phrases: tuple[tuple[str, _Rest], ...]
    """Concepts of the phrases that it may begin."""


class _Word(NamedTuple):
    """What the lists say of a word, wherever it stands."""

    forms: tuple[_Form, ...]
    """Those of which they say something; the first one that holds in the text explains the word."""
    mistyped: frozenset[str]
    """What explains it otherwise."""
    inside: frozenset[str]
    """Concepts of its parts, in any case."""


class Lexicon:
    """The compiled index and how to match it."""

    def __init__(self, index: Mapping[str, Mapping[str, str]], phrases: Mapping[str, list[list[object]]]) -> None:
        """Takes what `compile_lexicon.Index.as_json` gives."""
        self._whole, self._stems = index["whole"], index["stems"]
        self._inside, self._unspaced = index["inside"], index["unspaced"]
        self._phrases = phrases
        self._longest_unspaced = max(map(len, self._unspaced), default=0)
        self._longest_inside = max(map(len, self._inside), default=0)
        self._word = lru_cache(_WORDS_KEPT)(self._look_up)

    def find(self, text: list[Piece], languages: Collection[str] | None = None) -> list[Hit]:
        """Every concept in the text, in order.

        `languages` bounds which languages may explain a single word in Latin letters; None is any. International and
        most English terms always may.
        """
        hits: list[Hit] = []
        among = None if languages is None else frozenset(languages)
        for number, piece in enumerate(text):
            if piece.kind in UNSPACED_KINDS:
                self._scan(text, number, hits)
            else:
                self._explain(text, number, hits, among)
        return _unmasked(hits)

    def _explain(self, text: list[Piece], number: int, hits: list[Hit], languages: frozenset[str] | None) -> None:
        piece = text[number]
        forms, mistyped, inside = self._word(piece.text, piece.exact, languages)
        found: set[tuple[str, int]] = set()
        initials = _initials(text, number + 1) if forms else ""
        for singles, phrases in forms:
            found.update([(concept, 1) for concept in singles])
            for concept, rest in phrases:
                # Of the phrases that begin with a common word, most already differ in the next letter.
                if (not rest or initials is None or rest[0][0][0] in initials) and _continues(rest, text, number + 1):
                    found.add((concept, 1 + len(rest)))
            if found:
                break
        if mistyped and not found:
            found.update((concept, 1) for concept in mistyped)
        if inside:
            found.update((concept, 1) for concept in inside)
        if found:
            hits.extend(Hit(concept, piece.at, number, size) for concept, size in sorted(found))

    def _look_up(self, word: str, exact: str, languages: frozenset[str] | None) -> _Word:
        forms = (self._form(form, languages) for form in _forms(word, exact))
        return _Word(
            forms=tuple(form for form in forms if form.singles or form.phrases),
            mistyped=self._mistyped(word, languages),
            inside=self._inside_of(word, languages),
        )

    def _form(self, form: str, languages: frozenset[str] | None) -> _Form:
        """Concepts of the phrases, and of the longest single word, that begin so."""
        phrases: list[tuple[str, _Rest]] = []
        singles = _allowed(self._whole.get(form), languages) | _allowed(self._stems.get(form), languages)
        for end in range(min(len(form), _LONGEST_STEM), 0, -1):
            stem = form[:end]
            if not singles:
                singles = _allowed(self._stems.get(stem), languages)
            phrases += [
                (str(concept), _words(rest))
                for concept, whole, rest in self._phrases.get(stem, ())
                if not (whole and end < len(form))
            ]
        return _Form(singles, tuple(phrases))

    def _mistyped(self, word: str, languages: frozenset[str] | None) -> frozenset[str]:
        """Concepts of what it is with two letters swapped ("vidoe"); short words turn into others too easily."""
        if not (_MISTYPED_FROM <= len(word) <= _LONGEST_STEM and word.isascii()):
            return _NONE
        for at in range(1, len(word) - 1):
            swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            if found := _allowed(self._whole.get(swapped) or self._stems.get(swapped), languages):
                return found
        return _NONE

    def _inside_of(self, word: str, languages: frozenset[str] | None) -> frozenset[str]:
        """Compounds: parts after the beginning of a long word."""
        if not _COMPOUND_FROM <= len(word) <= _COMPOUND_TO:
            return _NONE
        found: set[str] = set()
        for start in range(2, len(word) - 2):
            for end in range(start + 3, min(len(word), start + self._longest_inside) + 1):
                found |= _allowed(self._inside.get(word[start:end]), languages)
        return frozenset(found)

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
            words = _words(rest)
            if _continues(words, text, number + 1):
                hits.append(Hit(str(concept), at, number, 1 + len(words)))


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


def _words(rest: object) -> _Rest:
    return tuple((word, whole) for word, whole in rest) if isinstance(rest, list) else ()


def _forms(text: str, exact: str) -> tuple[str, ...]:
    """The word as typed, without accents, and without the articles that Arabic and Hebrew attach in front.

    Only Latin words are looked up as typed, for Vietnamese; elsewhere a typed letter would end the match too early. A
    letter drawn out ("sloooow") counts once.
    """
    first = text[0]
    forms: tuple[str, ...] = (text,)
    if text != exact and first <= _LAST_LATIN:
        forms = (exact, text)
    if _DRAWN_OUT.search(text):
        forms += (_DRAWN_OUT.sub(r"\1\1", text), _DRAWN_OUT.sub(r"\1", text))
    if _has_articles(text):
        prefixes = _HEBREW_PREFIXES if first < "\u0600" else _ARABIC_PREFIXES
        return forms + tuple(
            text[len(prefix) :] for prefix in prefixes if text.startswith(prefix) and len(text) > len(prefix) + 1
        )
    return forms


def _initials(text: list[Piece], number: int) -> str | None:
    """Letters with which a phrase's word that stands there can begin; None for any."""
    if number >= len(text):
        return ""
    piece = text[number]
    return None if _has_articles(piece.text) else piece.text[0] + piece.exact[0]


def _has_articles(text: str) -> bool:
    """Whether the script is one that attaches them in front."""
    return "\u0590" <= text[0] <= "\u06ff"


def _continues(words: _Rest, text: list[Piece], number: int) -> bool:
    """Whether the further words of a phrase stand here."""
    if number + len(words) > len(text):
        return False
    for at, (word, whole) in enumerate(words, number):  # noqa: SIM110 - asked for every word; `all` takes twice as long
        if not _stands(text[at], word, whole=whole):
            return False
    return True


def _stands(piece: Piece, word: str, *, whole: bool) -> bool:
    """Whether a piece is this word, or begins with it."""
    text, exact = piece.text, piece.exact
    if whole and piece.kind not in UNSPACED_KINDS:
        return word in (text, exact) or (_has_articles(text) and word in _forms(text, exact))
    if text.startswith(word) or exact.startswith(word):
        return True
    return _has_articles(text) and any(form.startswith(word) for form in _forms(text, exact))


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
