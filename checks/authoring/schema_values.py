"""Draws values for a JSON schema, as pydantic writes it; what a validator wants may still refuse them."""

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

_WORDS = (
    "",
    "word",
    "float32",
    "CHW",
    "cuda",
    "jpeg.ok",
    "0" * 32,
    "0" * 64,
    "1.0.0",
    "a" * 120,
    "Zeile\u00fc \u2014 \U0001f600",
)
_NUMBERS = (0.0, 1.0, -1.0, 0.5, 255.0, 1e-300, 1e300)
_WHOLE = (0, 1, 2, 3, 7, 16, 255, 1000, -1, 2**31, 2**53)
_DEPTH = 10
_MOST_ITEMS = 4


def values_for(schema: Mapping[str, Any], numbers: random.Random, count: int) -> Iterator[Any]:
    """So many values, the first ones with every optional field left out and put in."""
    drawing = _Drawing(schema.get("$defs", {}), numbers)
    for number in range(count):
        drawing.optional = {0: 0.0, 1: 1.0}.get(number, 0.7)
        yield drawing.value(schema, _DEPTH)


class _Drawing:
    def __init__(self, definitions: Mapping[str, Any], numbers: random.Random) -> None:
        self._definitions = definitions
        self._numbers = numbers
        self.optional = 0.7

    def value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping) or depth == 0:
            return None
        if "$ref" in schema:
            return self.value(self._definitions.get(str(schema["$ref"]).rpartition("/")[2], {}), depth - 1)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._numbers.choice(schema["enum"])
        for name in ("anyOf", "oneOf"):
            if schema.get(name):
                return self.value(self._numbers.choice(schema[name]), depth)
        if schema.get("allOf"):
            return self.value(schema["allOf"][0], depth)
        return self._typed(schema, depth)

    def _typed(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            return self._string(schema)
        if kind == "integer":
            return int(self._bounded(schema, self._numbers.choice((*_WHOLE, self._numbers.randrange(100)))))
        if kind == "number":
            return self._bounded(schema, self._numbers.choice((*_NUMBERS, self._numbers.uniform(0, 300))))
        if kind == "boolean":
            return self._numbers.random() < 0.5
        return None

    def _object(self, schema: Mapping[str, Any], depth: int) -> Any:
        needed = schema.get("required", ())
        drawn = {
            name: self.value(inner, depth - 1)
            for name, inner in schema.get("properties", {}).items()
            if name in needed or self._numbers.random() < self.optional
        }
        further = schema.get("additionalProperties")
        if isinstance(further, Mapping):
            for _ in range(self._numbers.randrange(3)):
                drawn[self._numbers.choice(("a", "reader", "word_two"))] = self.value(further, depth - 1)
        return drawn

    def _array(self, schema: Mapping[str, Any], depth: int) -> Any:
        if schema.get("prefixItems"):
            return [self.value(inner, depth - 1) for inner in schema["prefixItems"]]
        low = int(schema.get("minItems", 0))
        high = min(int(schema.get("maxItems", low + _MOST_ITEMS)), low + _MOST_ITEMS)
        return [self.value(schema.get("items", {}), depth - 1) for _ in range(self._numbers.randint(low, high))]

    def _string(self, schema: Mapping[str, Any]) -> str:
        fitting = [word for word in _WORDS if _fits(word, schema.get("pattern"))]
        text = self._numbers.choice(fitting if fitting and self._numbers.random() < 0.9 else _WORDS)
        low, high = int(schema.get("minLength", 0)), int(schema.get("maxLength", 10_000))
        if self._numbers.random() < 0.1:
            text = "long " * (min(high, 8192) // 5)
        return text[:high] + "x" * max(0, low - len(text))

    def _bounded(self, schema: Mapping[str, Any], drawn: float) -> float:
        step = 1 if schema.get("type") == "integer" else 1e-6
        if (low := schema.get("minimum", schema.get("exclusiveMinimum"))) is not None:
            drawn = max(drawn, low + step if "exclusiveMinimum" in schema else low)
        if (high := schema.get("maximum", schema.get("exclusiveMaximum"))) is not None:
            drawn = min(drawn, high - step if "exclusiveMaximum" in schema else high)
        return drawn


def _fits(word: str, pattern: str | None) -> bool:
    """Whether a word has the form that is asked for; none has where Python does not know the pattern's language."""
    try:
        return pattern is None or re.search(pattern, word) is not None
    except re.error:
        return False
