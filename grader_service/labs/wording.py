"""Says what a field wants and what came instead, from JSON Schemas and the errors of pydantic."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from grader_service.labs.documents import Document
from grader_service.labs.mistakes import Location, Mistake, error_at
from grader_service.model.base import neutralise
from grader_service.model.near import nearest

Schema = Mapping[str, Any]

_PATTERNS = {
    r"^[A-Za-z0-9._:-]{1,128}$": "an id: 1 to 128 of the characters A-Z a-z 0-9 . _ : -",
    r"^\d+\.\d+\.\d+$": 'a version of three numbers, such as "1.0.0"',
    r"^>=\d{1,6}(\.\d{1,6}){0,2}$": 'the oldest version, such as ">=0.1"',
}
_MOST_SHOWN = 60


def schema_of(model: type[BaseModel]) -> Schema:
    """The JSON Schema of a model; an empty one where the model cannot describe itself."""
    try:
        return model.model_json_schema(by_alias=True)
    except Exception:  # noqa: BLE001 - a check's author may use types without a schema; then pydantic's words do
        return {}


def mistakes_of(error: ValidationError, schema: Schema, document: Document, base: Location = ()) -> list[Mistake]:
    """Every problem that pydantic found, in our words and with its line.

    Args:
        error: of validating the part of the document at `base`.
        document: the whole document.
        base: where the validated part stands in it.
    """
    found: dict[tuple[Location, str], Mistake] = {}
    for problem in error.errors(include_url=False, include_context=False):
        inner = _present(document.data, base, problem["loc"], missing=problem["type"] == "missing")
        location = (*base, *inner)
        kind = problem["type"]
        if kind == "extra_forbidden":
            mistake = _unknown(document, location, known_names(schema, inner[:-1]))
        elif kind == "missing":
            wanted = described(part_of(schema, inner), schema)
            position = document.places.of_value(location[:-1])
            mistake = error_at(position, "field.missing", f"missing; expected {wanted}", location)
        elif kind == "too_short" and _long_enough(_value_at(document.data, location), part_of(schema, inner)):
            continue  # pydantic counts only the items that are right; the wrong ones are listed by themselves
        elif kind == "value_error":
            said = problem["msg"].removeprefix("Value error, ")
            mistake = error_at(document.places.of_value(location), "value.wrong", said[:400], location)
        else:
            mistake = _wrong(document, location, part_of(schema, inner), schema, problem["msg"])
        found.setdefault((location, mistake.code), mistake)
    return list(found.values())


def _present(data: object, base: Location, inner: Location, *, missing: bool) -> Location:
    """The part of pydantic's location that stands in the document: names of a union's branches do not."""
    data = _value_at(data, base)
    kept: list[str | int] = []
    for index, part in enumerate(inner):
        if _holds(data, part):
            data = data[part]  # type: ignore[index]
        elif not (missing and index == len(inner) - 1):
            continue
        kept.append(part)
    return tuple(kept)


def _value_at(data: object, location: Location) -> object:
    """What stands at a place; None where nothing does, as for parameters that were left out."""
    for part in location:
        if not _holds(data, part):
            return None
        data = data[part]  # type: ignore[index]
    return data


def _holds(data: object, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _long_enough(value: object, part: Schema) -> bool:
    return isinstance(value, list) and len(value) >= part.get("minItems", 0)


def _unknown(document: Document, location: Location, names: list[str]) -> Mistake:
    message = f"unknown field{meant(str(location[-1]), names)}"
    message += f" Fields here: {', '.join(names)}" if names else " There are no fields here"
    return error_at(document.places.of_key(location), "field.unknown", message, location)


def _wrong(document: Document, location: Location, part: Schema, schema: Schema, otherwise: str) -> Mistake:
    value = _value_at(document.data, location)
    wanted = described(part, schema)
    message = f"expected {wanted}, got {shown(value)}" if wanted != _ANYTHING else f"{otherwise}, got {shown(value)}"
    spelling = document.spellings.get(location)
    wants_text = part.get("type") == "string" or isinstance(part.get("const"), str)
    if spelling is not None and not isinstance(value, str) and wants_text:
        message += f"; YAML reads {spelling} as {_type(value)}, so write it in quotes: {json.dumps(spelling)}"
    return error_at(document.places.of_value(location), "value.wrong", message, location)


def meant(word: str, names: Iterable[str]) -> str:
    """`; did you mean "x"?` where a known name is close, else a full stop."""
    close = nearest(word, list(names))
    return f'; did you mean "{close}"?' if close else "."


def shown(value: object) -> str:
    """A value as authors write it, cut to a readable length."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "an empty list" if not value else f"a list of {len(value)}"
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return neutralise(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")


def known_names(schema: Schema, location: Location) -> list[str]:
    """Names of the fields of the table at this place."""
    return sorted(part_of(schema, location).get("properties", {}))


def part_of(schema: Schema, location: Location) -> Schema:
    """The part of a schema that describes this place; empty where it says nothing of it."""
    part = _resolved(schema, schema)
    for key in location:
        if isinstance(key, int):
            prefix = part.get("prefixItems", [])
            inner = prefix[key] if key < len(prefix) else part.get("items", {})
        else:
            inner = part.get("properties", {}).get(key, {})
        part = _resolved(inner if isinstance(inner, Mapping) else {}, schema)
    return part


def _resolved(part: Schema, schema: Schema) -> Schema:
    """Follows references, and the one branch of a choice that is not `null`."""
    for _ in range(8):
        if "$ref" in part:
            part = schema.get("$defs", {}).get(part["$ref"].rpartition("/")[2], {})
            continue
        branches = [branch for branch in part.get("anyOf", []) if branch.get("type") != "null"]
        if len(branches) != 1:
            return part
        part = branches[0]
    return part


_ANYTHING = "a value"


def described(part: Schema, schema: Schema) -> str:
    """What a field wants: `an integer of at least 1`, `one of "a", "b"`."""
    part = _resolved(part, schema)
    if "const" in part:
        return json.dumps(part["const"])
    if "enum" in part:
        return "one of " + ", ".join(json.dumps(choice) for choice in part["enum"])
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(described(branch, schema) for branch in part["anyOf"]))
    kind = part.get("type")
    if kind == "string":
        return _text(part)
    if kind in {"integer", "number"}:
        return ("an integer" if kind == "integer" else "a number") + _range(part)
    if kind == "array":
        least = part.get("minItems", 0)
        return f"a list with at least {least} item{'s' if least > 1 else ''}" if least else "a list"
    return {"boolean": "true or false", "object": "a table", "null": "nothing"}.get(str(kind), _ANYTHING)


def _text(part: Schema) -> str:
    if "pattern" in part:
        return _PATTERNS.get(part["pattern"], f"text that matches {part['pattern']}")
    return f"text of at most {part['maxLength']} characters" if "maxLength" in part else "text"


def _range(part: Schema) -> str:
    low, above = part.get("minimum"), part.get("exclusiveMinimum")
    high, below = part.get("maximum"), part.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    lower = f"of at least {low:g}" if low is not None else f"above {above:g}" if above is not None else ""
    upper = f"at most {high:g}" if high is not None else f"below {below:g}" if below is not None else ""
    return "".join(f" {bound}" for bound in (" and ".join(bound for bound in (lower, upper) if bound),) if bound)


def _type(value: object) -> str:
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    return "nothing" if value is None else f"the number {value}"
