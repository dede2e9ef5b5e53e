"""Reads YAML into plain values with their positions: no aliases, no tags, no second document, no key twice.

The parser's events are walked one by one, so that nesting is bounded while the text is still being read, and nothing
is built that the text does not spell out.
"""

from collections.abc import Callable
from typing import Any

import yaml

from grader_service.labs.mistakes import MAX_DEPTH, Code, Location, Mistake, Places, Position, error_at

_KEY = -1
"""Stands in a location for a key that is still being read; no key and no index is equal to it."""


class YamlReading:
    """A YAML text that was read as far as it could be."""

    def __init__(self, text: str) -> None:
        """Reads at once; `mistakes` says what kept it from being read, `value` is None then."""
        self.value: object = None
        self.spellings: dict[Location, str] = {}
        """Words without quotes that YAML reads as something other than text, as they are written."""
        self.mistakes: list[Mistake] = []
        self._keys: dict[Location, Position] = {}
        self._values: dict[Location, Position] = {}
        try:
            self._loader: Any = yaml.SafeLoader(text)
            self.value = self._document()
        except _Refused as refused:
            self.mistakes.append(refused.mistake)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.mistakes.append(error_at(_position(mark), "syntax", f"not valid YAML: {_problem(error)}"))
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            position = Position(before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1)
            code = error.character if isinstance(error.character, int) else ord(error.character)
            self.mistakes.append(error_at(position, "syntax", f"not valid YAML: character U+{code:04X} is not allowed"))

    @property
    def places(self) -> Places:
        """Where keys and values stand."""
        return Places(self._keys, self._values)

    def _document(self) -> object:
        self._take(yaml.StreamStartEvent)
        if self._loader.check_event(yaml.StreamEndEvent):
            return None
        self._take(yaml.DocumentStartEvent)
        value = self._node((), 0)
        self._take(yaml.DocumentEndEvent)
        following = self._loader.get_event()
        if not isinstance(following, yaml.StreamEndEvent):
            raise _refused(following, "yaml.documents", "a second document begins here; a file holds one lab")
        return value

    def _take(self, kind: type[yaml.Event]) -> None:
        event = self._loader.get_event()
        if not isinstance(event, kind):  # the parser's own grammar rules that out
            raise _refused(event, "syntax", f"not valid YAML: expected {kind.__name__}")

    def _node(self, location: Location, depth: int) -> object:
        event: Any = self._loader.get_event()
        if isinstance(event, yaml.AliasEvent):
            raise _refused(event, "yaml.alias", f"the alias *{str(event.anchor)[:40]}: write its value out", location)
        if event.anchor is not None:
            raise _refused(
                event, "yaml.alias", f"the anchor &{str(event.anchor)[:40]}: write values out instead", location
            )
        if event.tag is not None:
            raise _refused(event, "yaml.tag", f"the tag {str(event.tag)[:60]}: a lab has plain values only", location)
        if depth > MAX_DEPTH:
            raise _refused(event, "document.depth", f"nested more than {MAX_DEPTH} deep", location)
        self._values[location] = _position(event.start_mark)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(location, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(location, depth)
        return self._scalar(event, location)

    def _mapping(self, location: Location, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while not self._loader.check_event(yaml.MappingEndEvent):
            event = self._loader.peek_event()
            key = self._node((*location, _KEY), depth + 1)
            spelling = self.spellings.pop((*location, _KEY), None)
            self._values.pop((*location, _KEY), None)
            if not isinstance(key, str):
                what = f"{spelling} is read by YAML as {_kind(key)}" if spelling is not None else "a key must be text"
                raise _refused(event, "yaml.key", f'{what}; write names in quotes: "{spelling or "name"}"', location)
            here = (*location, key)
            position = _position(event.start_mark)
            if key in found:
                first = self._keys[here]
                message = f"stands twice; the first one is in line {first.line}"
                self.mistakes.append(error_at(position, "key.twice", message, here))
                self._node((*location, _KEY), depth + 1)
                continue
            self._keys[here] = position
            found[key] = self._node(here, depth + 1)
        self._loader.get_event()
        return found

    def _sequence(self, location: Location, depth: int) -> list[object]:
        found: list[object] = []
        while not self._loader.check_event(yaml.SequenceEndEvent):
            found.append(self._node((*location, len(found)), depth + 1))
        self._loader.get_event()
        return found

    def _scalar(self, event: Any, location: Location) -> object:
        tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == "tag:yaml.org,2002:str":
            return event.value
        self.spellings[location] = event.value[:40]
        build: Callable[[Any], object] = self._loader.construct_object
        try:
            return build(yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark))
        except (ValueError, ArithmeticError) as error:  # a date that does not exist, a number of thousands of digits
            raise _refused(event, "syntax", f"not valid YAML: {error}"[:200], location) from error
        except yaml.constructor.ConstructorError as error:  # `<<` and `=` have tags of their own
            raise _refused(
                event, "yaml.tag", f"{event.value[:40]} has a meaning of its own in YAML", location
            ) from error


class _Refused(Exception):
    """Ends the reading; never leaves this module."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(mistake.message)
        self.mistake = mistake


def _refused(event: yaml.Event, code: Code, message: str, location: Location = ()) -> _Refused:
    where = tuple(part for part in location if part != _KEY)
    return _Refused(error_at(_position(event.start_mark), code, message, where))


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)


def _problem(error: yaml.MarkedYAMLError) -> str:
    parts = [str(part)[:200] for part in (error.problem, error.context) if part]
    return ", ".join(parts) or "it cannot be parsed"


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "nothing" if value is None else f"{str(value)[:40]}, which is no text"
