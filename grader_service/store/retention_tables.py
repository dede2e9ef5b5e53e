"""The schema of what outlives other rows, or says when they may go."""

from sqlalchemy import JSON, Float, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from grader_service.store.tables import Base


class EvidenceBlobRow(Base):
    """A blob to which a run's evidence refers; one to which none refers any more is removed."""

    __tablename__ = "evidence_blob"

    run_id: Mapped[str] = mapped_column(ForeignKey("evidence.run_id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), ForeignKey("blob.sha256"), primary_key=True, index=True)


class FiguresRow(Base):
    """What events came to that may be removed; one row. See `service.event_figures`."""

    __tablename__ = "figures"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    last_event: Mapped[int] = mapped_column(Integer)
    """All events up to this id are in it."""
    document: Mapped[str] = mapped_column(Text)


class ErasureRow(Base):
    """One erasure of everything about a learner, and the signed note that is left of it."""

    __tablename__ = "erasure"

    erasure_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    learner_sha256: Mapped[str] = mapped_column(String(64), index=True)
    """Of the learner's id, as it is stored, in UTF-8."""
    begun_at: Mapped[float] = mapped_column(Float(53))
    removed: Mapped[dict[str, int]] = mapped_column(JSON)
    """How many rows of each kind so far."""
    note: Mapped[str | None] = mapped_column(Text)
    """JSON; null while it is not done."""


class BackupRow(Base):
    """A backup that was finished."""

    __tablename__ = "backup"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    begun_at: Mapped[float] = mapped_column(Float(53))
    """What was there then is in it."""
    finished_at: Mapped[float] = mapped_column(Float(53))
