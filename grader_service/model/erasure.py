"""The note of an erasure: schema `grader.erasure/v1`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from grader_service.model.base import Frozen, Identifier, LongText, Sha256, ShortText
from grader_service.model.verdict import Signature


class ErasureNote(Frozen):
    """What was removed of a learner, without a name."""

    schema_id: Literal["grader.erasure/v1"] = Field(default="grader.erasure/v1", alias="schema")
    erasure_id: Identifier
    learner_sha256: Sha256
    begun_at: AwareDatetime
    finished_at: AwareDatetime
    removed: Mapping[str, Annotated[int, Field(ge=0)]]
    """How many of each kind."""
    by: ShortText
    reference: LongText = ""
    """Such as the number of the request."""
    signature: Signature | None = None
