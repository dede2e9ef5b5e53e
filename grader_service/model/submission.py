"""What a learner sent, as the grader received it."""

from datetime import datetime

from pydantic import Field

from grader_service.model.base import Frozen, Identifier, Sha256, ShortText


class Submission(Frozen):
    """One submission: who, for which lab, and the digest of the bytes that were sent.

    The bytes themselves travel beside this value, never in it.
    """

    submission_id: Identifier
    lab: Identifier
    learner: ShortText | None = None
    cohort: ShortText | None = None
    submitted_at: datetime | None = None
    filename: ShortText
    sha256: Sha256
    """SHA-256 of the artifact as sent, before anything was unpacked."""
    size_bytes: int = Field(ge=0)
    steps: tuple[Identifier, ...] = ()
    """Step ids to grade; empty means all of the lab's."""
