"""Writes a lab as TOML, for labs that were written in YAML."""

import json
from collections.abc import Iterator, Mapping

from grader_service.model.lab import LabSpec


def lab_as_toml(lab: LabSpec) -> str:
    """The fields that a lab sets, as TOML that reads back as the same lab. `null` is left out: TOML has none."""
    return "\n".join(_table(lab.model_dump(mode="json", by_alias=True, exclude_unset=True), "")) + "\n"


def _table(table: Mapping[str, object], path: str) -> Iterator[str]:
    """Plain values first, then tables, as TOML wants it."""
    later: list[tuple[str, object]] = []
    for name, value in table.items():
        inner = f"{path}.{_key(name)}" if path else _key(name)
        if isinstance(value, dict) and not path:
            later.append((f"[{inner}]", value))
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            later += [(f"[[{inner}]]", item) for item in value]
        elif value is not None:
            yield f"{_key(name)} = {_value(value)}"
    for header, value in later:
        yield ""
        yield header
        yield from _table(value, header.strip("[]"))  # type: ignore[arg-type]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        pairs = [f"{_key(name)} = {_value(inner)}" for name, inner in value.items() if inner is not None]
        return "{ " + ", ".join(pairs) + " }" if pairs else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value if item is not None) + "]"
    return repr(value)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if bare else _text(name)


def _text(text: str) -> str:
    """TOML's strings escape as JSON's do, and DEL besides."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
