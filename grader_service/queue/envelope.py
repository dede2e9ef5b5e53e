"""Reads a Celery protocol-2 message as it lies in Redis, whoever wrote it, without trusting any of it."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_BYTES = 4 << 20
"""An artifact of 1 MiB is 1.4 MiB in Base64, and 1.9 MiB in the body's own Base64."""
TASK = "grader.grade"


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
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"{len(raw)} bytes; expected at most {MAX_BYTES}")
    try:
        outer = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the message is not JSON: {str(error)[:100]}") from None
    headers = outer.get("headers") if isinstance(outer, Mapping) else None
    if not isinstance(headers, Mapping):
        raise Unreadable("the message has no headers; expected Celery protocol 2")
    task_id = headers.get("id")
    if not isinstance(task_id, str) or not 0 < len(task_id) <= 200:
        raise Unreadable("the message has no task id in its headers")
    if headers.get("task") != TASK:
        raise Unreadable(f"task {str(headers.get('task'))[:80]!r} is not taken here; expected {TASK!r}", task_id)
    if outer.get("content-type") != "application/json":
        raise Unreadable(f"content type {str(outer.get('content-type'))[:60]!r}; expected application/json", task_id)
    if headers.get("compression") is not None:
        raise Unreadable("compressed bodies are not taken; send plain JSON", task_id)
    return Envelope(task_id, _argument(_body(outer, task_id), task_id))


def _body(outer: Mapping[str, Any], task_id: str) -> Any:
    body = outer.get("body")
    properties = outer.get("properties")
    encoding = properties.get("body_encoding") if isinstance(properties, Mapping) else None
    try:
        if isinstance(body, str) and encoding == "base64":
            body = base64.b64decode(body, validate=True)
        return json.loads(body) if isinstance(body, (str, bytes)) else body
    except (ValueError, RecursionError, binascii.Error) as error:
        raise Unreadable(f"the body is not JSON: {str(error)[:100]}", task_id) from None


def _argument(body: Any, task_id: str) -> object:
    if not (isinstance(body, list) and len(body) >= 2 and isinstance(body[0], list) and isinstance(body[1], Mapping)):
        raise Unreadable("the body is not [args, kwargs, embed] of protocol 2", task_id)
    args, kwargs = body[0], body[1]
    unknown = [str(key)[:40] for key in kwargs if key != "submission"]
    if unknown or len(args) > 1:
        raise Unreadable(f"{TASK} takes the one argument `submission`; got also {unknown or args[1:2]}", task_id)
    return kwargs.get("submission", args[0] if args else None)
