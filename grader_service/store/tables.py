"""The schema. Times are seconds since 1970 by the database's clock; documents are what models wrote."""

from enum import StrEnum
from typing import Any, Literal, cast

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    false,
    literal_column,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class RunState(StrEnum):
    """Where a run is; the row says it, the queue only wakes a worker up."""

    RUN_QUEUED = "run_queued"
    RUNNING = "running"
    JUDGE_QUEUED = "judge_queued"
    JUDGING = "judging"
    DONE = "done"
    NEEDS_ATTENTION = "needs_attention"
    """Our failures used up its tries, or its GPU went out of service under it; an operator decides. Never a learner's
    failure."""
    CANCELLED = "cancelled"
    """Taken back before it was done; only runs of re-grades are. What an operator cancels of a learner is judged."""


ENDED = (RunState.DONE.value, RunState.CANCELLED.value)
"""Nothing more becomes of such a run."""
Purpose = Literal["preflight", "live", "regrade"]
PRIORITY: dict[Purpose, int] = {"preflight": -1, "live": 0, "regrade": 9}
PREFLIGHT: Purpose = "preflight"
"""Looks at a submission before it is graded: no grade, no attempt, and in no batch and no table of a cohort."""


class Base(DeclarativeBase):
    """Common base of all tables."""

    type_annotation_map = {str: String(200), float: Float(53), dict[str, Any]: JSON, list[str]: JSON, list[Any]: JSON}  # noqa: RUF012


def _by_beginning(table: str, column: str) -> Index:
    """Finds ids by how they begin; a primary key of PostgreSQL is in the order of the database's language."""
    return Index(f"ix_{table}_beginning", column, postgresql_ops={column: "text_pattern_ops"})


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index of those rows for which a condition holds, in either database."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


class SubmissionRow(Base):
    """One accepted submission. Immutable after it was written, but for what is said of its artifact."""

    __tablename__ = "submission"
    __table_args__ = (_by_beginning("submission", "submission_id"),)

    submission_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    lab: Mapped[str] = mapped_column(String(128))
    learner: Mapped[str | None] = mapped_column(index=True)
    cohort: Mapped[str | None] = mapped_column(index=True)
    submitted_at: Mapped[float | None]
    """When the platform says that the learner handed it in."""
    received_at: Mapped[float]
    filename: Mapped[str]
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    size_bytes: Mapped[int]
    steps: Mapped[list[str]]
    content_key: Mapped[str] = mapped_column(String(64), index=True)
    """Digest of lab, steps and artifact: what must be equal for the same id to mean the same submission."""
    queue: Mapped[str] = mapped_column(String(16))
    """What it was handed in for: `live`, `regrade` or `preflight`."""
    artifact_removed_at: Mapped[float | None]
    """When its artifact had been kept for as long as artifacts are."""
    progress_queue: Mapped[str | None]
    """Where its platform wants to be told how far it is, and by which task; null where it did not ask."""
    progress_task: Mapped[str | None]


class RunRow(Base):
    """One run of one submission: executed by a runner, then judged."""

    __tablename__ = "run"
    __table_args__ = (
        # In the order of claims within a queue and a cohort; see `store.fairness`.
        partial_index("ix_run_queued", "priority", "cohort", "turn", "created_at", where="state = 'run_queued'"),
        partial_index("ix_run_to_judge", "priority", "created_at", where="state = 'judge_queued'"),
        partial_index("ix_run_learner_queued", "learner", where="state = 'run_queued'"),
        partial_index("ix_run_held", "learner", "held_until", where="held_until is not null"),
        # One run of a learner at a time, however many workers ask at once.
        partial_index("ux_run_learner_running", "learner", where="state = 'running'", unique=True),
        partial_index("ix_run_leased", "lease_until", where="lease_until is not null"),
        partial_index("ix_run_item", "item_id", where="item_id is not null"),
        _by_beginning("run", "run_id"),
    )

    run_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    submission_id: Mapped[str] = mapped_column(ForeignKey("submission.submission_id"), index=True)
    learner: Mapped[str | None]
    cohort: Mapped[str] = mapped_column(server_default="")
    """That of the submission; empty for none."""
    purpose: Mapped[str] = mapped_column(String(16))
    """`live`, `regrade` or `preflight`."""
    priority: Mapped[int]
    """-1 before 0 before 9."""
    state: Mapped[str] = mapped_column(String(16))
    plan: Mapped[dict[str, Any]]
    """What the run has to collect, as the lab's checks asked when it was queued; see `RunPlan`."""
    fence: Mapped[int] = mapped_column(Integer, default=0)
    """Raised by every claim; writes under an older lease are refused."""
    lease_owner: Mapped[str | None]
    lease_until: Mapped[float | None]
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    """Our failures so far, not the learner's tries."""
    not_before: Mapped[float]
    last_error: Mapped[str | None] = mapped_column(Text)
    failed_host: Mapped[str | None]
    """Where it failed last through us while it was executed: another host is tried first."""
    failed_device: Mapped[str | None] = mapped_column(String(128))
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    published_at: Mapped[float | None]
    """When a wake-up for it was last put on the queue."""
    item_id: Mapped[int | None] = mapped_column(ForeignKey("regrade_item.id"))
    """The item of a re-grade that this run serves: its verdict is staged until the batch is applied."""
    turn: Mapped[float] = mapped_column(server_default="0")
    """Since when it stands in line, as far as fairness goes: the earliest of its queue and cohort comes next."""
    virtual_start: Mapped[float | None]
    """Virtual time of its cohort when it was claimed; see `store.fairness`."""
    held_s: Mapped[float] = mapped_column(server_default="0")
    """How long it held a device, where something came of it: an infrastructure failure is nobody's use."""
    held_until: Mapped[float | None]
    """When it let go of that device."""
    cancelled: Mapped[str | None] = mapped_column(Text)
    """Why an operator cancelled it, in words for the learner; whatever it found is not judged."""


class ShareRow(Base):
    """What a cohort has had of the devices, and what it should have; see `store.fairness`."""

    __tablename__ = "share"

    cohort: Mapped[str] = mapped_column(primary_key=True)
    """Empty for the submissions that name none."""
    priority: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Of the queue."""
    weight: Mapped[float] = mapped_column(server_default="1")
    virtual_start: Mapped[float] = mapped_column(server_default="0")
    """At which its last run started that has ended."""
    virtual_finish: Mapped[float] = mapped_column(server_default="0")
    """At which its next run may start: seconds that its runs held devices, divided by its weight."""


class EvidenceRow(Base):
    """What a run found: the compressed document of `Evidence`, or of a rejection."""

    __tablename__ = "evidence"
    __table_args__ = (partial_index("ix_evidence_kept", "created_at", where="removed_at is null"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("run.run_id"), primary_key=True)
    fence: Mapped[int]
    kind: Mapped[str] = mapped_column(String(16))
    """`evidence`, `measured` (evidence in which the ratio was put to the test) or `rejection`."""
    sha256: Mapped[str] = mapped_column(String(64))
    """Of the document before compression."""
    size_bytes: Mapped[int]
    document: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[float]
    removed_at: Mapped[float | None]
    """When its document had been kept for as long as evidence is, and was emptied; the row stays, since measured runs
    are a learner's attempts."""


class BlobRow(Base):
    """Bytes that evidence refers to by digest, such as DALI graphs; compressed."""

    __tablename__ = "blob"

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    size_bytes: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)


class VerdictRow(Base):
    """Every verdict ever given. Rows are added and superseded, never rewritten."""

    __tablename__ = "verdict"
    __table_args__ = (
        partial_index("ux_verdict_current", "submission_id", where="current", unique=True),
        # A run is judged once, and once more by every batch that judges its evidence again, and once a person decided.
        partial_index("ux_verdict_judged", "run_id", where="batch_id is null and not reviewed", unique=True),
        partial_index("ix_verdict_needs_review", "verdict_id", where="current and needs_review"),
        partial_index("ix_verdict_age", "created_at", where="current"),
    )

    verdict_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    submission_id: Mapped[str] = mapped_column(ForeignKey("submission.submission_id"), index=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("run.run_id"), index=True)
    status: Mapped[str] = mapped_column(String(16))
    mode: Mapped[str] = mapped_column(String(16))
    code: Mapped[str] = mapped_column(String(80))
    score: Mapped[float | None]
    max_score: Mapped[float | None]
    current: Mapped[bool] = mapped_column(Boolean)
    """Whether it is in force."""
    supersedes: Mapped[str | None] = mapped_column(String(32))
    document: Mapped[str] = mapped_column(Text)
    """The signed JSON, byte for byte as it was sent."""
    summary: Mapped[str] = mapped_column(Text)
    """`VerdictSummary` as JSON, so that thousands can be compared."""
    batch_id: Mapped[str | None] = mapped_column(ForeignKey("regrade_batch.batch_id"))
    """The batch that made it; null for the service's own verdicts."""
    needs_review: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether a check leaves something to a person; see `review_tables`."""
    reviewed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether it was made because a person decided."""
    created_at: Mapped[float]


class WaiterRow(Base):
    """Somebody who asked for the verdict of a submission: a Celery task's result, and perhaps a queue to reply to."""

    __tablename__ = "waiter"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    submission_id: Mapped[str] = mapped_column(ForeignKey("submission.submission_id"), index=True)
    task_id: Mapped[str | None]
    reply_queue: Mapped[str | None]
    reply_task: Mapped[str | None]
    created_at: Mapped[float]


class OutboxRow(Base):
    """One answer to send, tried until it is accepted."""

    __tablename__ = "outbox"
    __table_args__ = (
        partial_index("ix_outbox_due", "not_before", where="delivered_at is null"),
        partial_index("ix_outbox_delivered", "delivered_at", where="delivered_at is not null"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    verdict_id: Mapped[str | None] = mapped_column(String(32), index=True)
    """Null for a refusal, which is answered and not kept."""
    document: Mapped[str | None] = mapped_column(Text)
    """The answer of a refusal."""
    task_id: Mapped[str | None]
    reply_queue: Mapped[str | None]
    reply_task: Mapped[str | None]
    bulk: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Of a batch of re-grades: nobody sits and waits for it."""
    unread: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Its task's result is stored; the message waits until the platform's queue has space."""
    journaled: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it stands in the journal of answers; see `backup.journal`."""
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    not_before: Mapped[float]
    delivered_at: Mapped[float | None]
    last_error: Mapped[str | None] = mapped_column(Text)


class EventRow(Base):
    """The audit trail: every change of state, in order."""

    __tablename__ = "event"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    at: Mapped[float]
    kind: Mapped[str] = mapped_column(String(40))
    actor: Mapped[str]
    submission_id: Mapped[str | None] = mapped_column(String(128), index=True)
    run_id: Mapped[str | None] = mapped_column(String(32), index=True)
    batch_id: Mapped[str | None] = mapped_column(String(32), index=True)
    detail: Mapped[dict[str, Any]]


class DeviceRow(Base):
    """One GPU (or one slot of a host without any) and whether it may be used."""

    __tablename__ = "device"

    device_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    """The GPU's UUID, or `cpu:<host>:<n>`."""
    host: Mapped[str]
    model: Mapped[str]
    state: Mapped[str] = mapped_column(String(16))
    """`ready`, `quarantined` or `draining`."""
    reason: Mapped[str | None] = mapped_column(Text)
    lease_owner: Mapped[str | None]
    lease_until: Mapped[float | None]
    fence: Mapped[int] = mapped_column(Integer, default=0)
    """Raised by every change of its state: what a canary found before is not used."""
    seen_at: Mapped[float]
    canary_from: Mapped[float | None] = mapped_column(server_default="0")
    """Since when a canary waits for its turn, or when it put the device back; null where only an operator does that."""
    canary_tries: Mapped[int] = mapped_column(Integer, server_default="0")
    """How often the wait for the next one was doubled."""
    canary_failed: Mapped[str | None] = mapped_column(Text)
    """When and how the last one of this quarantine failed."""


class WorkerRow(Base):
    """A worker of any role, as it spoke last; deleted when it ends as it should."""

    __tablename__ = "worker"

    worker_id: Mapped[str] = mapped_column(primary_key=True)
    """`run/DEVICE`, `judge/HOST` or `regrade/HOST`."""
    role: Mapped[str] = mapped_column(String(16))
    host: Mapped[str]
    device_id: Mapped[str | None] = mapped_column(String(128))
    """Of a runner."""
    ready: Mapped[bool] = mapped_column(Boolean)
    reason: Mapped[str | None] = mapped_column(Text)
    """Why not, and what mends it."""
    labs_left: Mapped[str] = mapped_column(Text)
    """Ids of labs whose runs it leaves to others, each between two spaces."""
    memory: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    """How much of its limit each Redis uses that it looks at, by name."""
    disk: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    """How much is used of the file system of each of its folders, by name."""
    chores: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    """Chores of its sweeper that fail, by name; see `workers.Failing`."""
    seen_at: Mapped[float]


class DeadLetterRow(Base):
    """A message that could not be handled, kept for an operator."""

    __tablename__ = "dead_letter"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    """Of the whole message: the same one is kept once."""
    queue: Mapped[str] = mapped_column(String(16))
    """`live` or `regrade`, from which it came."""
    task_id: Mapped[str | None]
    reason: Mapped[str] = mapped_column(Text)
    size_bytes: Mapped[int]
    """Of the whole message."""
    data: Mapped[bytes] = mapped_column(LargeBinary)
    """Its beginning, where it is larger than any message that is taken."""
    came_at: Mapped[float]
    """The last time."""


class CompatibilityRow(Base):
    """Which versions can work with this schema; one row. `Store.check_schema` reads it."""

    __tablename__ = "compatibility"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    oldest: Mapped[str] = mapped_column(String(32))
    """Schema of the oldest of them; a migration that removes something raises it."""


def written(state: RunState) -> ColumnElement[str]:
    """A state in the statement's text: PostgreSQL keeps plans, and one for any state can use no partial index."""
    return literal_column(f"'{state.value}'", String)


def table_of(row: type[Base]) -> Table:
    """The bare table, for statements over many rows: what the mapping adds costs as much as the statement."""
    return cast("Table", row.__table__)


def insert_into(connection: Connection, row: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """An insert with `on_conflict_do_update` and `on_conflict_do_nothing`, for the database of this connection."""
    return sqlite.insert(row) if connection.dialect.name == "sqlite" else postgresql.insert(row)


def key_of(row: type[Base]) -> Column[Any]:
    """The column that tells the rows of a table apart, where it is one."""
    return next(iter(table_of(row).primary_key.columns))
