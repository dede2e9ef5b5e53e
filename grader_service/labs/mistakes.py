"""What is wrong in a lab specification: one value per mistake, with the line that holds it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

from grader_service.model.base import neutralise

Location = tuple[str | int, ...]
"""Where something stands in a document: keys of tables and indices of lists."""

Severity = Literal["error", "warning"]

Code = Literal[
    "file",
    "document.size",
    "document.depth",
    "document.encoding",
    "syntax",
    "yaml.alias",
    "yaml.tag",
    "yaml.key",
    "yaml.documents",
    "key.twice",
    "field.missing",
    "field.unknown",
    "value.wrong",
    "id.twice",
    "id.differs",
    "check.unknown",
    "check.broken",
    "grader.too_old",
    "hint",
    "more",
]
"""A stable word for programs; `docs/labs.md` says what each one means."""


class Position(NamedTuple):
    """Line and column of a character, both from 1."""

    line: int
    column: int


START = Position(1, 1)
MAX_DEPTH = 32
"""Of values in a document; what nests deeper is a mistake of its own."""


@dataclass(frozen=True)
class Mistake:
    """One thing that an author should change. An error keeps the lab from being graded, a warning does not."""

    severity: Severity
    code: Code
    line: int
    column: int
    path: str
    """Such as `steps[1].checks[0].params.min_batch`; empty for the whole file."""
    message: str

    def text(self, name: str) -> str:
        """One line as compilers write it: `lab.toml:23:10: steps[1].id: …`."""
        label = "warning: " if self.severity == "warning" else ""
        place = f"{self.path}: " if self.path else ""
        return neutralise(f"{name}:{self.line}:{self.column}: {label}{place}{self.message}").replace("\n", " ")

    def json_line(self, name: str) -> str:
        """The same as a JSON object on one line."""
        return json.dumps({"file": neutralise(name), **asdict(self)})


@dataclass(frozen=True)
class Places:
    """Where keys and values of a document stand in its text."""

    keys: Mapping[Location, Position]
    values: Mapping[Location, Position]

    def of_value(self, location: Location) -> Position:
        """The value's first character; that of the nearest part around it where there is no such value."""
        while location:
            for known in (self.values, self.keys):
                if location in known:
                    return known[location]
            location = location[:-1]
        return START

    def of_key(self, location: Location) -> Position:
        """The key's first character; that of the value, where the part has no key of its own."""
        return self.keys[location] if location in self.keys else self.of_value(location)


def path_text(location: Iterable[str | int]) -> str:
    """A location as authors write it: `steps[1].checks[0].id`; keys of learners' lengths are cut."""
    parts = []
    for part in location:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            name = part if part.replace("_", "a").replace("-", "a").isalnum() else json.dumps(part, ensure_ascii=False)
            parts.append(f".{name[:80]}")
    return neutralise("".join(parts).removeprefix("."))


def error_at(position: Position, code: Code, message: str, location: Location = ()) -> Mistake:
    """A mistake that keeps the lab from being graded."""
    return Mistake("error", code, position.line, position.column, path_text(location), message)


def warning_at(position: Position, code: Code, message: str, location: Location = ()) -> Mistake:
    """A hint: the lab can be graded, and probably does something else than its author meant."""
    return Mistake("warning", code, position.line, position.column, path_text(location), message)
