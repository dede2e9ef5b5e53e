"""The text of a page as a reader sees it, a line for each block; what lies folded away is a part of it."""

from typing import NamedTuple

from tests.report.page import Element, Page

_ON_LINES_OF_THEIR_OWN = (
    "address article aside body dd details div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header html li main "
    "nav ol p pre section summary table tbody td th thead tr ul"
)
_BLOCKS = frozenset(_ON_LINES_OF_THEIR_OWN.split())
_UNSEEN = frozenset({"head", "style", "script", "svg", "title"})
_UNSEEN_CLASSES = frozenset({"hidden", "quiet", "skip"})


class Line(NamedTuple):
    """One line."""

    text: str
    verbatim: bool = False
    """The learner's own source and output, or code to write."""


def visible(html: str) -> list[Line]:
    """The lines of a page, from top to bottom. Drawings are left out: pictures show them."""
    blocks = [(False, "")]
    _read(Page(html).root, False, blocks)
    return [line for verbatim, text in blocks for line in _lines(verbatim, text) if line.text]


def _read(element: Element, verbatim: bool, blocks: list[tuple[bool, str]]) -> None:  # noqa: FBT001 - of the block
    for part in element.texts:
        if isinstance(part, str):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + part)
            continue
        within = verbatim or part.tag == "pre"
        _edge(part.tag, verbatim, blocks)
        if part.tag not in _UNSEEN and _UNSEEN_CLASSES.isdisjoint((part.attributes.get("class") or "").split()):
            _edge(part.tag, within, blocks)
            _read(part, within, blocks)
            _edge(part.tag, within, blocks)
        _edge(part.tag, verbatim, blocks)


def _edge(tag: str, verbatim: bool, blocks: list[tuple[bool, str]]) -> None:  # noqa: FBT001 - the same
    if tag in _BLOCKS:
        blocks.append((verbatim, ""))
    elif tag == ("i" if blocks[-1][0] else "span"):
        blocks[-1] = (
            blocks[-1][0],
            blocks[-1][1] + " ",
        )  # numbers of source lines and chips stand apart, by their style


def _lines(verbatim: bool, text: str) -> list[Line]:  # noqa: FBT001 - the same
    if verbatim:
        return [Line(line.rstrip(), verbatim=True) for line in text.splitlines()]
    return [Line(" ".join(text.split()))]
