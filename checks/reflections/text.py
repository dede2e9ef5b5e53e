"""Turns what a learner typed into comparable words, in any script.

Case, width, accents, look-alike letters, invisible and direction-changing characters do not survive; the words keep
their order and a position in *words*, so that "near" means the same in Chinese as in English. Scripts that write
without spaces (Han, kana, Thai, Lao, Khmer, Burmese) stay in one run here and are cut by the lexicon's own entries.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u093c\u09bc]")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏкмтвнԛԝɡıοαεικνρτυχηγѵ",
    "aeopcyxijsdhlkmtbhqwgioaeiknptuxnyv",
)
_FOLDS = str.maketrans(
    {
        "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th", "ə": "e",
        "ى": "ي", "ی": "ي", "ة": "ه", "ک": "ك", "ـ": "", "ٱ": "ا", "ۀ": "ه", "ଁ": "ଂ", "ँ": "ं",
        "’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'", "।": ".", "॥": ".", "։": ".", "။": ".", "۔": ".",
    }
)  # fmt: skip
_DIGITS = str.maketrans(
    {
        chr(zero + value): str(value)
        for zero in (0x0660, 0x06F0, 0x0966, 0x09E6, 0x0E50, 0x17E0, 0x1040)
        for value in range(10)
    }
)
_CODEC = re.compile(r"(?<![a-z0-9])([hx])[. ]?(26[456])(?![a-z0-9])")
_TIMES = re.compile(r"(?<=[0-9])([x×])(?=[a-z0-9])")
_TWO_ALPHABETS = re.compile("[a-z\u0370-\u052f]+")
_FOREIGN = re.compile("[\u0370-\u052f]")

_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTHEAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff"
_PIECE = re.compile(
    r"(?P<number>[0-9]+(?:[.,][0-9]+)*)"
    f"|(?P<han>[{_UNSPACED}]+)"
    f"|(?P<thai>[{_SOUTHEAST}]+)"
    f"|(?P<hangul>[{_HANGUL}]+)"
    "|(?P<word>[a-z\u00df-\u024f\u0300-\u036f\u1e00-\u1eff][a-z0-9\u00df-\u024f\u0300-\u036f\u1e00-\u1eff]*"
    "|[\u0370-\u052f\u1f00-\u1fff]+|[\u0590-\u05ff]+|[\u0610-\u061a\u0620-\u0669\u066e-\u06d3\u06d5-\u06ff\u0750-\u077f]+|[\u0900-\u0963\u0966-\u0dff]+|[^\\W\\d_]+)"
    "|(?P<sign>[%٪])"
    "|(?P<stop>[.!?;:。！？؛؟۔।॥\n|→>]+)"
    "|(?P<comma>[,、，،()/—–\u2015]+)"
)
_KIND_LETTERS = (
    ("han", re.compile(f"[{_UNSPACED}]")),
    ("thai", re.compile(f"[{_SOUTHEAST}]")),
    ("hangul", re.compile(f"[{_HANGUL}]")),
)
UNSPACED_KINDS = frozenset({"han", "thai", "hangul"})
"""Kinds of pieces that may hold several words."""
_WORDS_PER_CHARACTER = {"han": 0.55, "thai": 0.22, "hangul": 0.45}
_LONGEST_GROWTH = 2
"""Some characters stand for eighteen."""
_STOP_GAP, _COMMA_GAP = 2.0, 0.75


class Piece(NamedTuple):
    """One run of one script."""

    text: str
    """Folded."""
    exact: str
    """With accents, which tell Vietnamese words apart."""
    kind: str
    at: float
    """Position, counted in words; a full stop counts as two, so that nearness rarely reaches over it."""
    width: float
    clause: int
    """How many commas and stops came before."""


@lru_cache(maxsize=64)  # the items of one submission, which several readers ask for
def clean(text: str) -> str:
    """One form of the same text: compatible, lower-case, visible characters only; hardly longer than it was."""
    return normalise(text)[: _LONGEST_GROWTH * len(text)]


def normalise(text: str) -> str:
    """The same, with characters that stand for several written out in full."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text.casefold())).translate(_DIGITS)
    if _FOREIGN.search(text):
        text = _TWO_ALPHABETS.sub(_unmix, text)
    return _TIMES.sub(r" \1 ", _CODEC.sub(r"\1\2", text))


def fold(text: str) -> str:
    """Cleaned text without accents and spelling variants, as lexicons and comparisons want it."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text))).translate(_FOLDS)


def skeleton(text: str) -> str:
    """Folded text in which letters that merely look alike are the same letter."""
    return fold(clean(text)).translate(_LOOKALIKES)


def pieces(cleaned: str) -> list[Piece]:
    """Cuts cleaned text into pieces."""
    found: list[Piece] = []
    at, clause = 0.0, 0
    for match in _PIECE.finditer(cleaned):
        kind = match.lastgroup or "word"
        if kind == "stop":
            at, clause = at + _STOP_GAP, clause + 1
            continue
        if kind == "comma":
            at, clause = at + _COMMA_GAP, clause + 1
            continue
        exact = match.group()
        text = _folded(exact)
        if not text:
            continue  # a mark without a letter
        width = _WORDS_PER_CHARACTER.get(kind, 0.0) * len(text) or 1.0
        if kind == "hangul":
            width = max(1.0, width)
        found.append(Piece(text, exact, kind, at, width, clause))
        at += width
    return found


def kind_of(character: str) -> str:
    """The kind of piece that a letter belongs to."""
    for kind, letters in _KIND_LETTERS:
        if letters.match(character):
            return kind
    return "word"


@lru_cache(maxsize=8192)
def _folded(word: str) -> str:
    return fold(word)


def _unmix(match: re.Match[str]) -> str:
    """A word of two alphabets becomes Latin when every foreign letter has a Latin twin; otherwise it is left alone."""
    word = match.group()
    if word.isascii() or not any(letter.isascii() for letter in word):
        return word
    latin = word.translate(_LOOKALIKES)
    return latin if latin.isascii() else word
