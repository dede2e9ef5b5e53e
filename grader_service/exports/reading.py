"""Reads verdicts from files and lines, and says in one sentence what is wrong with what is none.

A document is parsed once, by a parser that refuses what two parsers could read in two ways (a key that stands twice,
NaN), so that what was signed is what is exported.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError

from grader_service.model.base import neutralise
from grader_service.model.verdict import VERDICT_SCHEMA, Verdict
from grader_service.signer.signatures import signed_by

MOST_BYTES = 64 << 20
"""More than this in one file is not read as one document."""
_ADVICE = "Give it a verdict as `grader grade --json FILE` writes it"


@dataclass(frozen=True)
class Found:
    """A verdict and where it came from."""

    source: str
    verdict: Verdict


@dataclass(frozen=True)
class Refused:
    """What is not exported, and why."""

    source: str
    problem: str
    """What was expected, what came and what to do."""
    held_back: bool
    """It is a verdict, but not to be exported as it is; else it is none."""


def read(source: str, content: bytes, keys: Sequence[str]) -> Iterator[Found | Refused]:
    """The verdicts of one file: one document, however indented, or one on each line.

    Args:
        source: what the file is called in messages.
        content: at most `MOST_BYTES`; a byte-order mark is skipped.
        keys: public keys, 64 hexadecimal digits each, one of which must have signed; none asks for no signature.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield _no_verdict(source, f"bytes that are not UTF-8 ({error.reason} at byte {error.start})")
        return
    try:
        document = _parsed(text)
    except (ValueError, RecursionError) as error:
        yield from _lines(source, text, keys, _short(error))
    else:
        yield _one(source, document, keys)


def _lines(source: str, text: str, keys: Sequence[str], problem: str) -> Iterator[Found | Refused]:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not any(_is_object(line) for _, line in lines):
        yield _no_verdict(source, "an empty file" if not lines else f"something that is not JSON ({problem})")
        return
    for number, line in lines:
        place = f"{source}, line {number}"
        try:
            document = _parsed(line)
        except (ValueError, RecursionError) as error:
            yield _no_verdict(place, f"something that is not JSON ({_short(error)})")
        else:
            yield _one(place, document, keys)


def _one(source: str, document: Any, keys: Sequence[str]) -> Found | Refused:
    if not isinstance(document, dict):
        return _no_verdict(source, f"a JSON {type(document).__name__}, not an object")
    schema = document.get("schema")
    if schema != VERDICT_SCHEMA:
        came = "an object without `schema`" if schema is None else f"an object of schema {json.dumps(schema)[:80]}"
        return _no_verdict(source, came)
    try:
        verdict = Verdict.model_validate_json(json.dumps(document))
    except ValidationError as error:
        parts = [f"{'.'.join(map(str, e['loc'])) or '(top)'}: {e['msg']}" for e in error.errors(include_url=False)[:3]]
        return _no_verdict(source, f"an object that breaks it ({neutralise('; '.join(parts))[:400]})")
    if keys:
        actual = signed_by(document)
        if actual is None:
            problem = "the signature does not hold: the verdict was changed, or was never signed"
            return Refused(source, f"{problem}. Ask the grader for the verdict again.", held_back=True)
        if actual not in keys:
            problem = f"signed by another key, {actual}; expected {' or '.join(keys)}"
            return Refused(source, f"{problem}. `grader keys show` lists a grader's keys.", held_back=True)
    return Found(source, verdict)


def _no_verdict(source: str, came: str) -> Refused:
    return Refused(source, f"expected a verdict of schema {VERDICT_SCHEMA}, got {came}. {_ADVICE}.", held_back=False)


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_number)


def _is_object(line: str) -> bool:
    try:
        return isinstance(_parsed(line), dict)
    except (ValueError, RecursionError):
        return False


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _short(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else neutralise(str(error))[:120]
