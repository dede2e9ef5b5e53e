"""The message that a platform posts, validated strictly; what is wrong with one is said in words."""

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from grader_service.model.base import Identifier, Sha256, ShortText, Wire

TASK = "grader.grade"
"""Name of the task that takes submissions."""
MAX_INLINE_BYTES = 1 << 20
_MAX_BASE64 = (MAX_INLINE_BYTES + 2) // 3 * 4 + 4
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
_OURS = ("grader.", "grader:", "_kombu.", "unacked", "celery-task-meta-")
Filename = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^/\\\x00-\x1f\x7f]+$")]


class ArtifactMessage(Wire):
    """The submission's bytes: in the message, or where they lie."""

    filename: Filename
    inline: Annotated[str, StringConstraints(max_length=_MAX_BASE64)] | None = None
    """Base64, at most 1 MiB decoded."""
    uri: Annotated[str, StringConstraints(max_length=2048)] | None = None
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "ArtifactMessage":
        if (self.inline is None) == (self.uri is None):
            raise ValueError("give either `inline` or `uri`, not both and not neither")
        if self.uri is not None and self.sha256 is None:
            raise ValueError("`uri` needs `sha256`, so that what is graded is what was meant")
        return self

    def inline_bytes(self) -> bytes:
        """The decoded bytes of `inline`.

        Raises:
            ValueError: not Base64, or more than 1 MiB.
        """
        try:
            data = base64.b64decode(self.inline or "", validate=True)
        except binascii.Error as error:
            raise ValueError(f"artifact.inline is not Base64: {error}") from None
        if len(data) > MAX_INLINE_BYTES:
            raise ValueError(
                f"artifact.inline holds {len(data)} bytes; at most {MAX_INLINE_BYTES}, send a `uri` instead"
            )
        return data


def _not_ours(queue: str) -> str:
    if queue in {"live", "regrade"} or queue.startswith(_OURS):
        raise ValueError(f"{queue} belongs to the grader or to Celery; name a queue of the platform's own")
    return queue


class ReplyTo(Wire):
    """Where the verdict, or progress, is sent as a Celery message."""

    queue: Annotated[Name, AfterValidator(_not_ours)]
    task: Name


class SubmissionMessage(Wire):
    """The keyword argument `submission` of the task `grader.grade`."""

    submission_id: Identifier
    lab: Identifier
    learner: Annotated[ShortText, Field(min_length=1)] | None = None
    cohort: Annotated[ShortText, Field(min_length=1)] | None = None
    submitted_at: AwareDatetime | None = None
    artifact: ArtifactMessage
    reply_to: ReplyTo | None = None
    progress_to: ReplyTo | None = None
    """Where `ProgressEvent`s are sent while the submission is graded."""
    steps: Annotated[tuple[Identifier, ...], Field(max_length=64)] = ()
    mode: Literal["grade", "preflight"] = "grade"
    """`preflight`: only looked at; the answer has `preflight` and no score, and nothing is recorded as a grade."""


class Malformed(ValueError):
    """The message cannot be used; the text says what was expected and what came."""


def parse_message(body: object) -> SubmissionMessage:
    """Validates one message.

    Raises:
        Malformed: every problem, one after another.
    """
    if not isinstance(body, Mapping):
        raise Malformed(f"the argument `submission` must be a JSON object, got {type(body).__name__}")
    try:
        return SubmissionMessage.model_validate(dict(body))
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False)[:10]:
            place = ".".join(str(part)[:60] for part in problem["loc"]) or "submission"
            problems.append(f"{place}: {problem['msg']} (got {_shown(problem.get('input'))})")
        raise Malformed("; ".join(problems)) from None


def reply_of(body: object) -> ReplyTo | None:
    """Where even a malformed message wants its answer, when that much can be read."""
    if isinstance(body, Mapping):
        try:
            return ReplyTo.model_validate(body.get("reply_to"))
        except ValidationError:
            return None
    return None


def salvage(body: object, key: str, fallback: str) -> str:
    """An identifier out of a malformed message for its answer; `fallback` when it is none."""
    value = body.get(key) if isinstance(body, Mapping) else None
    try:
        return TypeAdapter(Identifier).validate_python(value, strict=True)
    except ValidationError:
        return fallback


def _shown(value: object) -> str:
    """A value for a sentence. Containers are named only: a deep one cannot be written out, a large one need not be."""
    return type(value).__name__ if isinstance(value, (list, tuple, Mapping)) else repr(str(value)[:60])
