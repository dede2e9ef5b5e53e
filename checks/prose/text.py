"""Turns what a learner typed into comparable words, in any script.

Case, width, accents, look-alike letters, invisible and direction-changing characters do not survive. Scripts that
write without spaces (Han, kana, Thai, Lao, Khmer, Burmese) stay in one run.
"""

import re
import unicodedata
from functools import lru_cache

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
_TWO_ALPHABETS = re.compile("[a-z\u0370-\u052f]+")
_FOREIGN = re.compile("[\u0370-\u052f]")
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_RUN_OF_UNSPACED = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(f"[{_UNSPACED}]+|(?:[^\\W_{_UNSPACED}]|[\u0900-\u0963\u0966-\u0dff])+")
"""Words of Indian scripts hold marks, which are no letters to Python."""
_STOPS = re.compile(r"(?<=[.!?])\s+|(?<=[。！？।])|\n+")
_LETTERS_PER_WORD = 2
"""Of scripts without spaces; enough to tell a mark from a statement."""
_LONGEST_GROWTH = 2
"""Some characters stand for eighteen."""


@lru_cache(maxsize=512)  # the items of one submission, which several readers ask for
def clean(text: str) -> str:
    """One form of the same text: compatible, lower-case, visible characters only; hardly longer than it was."""
    longest = _LONGEST_GROWTH * len(text)
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text.casefold())).translate(_DIGITS)
    return (_TWO_ALPHABETS.sub(_unmix, text) if _FOREIGN.search(text) else text)[:longest]


def fold(text: str) -> str:
    """Cleaned text without accents and spelling variants."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text))).translate(_FOLDS)


@lru_cache(maxsize=512)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, cleaned and folded; a run of a script without spaces is one of them."""
    return tuple(_WORD.findall(fold(clean(text))))


def is_unspaced(word: str) -> bool:
    """Whether it is a run of a script that writes without spaces."""
    return _RUN_OF_UNSPACED.match(word) is not None


def length(text: str) -> int:
    """About how many words a text has, in any script."""
    return sum(-(-len(word) // _LETTERS_PER_WORD) if is_unspaced(word) else 1 for word in words(text))


def _unmix(match: re.Match[str]) -> str:
    """A word of two alphabets becomes Latin when every foreign letter has a Latin twin; otherwise it is left alone."""
    word = match.group()
    if word.isascii() or not any(letter.isascii() for letter in word):
        return word
    latin = word.translate(_LOOKALIKES)
    return latin if latin.isascii() else word


def sentences(text: str) -> list[str]:
    """The text cut at full stops and line ends."""
    return [part for part in _STOPS.split(text) if part.strip()]
