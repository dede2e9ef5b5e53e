"""The schema of re-grades: batches and their items."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BindParameter,
    Boolean,
    ColumnElement,
    Exists,
    ForeignKey,
    Integer,
    String,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Mapped, mapped_column

from grader_service.model.regrade import BatchState, ItemState
from grader_service.store.tables import Base, partial_index, table_of

OPEN = "state in ('waiting', 'working')"
_OPEN = (ItemState.WAITING, ItemState.WORKING)


class RegradeBatchRow(Base):
    """One batch; see `grader_service.model.regrade.Batch`."""

    __tablename__ = "regrade_batch"

    batch_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str] = mapped_column(Text)
    author: Mapped[str]
    selection: Mapped[dict[str, Any]]
    level: Mapped[str] = mapped_column(String(16))
    repeats: Mapped[int]
    labs: Mapped[list[Any]]
    """`BatchLab` documents."""
    estimate: Mapped[dict[str, Any]]
    gpu_budget_s: Mapped[float | None]
    note: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    applied_at: Mapped[float | None]


class RegradeItemRow(Base):
    """One repetition of one submission of a batch."""

    __tablename__ = "regrade_item"
    __table_args__ = (
        UniqueConstraint("batch_id", "submission_id", "repetition", name="uq_regrade_item"),
        partial_index("ix_regrade_item_open", "batch_id", "state", "level", "id", where=OPEN),
        partial_index("ix_regrade_item_leased", "lease_until", where="lease_until is not null"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    batch_id: Mapped[str] = mapped_column(ForeignKey("regrade_batch.batch_id"))
    submission_id: Mapped[str] = mapped_column(ForeignKey("submission.submission_id"), index=True)
    repetition: Mapped[int]
    """1-based; the first one is what `apply` puts in force."""
    level: Mapped[str] = mapped_column(String(8))
    reason: Mapped[str] = mapped_column(String(80))
    base_verdict_id: Mapped[str] = mapped_column(String(32))
    """The verdict in force when the batch was planned."""
    base_run_id: Mapped[str] = mapped_column(String(32))
    """The run whose evidence is judged again."""
    state: Mapped[str] = mapped_column(String(16))
    lease_owner: Mapped[str | None]
    """Names the lease, a new one each time: what another lease writes is refused."""
    lease_until: Mapped[float | None]
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    not_before: Mapped[float]
    last_error: Mapped[str | None] = mapped_column(Text)
    run_id: Mapped[str | None] = mapped_column(String(32))
    """The run that was made for it, at level `run`."""
    gpu_s: Mapped[float]
    """Seconds that its runs held a device."""
    verdict_id: Mapped[str | None] = mapped_column(String(32))
    changed: Mapped[bool | None] = mapped_column(Boolean)
    """Whether a learner would see a difference; null until its verdict is there."""
    applied: Mapped[bool] = mapped_column(Boolean, default=False)
    """Whether its verdict was put in force."""
    finished_at: Mapped[float | None]


_ENDED = (BatchState.CANCELLED, BatchState.APPLIED, BatchState.REVERTED, BatchState.DISCARDED)


def open_items(submission_id: ColumnElement[str] | InstrumentedAttribute[str]) -> Exists:
    """Whether a submission is in a batch that is not ended, which may yet judge its evidence or run it."""
    item, batch = table_of(RegradeItemRow), table_of(RegradeBatchRow)
    return (
        select(item.c.id)
        .select_from(item.join(batch, batch.c.batch_id == item.c.batch_id))
        .where(item.c.submission_id == submission_id, batch.c.state.not_in([state.value for state in _ENDED]))
        .exists()
    )


def in_states(*states: ItemState) -> ColumnElement[bool]:
    """Items in these open states, which are written out in the statement, beside the condition of their index.

    Only so does PostgreSQL see that `ix_regrade_item_open` holds them all: with parameters, a plan that is made once
    for all values cannot rely on a partial index, and looks at every item of the batch instead. SQLite relies on one
    only where its condition stands in the statement word for word.
    """
    return and_(*(RegradeItemRow.state.in_(_written(some)) for some in (_OPEN, states)))


def _written(states: Iterable[ItemState]) -> BindParameter[list[str]]:
    return bindparam(None, [state.value for state in states], expanding=True, literal_execute=True)
