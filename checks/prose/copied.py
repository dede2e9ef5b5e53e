"""Recognises text taken from the lab's own pages, by fingerprints only, and our own examples.

`fingerprints.txt` holds 32-bit hashes of all runs of four words of those pages, made by
`bench/reflections_fingerprints.py`; the pages themselves are not here. An entry is copied when most of its words lie in
such runs, so that a few changed words do not hide it. Translated copies are not recognised.
"""

import re
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from checks.prose.text import clean, fold, length

RUN = 4
"""Words of one hashed run."""
EXAMPLES = {
    "where_dali_wins": (
        "Herbarium sheets scanned as 40 MP JPEGs on a workstation with six cores: unpacking one sheet takes the CPU "
        "longer than the whole training step, so the card waits for pictures."
    ),
    "where_dali_loses": (
        "Chess games stored as arrays of moves: there is nothing to unpack, the loader hands over integers, and the "
        "network alone sets the pace."
    ),
}
"""One good entry for each list, which feedback shows; handed in, it counts as copied."""
_COPIED_SHARE = 0.6
_FEWEST_WORDS = 7
_FEWEST_RUNS = 3
_WORD = re.compile(r"[^\W_]+")


def runs(text: str) -> list[int]:
    """Hash of each run of words, in order."""
    words = _WORD.findall(fold(clean(text)))
    return [
        int.from_bytes(blake2b(" ".join(words[start : start + RUN]).encode("utf-8", "replace"), digest_size=8).digest())
        >> 32
        for start in range(len(words) - RUN + 1)
    ]


def is_copied(text: str) -> bool:
    """Whether most of the text stands in the fingerprinted pages."""
    known = fingerprints()
    hashed = runs(text)
    words = len(hashed) + RUN - 1
    found = [number for number, value in enumerate(hashed) if value in known]
    if words < _FEWEST_WORDS or len(found) < _FEWEST_RUNS:
        return False
    covered = {number + offset for number in found for offset in range(RUN)}
    return len(covered) / max(words, length(text)) >= _COPIED_SHARE


@cache
def fingerprints() -> frozenset[int]:
    """Hashes of the lab's pages and of our examples; read once."""
    lines = (files(__package__) / "fingerprints.txt").read_text(encoding="ascii").splitlines()
    pages = {int(value, 16) for line in lines if not line.startswith("#") for value in line.split()}
    return frozenset(pages.union(*map(runs, EXAMPLES.values())))
