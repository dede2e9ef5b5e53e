"""What the text model sees of a text: hashed words, pairs of words, parts of words, and a few signs of its shape.

Hashing needs no vocabulary, so that nothing of the training texts is stored and every language is treated alike. The
same text gives the same buckets on every machine: CRC-32 of UTF-8.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import log2
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from checks.prose.text import clean, is_unspaced, words

BITS = 15
"""Each feature falls into one of 2**BITS buckets."""
_MOST_WORDS = 240
"""More are not needed to tell what an entry is about, and time stays bounded."""
_LONGEST_WORD = 24
_PARTS = (3, 4)
_SPREAD, _WIDTH = 0x9E3779B1, 32
_BRACKETS = re.compile(r"[\[\]{}<>]")
_CODE = re.compile(r"\w\(|\)\.|==|::|->|\w_\w|\w\.\w+\(")


@lru_cache(maxsize=512)
def buckets(text: str) -> NDArray[np.int32]:
    """The buckets of a text's features: sorted, each once; shape (n,), n ≥ 1."""
    found = set(words_said(text).tolist())
    found.update(map(_bucket, _shape(text)))
    numbered = ["^", *map(_number, _bounded(text)), "$"]
    found.update(_pair(*pair) for pair in pairwise(numbered))
    return np.array(sorted(found), dtype=np.int32)


@lru_cache(maxsize=512)
def words_said(text: str) -> NDArray[np.int32]:
    """Buckets of its words and parts of words alone, by which texts are compared; shape (n,), n ≥ 0."""
    return np.array(sorted({bucket for word in _bounded(text) for bucket in _parts(word)}), dtype=np.int32)


def known_units(text: str) -> list[int]:
    """32-bit hashes of its words (pairs of characters where no spaces are written), to ask whether they are known."""
    return [crc32(unit.encode()) for word in _bounded(text) for unit in _units(word)]


def _units(word: str) -> list[str]:
    if word.isdigit():
        return []
    return [word[start : start + 2] for start in range(len(word) - 1)] or [word] if is_unspaced(word) else [word]


def _bounded(text: str) -> list[str]:
    return [word[:_LONGEST_WORD] if not is_unspaced(word) else word[:_MOST_WORDS] for word in words(text)[:_MOST_WORDS]]


@lru_cache(maxsize=8192)
def _pair(before: str, word: str) -> int:
    """Bucket of two neighbouring words."""
    return _bucket(f"2{before} {word}")


@lru_cache(maxsize=8192)
def _parts(word: str) -> tuple[int, ...]:
    """Buckets of a word and of its parts."""
    if is_unspaced(word):
        runs = (word[start : start + size] for size in (1, 2, 3) for start in range(len(word) - size + 1))
        return tuple({_bucket(f"1{run}") for run in runs})
    whole = f"<{word}>"
    parts = (whole[start : start + size] for size in _PARTS for start in range(len(whole) - size + 1))
    return (_bucket(f"1{_number(word)}"), *{_bucket(f"p{part}") for part in parts})


def _shape(text: str) -> Iterator[str]:
    """How long it is, how it is divided, and how it begins and ends."""
    count = max(1, len(words(text)))
    stripped = text.strip()
    yield f"s-length {int(2 * log2(count))}"
    for sign in ",#/;|:":
        held = clean(text).count(sign)
        yield f"s{sign} {min(4, held)} {min(8, int(16 * held / count))}"
    yield f"s-letters {min(12, sum(map(len, words(text))) // count)}"
    yield f"s-brackets {min(3, len(_BRACKETS.findall(text)))}"
    yield f"s-code {min(3, len(_CODE.findall(text)))}"
    yield f"s-first {stripped[:1].isupper()}"
    yield f"s-last {'w' if stripped[-1:].isalnum() else stripped[-1:]}"


def _number(word: str) -> str:
    """Numbers are told apart by their size only."""
    return f"#{len(word)}" if word.isdigit() else word


def _bucket(name: str) -> int:
    return (crc32(name.encode("utf-8", "replace")) * _SPREAD & (1 << _WIDTH) - 1) >> (_WIDTH - BITS)
