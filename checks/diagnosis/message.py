"""Reads an exception's message: DALI and DataLoader workers wrap what was raised in a report of where it was raised.

DALI puts the learner's line of the graph and the operator before the error proper, and a notice behind it. A worker's
exception arrives as a traceback in text. Both are unwrapped here; everything else is passed on as it is.
"""

import re
from typing import NamedTuple

from grader_service.model.discovery import LearnerException
from grader_service.model.place import Place

_MOST = 8192
_OPERATOR = re.compile(r"Error in \w{1,8} operator `([\w.]{1,100})`")
_ENCOUNTERED = "\nencountered:\n"
_NOTICE = "Current pipeline object is no longer valid."
_CONTEXT = "C++ context: ["
_WORKER = re.compile(r"^Caught \w{1,100} in DataLoader worker process \d{1,9}\.\n")
_LINE = re.compile(r'^  File "([^"\n]{1,300})", line (\d{1,7}), in ([^\n]{1,100})\n {4}([^\n]{1,300})', re.MULTILINE)
_LIBRARY = ("site-packages", "dist-packages", "/lib/python", "<")
_CELL = re.compile(r"cell_(\d{3,6})\.py")


class Seen(NamedTuple):
    """What a message says."""

    type: str
    texts: tuple[str, ...]
    """The error proper first where the message wraps one, then the whole message."""
    operator: str
    """Name of the DALI operator; empty when none is named."""
    place: Place | None
    """The learner's line that the message itself names; null when it names none."""
    stopped_at: Place | None
    """Where the code stopped."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The learner's own lines."""
        return tuple(place.source for place in (self.place, self.stopped_at) if place is not None)

    @property
    def wrapped(self) -> bool:
        """Whether a library reports an error from elsewhere: from inside a graph or from a worker."""
        return len(self.texts) > 1


def read(exception: LearnerException) -> Seen:
    """Unwraps a message; takes time linear in it."""
    whole = exception.message[:_MOST]
    operator = _OPERATOR.search(whole)
    if operator is not None:
        head, found, tail = whole.partition(_ENCOUNTERED)
        inner = tail.split(_NOTICE)[0].split(_CONTEXT)[0].strip() if found else whole
        return Seen(exception.type, (inner, whole), operator[1], _last_own_line(head), exception.place)
    if _WORKER.match(whole) is not None:
        last = whole.rstrip().rpartition(f"\n{exception.type}: ")[2]
        return Seen(exception.type, (last, whole), "", _last_own_line(whole), exception.place)
    return Seen(exception.type, (whole,), "", None, exception.place)


def _last_own_line(report: str) -> Place | None:
    """The innermost line of a traceback in text that is not a library's."""
    own = [found for found in _LINE.finditer(report) if not any(part in found[1] for part in _LIBRARY)]
    if not own:
        return None
    path, line, function, source = own[-1].groups()
    name = path.rpartition("/")[2]
    cell = _CELL.fullmatch(name)
    return Place(
        file=name[:200],
        line=max(1, int(line)),
        cell=max(1, min(100_000, int(cell[1]))) if cell is not None else None,
        source=source.strip()[:200],
        function=function,
    )
