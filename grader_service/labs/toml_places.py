"""Finds where every key and value of a TOML document stands, which `tomllib` does not tell.

The text must be valid TOML; `tomllib` has judged that before. So the scanner only has to tell strings, brackets and
names apart, in one pass over the text.
"""

import bisect
import re
import tomllib

from grader_service.labs.mistakes import Location, Places, Position

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_MULTI_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL)
_LITERAL = re.compile(r"'[^'\n]*'")
_MULTI_LITERAL = re.compile(r"'''(?:[^']|'(?!''))*'{3,5}")
_SCALAR = re.compile(r"[^,\]}#\n]*")


def toml_places(text: str) -> Places:
    """Positions of every key and value of a valid TOML text whose lines end in line feeds."""
    scanner = _Scanner(text)
    scanner.document()
    starts = [0, *(index + 1 for index, char in enumerate(text) if char == "\n")]

    def position(offset: int) -> Position:
        line = bisect.bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    return Places(
        {location: position(offset) for location, offset in scanner.keys.items()},
        {location: position(offset) for location, offset in scanner.values.items()},
    )


class _Scanner:
    """One pass over the text; `keys` and `values` hold offsets of characters."""

    def __init__(self, text: str) -> None:
        self.keys: dict[Location, int] = {}
        self.values: dict[Location, int] = {}
        self._text = text
        self._at = 0
        self._last: dict[Location, int] = {}  # index of the newest element of each array of tables

    def document(self) -> None:
        table: Location = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _header(self) -> Location:
        """`[a.b]` or `[[a.b]]`; names before the last lead into the newest element of an array of tables."""
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        names = self._names()
        self._at += brackets
        location: Location = ()
        for name, offset in names[:-1]:
            location = self._into((*location, name), offset)
        name, offset = names[-1]
        location = (*location, name)
        self._implied(location, offset)
        if brackets == 2:
            index = self._last[location] = self._last.get(location, -1) + 1
            location = (*location, index)
        self.values[location] = offset
        return location

    def _into(self, location: Location, offset: int) -> Location:
        self._implied(location, offset)
        return (*location, self._last[location]) if location in self._last else location

    def _implied(self, location: Location, offset: int) -> None:
        """A table that has no header of its own stands where its name is read first."""
        self.keys.setdefault(location, offset)
        self.values.setdefault(location, offset)

    def _pair(self, table: Location) -> None:
        location = table
        for name, offset in self._names():
            location = (*location, name)
            self._implied(location, offset)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(location)

    def _names(self) -> list[tuple[str, int]]:
        """The parts of a dotted key, each with its offset; stops at what follows the key."""
        names = []
        while True:
            self._skip(_SPACE)
            offset = self._at
            if self._text[offset] == '"':
                name = str(tomllib.loads(f"k = {self._skip(_BASIC)}")["k"])
            elif self._text[offset] == "'":
                name = self._skip(_LITERAL)[1:-1]
            else:
                name = self._skip(_BARE)
            names.append((name, offset))
            self._skip(_SPACE)
            if self._text[self._at] != ".":
                return names
            self._at += 1

    def _value(self, location: Location) -> None:
        self.values[location] = self._at
        first = self._text[self._at]
        if first == "[":
            self._array(location)
        elif first == "{":
            self._inline_table(location)
        elif first == '"':
            self._skip(_MULTI_BASIC if self._text.startswith('"""', self._at) else _BASIC)
        elif first == "'":
            self._skip(_MULTI_LITERAL if self._text.startswith("'''", self._at) else _LITERAL)
        else:
            self._skip(_SCALAR)

    def _array(self, location: Location) -> None:
        self._at += 1
        index = 0
        self._skip(_BLANK)
        while self._text[self._at] != "]":
            self._value((*location, index))
            index += 1
            self._separator()
        self._at += 1

    def _inline_table(self, location: Location) -> None:
        self._at += 1
        self._skip(_BLANK)
        while self._text[self._at] != "}":
            self._pair(location)
            self._separator()
        self._at += 1

    def _separator(self) -> None:
        self._skip(_BLANK)
        if self._text[self._at] == ",":
            self._at += 1
            self._skip(_BLANK)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Moves behind what the pattern matches here, and returns it."""
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError(f"not valid TOML at character {self._at}")
        self._at = match.end()
        return match[0]
