"""The text of a page as a reader sees it, a line for each block; what lies folded away is a part of it."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple

_ON_LINES_OF_THEIR_OWN = (
    "address article aside body dd details div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header html li main "
    "nav ol p pre section summary table tbody td th thead tr ul"
)
_BLOCKS = frozenset(_ON_LINES_OF_THEIR_OWN.split())
_UNSEEN = frozenset({"head", "style", "script", "svg", "title"})
_UNSEEN_CLASSES = frozenset({"hidden", "quiet", "skip"})
_VOID = frozenset({"meta", "link", "br", "img", "input", "hr"})


class Line(NamedTuple):
    """One line."""

    text: str
    verbatim: bool = False
    """The learner's own source and output, or code to write."""


def visible(html: str) -> list[Line]:
    """The lines of a page, from top to bottom. Drawings are left out: pictures show them."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return [line for line in reader.lines() if line.text]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, bool]] = []
        """Tag, and whether nothing in it is seen."""
        self._found: list[tuple[bool, str]] = [(False, "")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        classes = (dict(attrs).get("class") or "").split()
        self._break(tag)
        unseen = tag in _UNSEEN or bool(_UNSEEN_CLASSES.intersection(classes))
        self._open.append((tag, unseen or (bool(self._open) and self._open[-1][1])))
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._break(tag)
        self._open.pop()
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._open or not self._open[-1][1]:
            verbatim, text = self._found[-1]
            self._found[-1] = (verbatim, text + data)

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._found.append((any(name == "pre" for name, _ in self._open), ""))
        elif tag == ("i" if self._found[-1][0] else "span"):
            self.handle_data(" ")  # numbers of source lines and chips stand apart, by their style

    def lines(self) -> Iterator[Line]:
        for verbatim, text in self._found:
            if verbatim:
                yield from (Line(line.rstrip(), verbatim=True) for line in text.splitlines())
            else:
                yield Line(" ".join(text.split()))
