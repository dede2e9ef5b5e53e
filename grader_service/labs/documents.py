"""Reads the text of a lab specification into plain values, with bounds on everything and positions for mistakes."""

import datetime as dt
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from grader_service.labs.mistakes import MAX_DEPTH, START, Code, Location, Mistake, Places, Position, error_at
from grader_service.labs.toml_places import toml_places

MAX_BYTES = 128 << 10
"""A lab is a page of text; more is a mistake, or meant to keep the grader busy."""
_MAX_INTEGER = 2**63
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
# A dotted key of thousands of parts costs `tomllib` the square of their number.
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MAX_DEPTH}}}")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class Form(StrEnum):
    """In which language a specification is written."""

    TOML = "toml"
    YAML = "yaml"


SUFFIXES: Mapping[str, Form] = {".toml": Form.TOML, ".yaml": Form.YAML, ".yml": Form.YAML}


@dataclass(frozen=True)
class Document:
    """A specification as plain values: tables, lists, text, truth values, finite numbers and nothing."""

    data: Mapping[str, object]
    places: Places
    spellings: Mapping[Location, str] = field(default_factory=dict)
    """Words that YAML read as something other than text, as they are written."""


Reading = Document | tuple[Mistake, ...]
"""A document, or why there is none."""


def read_document(content: bytes, form: Form) -> Reading:
    """Reads a specification, which may hold anything at all."""
    text = _decoded(content)
    if isinstance(text, Mistake):
        return (text,)
    reading = _toml(text) if form is Form.TOML else _yaml(text)
    return reading if isinstance(reading, tuple) else tuple(_out_of_bounds(reading)) or reading


def _decoded(content: bytes) -> str | Mistake:
    if len(content) > MAX_BYTES:
        return error_at(START, "document.size", f"has more than {MAX_BYTES >> 10} KiB, which no lab needs")
    if content.startswith(_BOMS):
        return error_at(START, "document.encoding", "begins with a byte order mark; save the file as UTF-8 without one")
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = content[: error.start].replace(b"\r\n", b"\n")
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        return error_at(
            Position(before.count(b"\n") + 1, column),
            "document.encoding",
            f"is not UTF-8: byte 0x{content[error.start]:02x} cannot stand here",
        )


def _toml(text: str) -> Reading:
    long_key = _LONG_KEY.search(text)
    if long_key is not None:
        position = _position_of(text, long_key.start())
        return _refused(position, "document.depth", f"a key of more than {MAX_DEPTH} parts")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        return _refused(START, "document.depth", f"nested more than {MAX_DEPTH} deep")
    except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
        return (_toml_mistake(text, str(error)),)
    too_deep = _too_deep(data)
    if too_deep is not None:
        return _refused(START, "document.depth", f"{too_deep} nests more than {MAX_DEPTH} deep")
    return Document(data, toml_places(text))


def _toml_mistake(text: str, message: str) -> Mistake:
    place = _TOML_PLACE.search(message)
    if place is None:
        return error_at(START, "syntax", f"not valid TOML: {message[:200]}")
    said = message[: place.start()]
    if place[1] is None:
        return error_at(_position_of(text, len(text)), "syntax", f"not valid TOML: {said} where the file ends")
    position = Position(int(place[1]), int(place[2]))
    if said == "Cannot overwrite a value":
        said = "a key stands twice"
    return error_at(position, "syntax", f"not valid TOML: {said[:200]}")


def _yaml(text: str) -> Reading:
    from grader_service.labs.yaml_reader import YamlReading  # noqa: PLC0415 - most labs are in TOML

    reading = YamlReading(text)
    if reading.mistakes:
        return tuple(reading.mistakes)
    if not isinstance(reading.value, dict):
        came = "is empty" if reading.value is None else f"holds a {type(reading.value).__name__}"
        return _refused(START, "value.wrong", f"expected a mapping with the fields of a lab; the file {came}")
    return Document(reading.value, reading.places, reading.spellings)


def _refused(position: Position, code: Code, message: str) -> Reading:
    return (error_at(position, code, message),)


def _position_of(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)


def _too_deep(data: Mapping[str, object]) -> str | None:
    """The top-level key under which values nest too deeply."""
    for name, value in data.items():
        level = [value]
        for _ in range(MAX_DEPTH):
            level = [inner for outer in level for inner in _children(outer)]
        if level:
            return name[:40]
    return None


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _out_of_bounds(document: Document) -> Iterator[Mistake]:
    """Values that no field of a lab can hold."""
    left: list[tuple[Location, object]] = [((), document.data)]
    while left:
        location, value = left.pop()
        problem = None
        if isinstance(value, dict):
            left += [((*location, name), inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            left += [((*location, index), inner) for index, inner in reversed(list(enumerate(value)))]
        elif isinstance(value, bool) or value is None or isinstance(value, str):
            continue
        elif isinstance(value, int):
            problem = None if abs(value) < _MAX_INTEGER else "an integer of more than 64 bits"
        elif isinstance(value, float):
            problem = None if math.isfinite(value) else "a number must be finite"
        elif isinstance(value, (dt.date, dt.time)):
            problem = "a date or time; a lab has none, so write text in quotes"
        else:
            problem = f"a {type(value).__name__} cannot stand in a lab"
        if problem is not None:
            yield error_at(document.places.of_value(location), "value.wrong", problem, location)
