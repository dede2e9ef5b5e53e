"""The schema of reviews: what waits for a person, and what people decided."""

from sqlalchemy import Boolean, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from grader_service.store.tables import Base


class ReviewCaseRow(Base):
    """An answer `….needs_review` in a verdict. It is open while that verdict is in force and nobody decided."""

    __tablename__ = "review_case"

    verdict_id: Mapped[str] = mapped_column(ForeignKey("verdict.verdict_id", ondelete="CASCADE"), primary_key=True)
    check_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    submission_id: Mapped[str] = mapped_column(String(128), index=True)
    subject: Mapped[str] = mapped_column(String(64))
    """Digest of what is to be decided; see `grader_service.model.review.subject_of`."""
    seen: Mapped[str | None] = mapped_column(Text)
    """What the check saw, as JSON; null where it is too large, or was not kept."""
    opened_at: Mapped[float]
    """When the first of the verdicts in a row came that leave this to a person."""


class ReviewDecisionRow(Base):
    """What a person decided about a subject. Rows are added, never rewritten."""

    __tablename__ = "review_decision"

    submission_id: Mapped[str] = mapped_column(
        ForeignKey("submission.submission_id", ondelete="CASCADE"), primary_key=True
    )
    subject: Mapped[str] = mapped_column(String(64), primary_key=True)
    check_id: Mapped[str] = mapped_column(String(128))
    accepted: Mapped[bool] = mapped_column(Boolean)
    decided_by: Mapped[str]
    decided_at: Mapped[float] = mapped_column(index=True)
    reason: Mapped[str] = mapped_column(Text)
    waited_s: Mapped[float]
    """Seconds for which the case was open."""


class SecondOpinionRow(Base):
    """What a model said about an answer; asked once. See `service.second_opinions`."""

    __tablename__ = "second_opinion"

    submission_id: Mapped[str] = mapped_column(
        ForeignKey("submission.submission_id", ondelete="CASCADE"), primary_key=True
    )
    subject: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Digest of the check, its version and question, and what it saw."""
    model: Mapped[str] = mapped_column(primary_key=True)
    check_id: Mapped[str] = mapped_column(String(128))
    opinion: Mapped[str] = mapped_column(Text)
    """JSON; its texts may repeat what the learner wrote."""
    created_at: Mapped[float]
