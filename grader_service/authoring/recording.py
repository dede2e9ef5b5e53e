"""Keeps a submission and its result as a control of a check, so that the conformance suite holds the check to it."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from checks.api import Result
from checks.authoring.material import CONTROLS, CONTROLS_FILE, Controls, parse_controls, read_controls
from checks.authoring.target import Target
from grader_service.errors import UsageError

_UNFIT = re.compile(r"[^\w.-]+")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def record_control(target: Target, name: str, content: bytes, params: Mapping[str, Any], result: Result) -> Path:
    """Writes a submission beside the check, and how it has to come out; nothing that is there is changed.

    Args:
        target: the check.
        name: of the submission's file.
        content: of that file, as it was judged.
        params: with which it was judged.
        result: what came out, which is what has to come out from now on.

    Returns:
        The control's file. A submission that is recorded already with the same result is written once.

    Raises:
        UsageError: the recorded controls say something else of it, or cannot be read or written.
    """
    folder, controls = read_controls(target) or (_folder(target), Controls())
    known = folder / CONTROLS_FILE
    # Parameters go to a check as JSON, in which a date is a text.
    plain = to_jsonable_python(dict(params))
    if unsaid := [key for key in controls.params if key not in plain]:
        raise UsageError(
            f"the top of {known} sets {', '.join(unsaid)} for every control, but this run did not; "
            f"begin again with --param {unsaid[0]}={_value(controls.params[unsaid[0]])}"
        )
    for control in controls.control:
        if _value({**controls.params, **control.params}) != _value(plain):
            continue
        if (folder / control.file).read_bytes() != content:
            continue
        if (control.outcome, control.code) == (result.outcome, result.code):
            return folder / control.file
        raise UsageError(
            f"{known} expects {control.outcome.value} {control.code} of {control.file}, which holds the same bytes; "
            f"now it came out as {result.outcome.value} {result.code}: fix the check, or remove that entry"
        )
    folder_name = result.outcome.value
    try:
        path = next(
            path
            for path in _names(folder / folder_name, _UNFIT.sub("_", name))
            if not path.exists() or (path.is_file() and path.read_bytes() == content)
        )
        entry = {
            "file": f"{folder_name}/{path.name}",
            "outcome": folder_name,
            "code": result.code,
            **({"params": plain} if plain else {}),
        }
        text = known.read_text(encoding="utf-8").rstrip() + "\n\n" if known.is_file() else ""
        text += "[[control]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in entry.items())
        parse_controls(text, f"{known} with this control")
        written = text.encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        known.write_bytes(written)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{folder} cannot be written: {error}") from error
    return path


def _folder(target: Target) -> Path:
    found = target.material(CONTROLS)
    if found is None and target.kept_in is None:
        raise UsageError(f"{target.name} is installed; keep controls in the folder of its source")
    return found or Path(str(target.kept_in)) / CONTROLS


def _names(folder: Path, name: str) -> Iterator[Path]:
    """The name, then the same with a number."""
    yield folder / name
    stem, dot, ending = name.partition(".")
    for number in range(2, 1000):
        yield folder / f"{stem}-{number}{dot}{ending}"


def _value(value: Any) -> str:
    """A value of JSON as one of TOML, in one line; equal values give equal texts."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(value[key])}' for key in sorted(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)  # `inf` and `nan` are TOML's own words
    # As JSON, but for characters beyond 16 bits, which JSON escapes as two, and DEL, which it does not escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)
