"""What the conformance suite says about a check: one line for each property."""

from collections.abc import Sequence
from typing import Literal

from grader_service.model.base import Wire

Status = Literal["passed", "failed", "skipped", "advice"]
MOST_EXAMPLES = 3


class Property(Wire):
    """One thing that a check has to be, and whether it is."""

    name: str
    status: Status
    text: str
    """What was seen."""
    todo: str = ""
    """What to do; empty where nothing is to be done."""
    traceback: str = ""
    """Of the first thing that the author's code raised; empty where it raised nothing."""


class Conformance(Wire):
    """All that was found about one check."""

    check: str
    version: str
    source: str
    """Where it came from: a distribution, a file or a folder."""
    properties: tuple[Property, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed; what was skipped has not failed."""
        return all(found.status != "failed" for found in self.properties)


def passed(name: str, text: str) -> Property:
    """It is so."""
    return Property(name=name, status="passed", text=text)


def failed(name: str, text: str, todo: str, traceback: str = "") -> Property:
    """It is not so."""
    return Property(name=name, status="failed", text=text, todo=todo, traceback=traceback)


def skipped(name: str, text: str, todo: str) -> Property:
    """It was not looked at."""
    return Property(name=name, status="skipped", text=text, todo=todo)


def advice(name: str, text: str, todo: str) -> Property:
    """It could be better, and fails nothing."""
    return Property(name=name, status="advice", text=text, todo=todo)


def kinds(found: Sequence[tuple[str, str]]) -> str:
    """Examples of (where, what), one for each different `what`."""
    first: dict[str, str] = {}
    for where, what in found:
        first.setdefault(what, where)
    return examples([f"{what} ({where})" for what, where in first.items()])


def examples(items: Sequence[str]) -> str:
    """The first few of them, and how many there are more."""
    shown = "; ".join(items[:MOST_EXAMPLES])
    more = len(items) - MOST_EXAMPLES
    return f"{shown}; and {more} more" if more > 0 else shown
