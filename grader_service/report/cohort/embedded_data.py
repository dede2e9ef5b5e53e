"""The data of a page, packed: JSON, deflated, in base64.

Of 10,000 submissions with sixteen checks 3.4 MB of JSON become 1.3 MB, and base64 has no character that could end a
script element or a line, whatever a learner wrote. Browsers unpack it with
`DecompressionStream`.
"""

import base64
import json
import zlib
from collections.abc import Hashable
from typing import Generic, TypeVar

from grader_service.model.base import neutralise

Word = TypeVar("Word", bound=Hashable)


class Words(Generic[Word]):
    """Each distinct value once; a column holds places in it."""

    def __init__(self) -> None:
        self._places: dict[Word, int] = {}

    def place(self, word: Word | None) -> int:
        """Where the value stands; -1 for null."""
        return -1 if word is None else self._places.setdefault(word, len(self._places))

    @property
    def values(self) -> list[Word]:
        """In the order of their places."""
        return list(self._places)


def packed(data: object) -> str:
    """The embedded data as text: A to Z, a to z, 0 to 9, `+`, `/` and `=`."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    press = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    # A lone surrogate has no bytes; texts are neutralised on their way in, ids cannot hold one.
    return base64.b64encode(press.compress(text.encode("utf-8", "replace")) + press.flush()).decode("ascii")


def safe(text: str | None, most: int = 300) -> str | None:
    """A text for the embedded data: cut, and without characters that move a cursor or reorder a line."""
    if text is None:
        return None
    return neutralise(text if len(text) <= most else f"{text[: most - 1]}…")


def digits(value: float | None, figures: int = 5) -> float | None:
    """The number with so many significant figures, which is more than a page shows."""
    return None if value is None else float(f"{value:.{figures}g}")
