"""Reads a Celery protocol-2 message as it lies in Redis, whoever wrote it, without trusting any of it."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader_service.service.message import TASK

MAX_BYTES = 4 << 20
"""An artifact of 1 MiB is 1.4 MiB in Base64, and 1.9 MiB in the body's own Base64."""
_OPENED_BYTES = 64 << 20
"""Of a message too large to be taken, up to this size, the task's id is looked for, so that it can be answered."""
_MOST_VALUES = 100_000
"""An honest message has about fifty; lists of nothing need twenty times the memory of their text."""


class Unreadable(ValueError):
    """The message is no Celery message in JSON; `task_id` is set when at least that could be read."""

    def __init__(self, reason: str, task_id: str | None = None) -> None:
        super().__init__(reason)
        self.task_id = task_id


@dataclass(frozen=True)
class Envelope:
    """A message for the task `grader.grade`."""

    task_id: str
    submission: object
    """The keyword argument `submission`, not validated yet; None when it is missing."""


def open_envelope(raw: bytes) -> Envelope:
    """Takes the argument out of a message.

    Raises:
        Unreadable: with the reason, and the task's id if it has one.
    """
    too_large = f"{len(raw)} bytes; expected at most {MAX_BYTES}"
    if len(raw) > _OPENED_BYTES:
        raise Unreadable(too_large)
    if _has_many_values(raw):
        raise Unreadable(f"the message has more than {_MOST_VALUES} values")
    try:
        outer = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the message is not JSON: {str(error)[:100]}") from None
    if not isinstance(outer, Mapping):
        raise Unreadable("the message is no JSON object; expected Celery protocol 2")
    headers, properties = _mapping(outer.get("headers")), _mapping(outer.get("properties"))
    # Celery writes the id twice; either will do for an answer.
    task_id = _task_id(headers.get("id")) or _task_id(properties.get("correlation_id"))
    if len(raw) > MAX_BYTES:
        raise Unreadable(too_large, task_id)
    if task_id is None or _task_id(headers.get("id")) is None:
        raise Unreadable("the message has no task id in its headers; expected Celery protocol 2", task_id)
    if headers.get("task") != TASK:
        raise Unreadable(f"task {_shown(headers.get('task'))} is not taken here; expected {TASK!r}", task_id)
    if outer.get("content-type") != "application/json":
        raise Unreadable(f"content type {_shown(outer.get('content-type'))}; expected application/json", task_id)
    if headers.get("compression") is not None:
        raise Unreadable("compressed bodies are not taken; send plain JSON", task_id)
    return Envelope(task_id, _argument(_body(outer, task_id), task_id))


def _body(outer: Mapping[str, Any], task_id: str) -> Any:
    body = outer.get("body")
    encoding = _mapping(outer.get("properties")).get("body_encoding")
    try:
        if isinstance(body, str) and encoding == "base64":
            body = base64.b64decode(body, validate=True)
        many = isinstance(body, bytes) and _has_many_values(body)
        if not many:
            return json.loads(body) if isinstance(body, (str, bytes)) else body
    except (ValueError, RecursionError, binascii.Error) as error:
        raise Unreadable(f"the body is not JSON: {str(error)[:100]}", task_id) from None
    raise Unreadable(f"the body has more than {_MOST_VALUES} values", task_id)


def _has_many_values(text: bytes) -> bool:
    """Told from the signs that part values; those inside of strings count as well, which costs no honest message."""
    return text.count(b",") + text.count(b"[") + text.count(b"{") > _MOST_VALUES


def _argument(body: Any, task_id: str) -> object:
    if not (isinstance(body, list) and len(body) >= 2 and isinstance(body[0], list) and isinstance(body[1], Mapping)):
        raise Unreadable("the body is not [args, kwargs, embed] of protocol 2", task_id)
    args, kwargs = body[0], body[1]
    unknown = [str(key)[:40] for key in kwargs if key != "submission"][:5]
    if unknown or len(args) > 1:
        also = f"{unknown}" if unknown else f"{len(args) - 1} further ones"
        raise Unreadable(f"{TASK} takes the one argument `submission`; got also {also}", task_id)
    return kwargs.get("submission", args[0] if args else None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _task_id(value: object) -> str | None:
    # What no database and no log can hold, such as NUL or half a surrogate pair, is no id.
    return value if isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable() else None


def _shown(value: object) -> str:
    return repr(value[:80]) if isinstance(value, str) else f"of type {type(value).__name__}"
