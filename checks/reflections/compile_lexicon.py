"""Compiles the word lists to `lexicon.json`: `python -m checks.reflections.compile_lexicon`.

Each file below `lexicon/` holds TOML tables: a table is a concept, a key is a language (`x`: international terms,
`more`: languages of which only these words are known), and its value lists patterns separated by commas. A pattern of
several words matches them side by side. A word of four letters or more matches everything that begins with it, a
shorter one only itself; a closing dot asks for the whole word, an opening `~` looks inside longer words (for
compounds). Patterns in scripts without spaces match anywhere. `function_words.toml` lists the commonest words of each
language, separated by spaces.

The compiled file exists because indexing 20,000 patterns takes longer than judging a hundred lists; a test holds it
to its sources.
"""

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from checks.reflections.text import UNSPACED_KINDS, fold, kind_of, normalise, pieces

WHOLE_WORD_BELOW = 4
_SPACED_BELOW = "\u0e00"
"""Thai, Burmese, Khmer, Hangul, kana and Han all follow this character; a few spaced scripts do too."""
_FUNCTION_WORDS = "function_words.toml"
_UNGATED = frozenset({"x", "more"})

Rest = list[tuple[str, bool]]
"""The further words of a phrase, each with whether it must match as a whole."""


class Index:
    """Patterns by the way they match; a value names concepts, as `concept` or `concept:language`."""

    def __init__(self) -> None:
        self.whole: defaultdict[str, set[str]] = defaultdict(set)
        self.stems: defaultdict[str, set[str]] = defaultdict(set)
        self.inside: defaultdict[str, set[str]] = defaultdict(set)
        self.unspaced: defaultdict[str, set[str]] = defaultdict(set)
        self.phrases: defaultdict[str, list[tuple[str, bool, Rest]]] = defaultdict(list)
        """First word to (concept, whether it must match as a whole, the rest)."""

    def add(self, concept: str, pattern: str) -> None:
        """Files one pattern."""
        stem = pattern.removesuffix(".")
        if pattern.startswith("~"):
            self.inside[stem[1:]].add(concept)
            if stem != pattern:
                self.whole[stem[1:]].add(concept)
        elif words := _words(pattern):
            (first, whole, kind), *others = words
            if others:
                self.phrases[first].append((concept.partition(":")[0], whole, [word[:2] for word in others]))
            elif kind in UNSPACED_KINDS:
                self.unspaced[first].add(concept)
            else:
                (self.whole if whole else self.stems)[first].add(concept)

    def as_json(self) -> dict[str, object]:
        """The index as JSON values, in a stable order."""
        plain = {
            name: {word: " ".join(sorted(concepts)) for word, concepts in sorted(getattr(self, name).items())}
            for name in ("whole", "stems", "inside", "unspaced")
        }
        return {**plain, "phrases": {word: sorted(phrases) for word, phrases in sorted(self.phrases.items())}}


def compile_index(concepts: Iterable[tuple[str, str, str]], common: dict[str, frozenset[str]]) -> Index:
    """Indexes (concept, language, patterns).

    A word in Latin letters of any language but English counts only in texts of that language, and so does an English
    one that is a commonplace word elsewhere; else "slow" would be Polish for words and "dei" an Italian dataset.
    """
    index = Index()
    for concept, language, patterns in concepts:
        typed = normalise(patterns)
        others = frozenset().union(*(words for other, words in common.items() if other != language))
        for part in (typed if language == "vi" else fold(typed)).split(","):
            pattern = part.strip()
            gated = language not in _UNGATED and pattern[:1].isascii()
            if language == "en" and pattern.removesuffix(".") not in others:
                gated = False
            index.add(f"{concept}:{language}" if gated else concept, pattern)
    return index


def sources() -> tuple[list[tuple[str, str, str]], dict[str, frozenset[str]]]:
    """(concept, language, patterns) of all files, and the common words of each language, folded."""
    entries: list[tuple[str, str, str]] = []
    common: dict[str, frozenset[str]] = {}
    for file in sorted((files(__package__) / "lexicon").iterdir(), key=lambda entry: entry.name):
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        if file.name == _FUNCTION_WORDS:
            common = {language: frozenset(fold(normalise(words)).split()) for language, words in tables.items()}
        else:
            entries.extend(
                (concept, language, patterns)
                for concept, lists in tables.items()
                for language, patterns in lists.items()
            )
    return entries, common


def compiled() -> str:
    """The text of `lexicon.json`."""
    entries, common = sources()
    data = compile_index(entries, common).as_json()
    data["common"] = {language: " ".join(sorted(words)) for language, words in sorted(common.items())}
    data["covered"] = sorted({language for concept, language, _ in entries if concept == "image"} - _UNGATED)
    return json.dumps(data, ensure_ascii=False, indent=0, separators=(",", ":")) + "\n"


def _words(pattern: str) -> list[tuple[str, bool, str]]:
    """(word, must match as a whole, kind) of each word."""
    words = []
    for part in pattern.split():
        closed = part.endswith(".")
        word = part.removesuffix(".")
        if word.isalpha() and max(word) < _SPACED_BELOW:
            words.append((word, closed or len(word) < WHOLE_WORD_BELOW, kind_of(word[0])))
            continue
        cut = pieces(part)
        for piece in cut:
            whole = closed or piece is not cut[-1] or len(piece.text) < WHOLE_WORD_BELOW
            words.append((piece.exact, whole, piece.kind))
    return words


def main() -> None:
    """Writes the compiled file beside the sources."""
    Path(__file__).with_name("lexicon.json").write_text(compiled(), encoding="utf-8")


if __name__ == "__main__":
    main()
