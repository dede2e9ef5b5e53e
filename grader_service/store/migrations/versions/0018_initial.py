"""All tables of the first release."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = None

_FLOAT = sa.Float(53)
_NO = sa.false()


def upgrade() -> None:
    """Makes them in an order in which each may refer to those before it."""
    _submissions()
    _regrades()
    _runs()
    _evidence()
    _verdicts()
    _answers()
    _reviews()
    _workers()
    _records()


def _required(name: str, *type_and_reference: Any, **options: Any) -> sa.Column[Any]:
    """A column that is never null."""
    return sa.Column(name, *type_and_reference, nullable=False, **options)


def _index(name: str, *columns: str, where: str | None = None, unique: bool = False) -> sa.Index:
    condition = None if where is None else sa.text(where)
    return sa.Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def _by_beginning(table: str, column: str) -> sa.Index:
    """In the order of bytes: where a language has its own, ids that begin alike need not stand together."""
    return sa.Index(f"ix_{table}_beginning", column, postgresql_ops={column: "text_pattern_ops"})


def _submissions() -> None:
    op.create_table(
        "submission",
        sa.Column("submission_id", sa.String(128), primary_key=True),
        _required("lab", sa.String(128)),
        sa.Column("learner", sa.String(200), index=True),
        sa.Column("cohort", sa.String(200), index=True),
        sa.Column("submitted_at", _FLOAT),
        _required("received_at", _FLOAT),
        _required("filename", sa.String(200)),
        _required("sha256", sa.String(64), index=True),
        _required("size_bytes", sa.Integer),
        _required("steps", sa.JSON),
        _required("content_key", sa.String(64), index=True),
        _required("queue", sa.String(16)),
        sa.Column("artifact_removed_at", _FLOAT),
        sa.Column("progress_queue", sa.String(200)),
        sa.Column("progress_task", sa.String(200)),
        _by_beginning("submission", "submission_id"),
    )


def _regrades() -> None:
    op.create_table(
        "regrade_batch",
        sa.Column("batch_id", sa.String(32), primary_key=True),
        _required("state", sa.String(16), index=True),
        _required("reason", sa.Text),
        _required("author", sa.String(200)),
        _required("selection", sa.JSON),
        _required("level", sa.String(16)),
        _required("repeats", sa.Integer),
        _required("labs", sa.JSON),
        _required("estimate", sa.JSON),
        sa.Column("gpu_budget_s", _FLOAT),
        _required("note", sa.Text),
        _required("created_at", _FLOAT),
        sa.Column("started_at", _FLOAT),
        sa.Column("finished_at", _FLOAT),
        sa.Column("applied_at", _FLOAT),
    )
    op.create_table(
        "regrade_item",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("batch_id", sa.String(32), sa.ForeignKey("regrade_batch.batch_id")),
        _required("submission_id", sa.String(128), sa.ForeignKey("submission.submission_id"), index=True),
        _required("repetition", sa.Integer),
        _required("level", sa.String(8)),
        _required("reason", sa.String(80)),
        _required("base_verdict_id", sa.String(32)),
        _required("base_run_id", sa.String(32)),
        _required("state", sa.String(16)),
        sa.Column("lease_owner", sa.String(200)),
        sa.Column("lease_until", _FLOAT),
        _required("attempts", sa.Integer),
        _required("not_before", _FLOAT),
        sa.Column("last_error", sa.Text),
        sa.Column("run_id", sa.String(32)),
        _required("gpu_s", _FLOAT),
        sa.Column("verdict_id", sa.String(32)),
        sa.Column("changed", sa.Boolean),
        _required("applied", sa.Boolean),
        sa.Column("finished_at", _FLOAT),
        sa.UniqueConstraint("batch_id", "submission_id", "repetition", name="uq_regrade_item"),
        _index("ix_regrade_item_open", "batch_id", "state", "level", "id", where="state in ('waiting', 'working')"),
        _index("ix_regrade_item_leased", "lease_until", where="lease_until is not null"),
    )


def _runs() -> None:
    op.create_table(
        "run",
        sa.Column("run_id", sa.String(32), primary_key=True),
        _required("submission_id", sa.String(128), sa.ForeignKey("submission.submission_id"), index=True),
        sa.Column("learner", sa.String(200)),
        _required("cohort", sa.String(200), server_default=""),
        _required("purpose", sa.String(16)),
        _required("priority", sa.Integer),
        _required("state", sa.String(16)),
        _required("plan", sa.JSON),
        _required("fence", sa.Integer),
        sa.Column("lease_owner", sa.String(200)),
        sa.Column("lease_until", _FLOAT),
        _required("attempts", sa.Integer),
        _required("not_before", _FLOAT),
        sa.Column("last_error", sa.Text),
        sa.Column("failed_host", sa.String(200)),
        sa.Column("failed_device", sa.String(128)),
        _required("created_at", _FLOAT),
        sa.Column("started_at", _FLOAT),
        sa.Column("finished_at", _FLOAT),
        sa.Column("published_at", _FLOAT),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("regrade_item.id")),
        _required("turn", _FLOAT, server_default="0"),
        sa.Column("virtual_start", _FLOAT),
        _required("held_s", _FLOAT, server_default="0"),
        sa.Column("held_until", _FLOAT),
        sa.Column("cancelled", sa.Text),
        _index("ix_run_queued", "priority", "cohort", "turn", "created_at", where="state = 'run_queued'"),
        _index("ix_run_to_judge", "priority", "created_at", where="state = 'judge_queued'"),
        _index("ix_run_learner_queued", "learner", where="state = 'run_queued'"),
        _index("ix_run_held", "learner", "held_until", where="held_until is not null"),
        _index("ux_run_learner_running", "learner", where="state = 'running'", unique=True),
        _index("ix_run_leased", "lease_until", where="lease_until is not null"),
        _index("ix_run_item", "item_id", where="item_id is not null"),
        _by_beginning("run", "run_id"),
    )
    op.create_table(
        "share",
        sa.Column("cohort", sa.String(200), primary_key=True),
        sa.Column("priority", sa.Integer, primary_key=True, autoincrement=False),
        _required("weight", _FLOAT, server_default="1"),
        _required("virtual_start", _FLOAT, server_default="0"),
        _required("virtual_finish", _FLOAT, server_default="0"),
    )


def _evidence() -> None:
    op.create_table(
        "evidence",
        sa.Column("run_id", sa.String(32), sa.ForeignKey("run.run_id"), primary_key=True),
        _required("fence", sa.Integer),
        _required("kind", sa.String(16)),
        _required("sha256", sa.String(64)),
        _required("size_bytes", sa.Integer),
        _required("document", sa.LargeBinary),
        _required("created_at", _FLOAT),
        sa.Column("removed_at", _FLOAT),
        _index("ix_evidence_kept", "created_at", where="removed_at is null"),
    )
    op.create_table(
        "blob",
        sa.Column("sha256", sa.String(64), primary_key=True),
        _required("size_bytes", sa.Integer),
        _required("data", sa.LargeBinary),
    )
    op.create_table(
        "evidence_blob",
        sa.Column("run_id", sa.String(32), sa.ForeignKey("evidence.run_id"), primary_key=True),
        sa.Column("sha256", sa.String(64), sa.ForeignKey("blob.sha256"), primary_key=True, index=True),
    )


def _verdicts() -> None:
    op.create_table(
        "verdict",
        sa.Column("verdict_id", sa.String(32), primary_key=True),
        _required("submission_id", sa.String(128), sa.ForeignKey("submission.submission_id"), index=True),
        _required("run_id", sa.String(32), sa.ForeignKey("run.run_id"), index=True),
        _required("status", sa.String(16)),
        _required("mode", sa.String(16)),
        _required("code", sa.String(80)),
        sa.Column("score", _FLOAT),
        sa.Column("max_score", _FLOAT),
        _required("current", sa.Boolean),
        sa.Column("supersedes", sa.String(32)),
        _required("document", sa.Text),
        _required("summary", sa.Text),
        sa.Column("batch_id", sa.String(32), sa.ForeignKey("regrade_batch.batch_id")),
        _required("needs_review", sa.Boolean, server_default=_NO),
        _required("reviewed", sa.Boolean, server_default=_NO),
        _required("created_at", _FLOAT),
        _index("ux_verdict_current", "submission_id", where="current", unique=True),
        _index("ux_verdict_judged", "run_id", where="batch_id is null and not reviewed", unique=True),
        _index("ix_verdict_needs_review", "verdict_id", where="current and needs_review"),
        _index("ix_verdict_age", "created_at", where="current"),
    )


def _answers() -> None:
    op.create_table(
        "waiter",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("submission_id", sa.String(128), sa.ForeignKey("submission.submission_id"), index=True),
        sa.Column("task_id", sa.String(200)),
        sa.Column("reply_queue", sa.String(200)),
        sa.Column("reply_task", sa.String(200)),
        _required("created_at", _FLOAT),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("verdict_id", sa.String(32), index=True),
        sa.Column("document", sa.Text),
        sa.Column("task_id", sa.String(200)),
        sa.Column("reply_queue", sa.String(200)),
        sa.Column("reply_task", sa.String(200)),
        _required("bulk", sa.Boolean, server_default=_NO),
        _required("unread", sa.Boolean, server_default=_NO),
        _required("journaled", sa.Boolean, server_default=_NO),
        _required("attempts", sa.Integer),
        _required("not_before", _FLOAT),
        sa.Column("delivered_at", _FLOAT),
        sa.Column("last_error", sa.Text),
        _index("ix_outbox_due", "not_before", where="delivered_at is null"),
        _index("ix_outbox_delivered", "delivered_at", where="delivered_at is not null"),
    )
    op.create_table(
        "dead_letter",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("sha256", sa.String(64), unique=True),
        _required("queue", sa.String(16)),
        sa.Column("task_id", sa.String(200)),
        _required("reason", sa.Text),
        _required("size_bytes", sa.Integer),
        _required("data", sa.LargeBinary),
        _required("came_at", _FLOAT),
    )


def _submission_key() -> sa.Column[Any]:
    of = sa.ForeignKey("submission.submission_id", ondelete="CASCADE")
    return sa.Column("submission_id", sa.String(128), of, primary_key=True)


def _reviews() -> None:
    of_verdict = sa.ForeignKey("verdict.verdict_id", ondelete="CASCADE")
    op.create_table(
        "review_case",
        sa.Column("verdict_id", sa.String(32), of_verdict, primary_key=True),
        sa.Column("check_id", sa.String(128), primary_key=True),
        _required("submission_id", sa.String(128), index=True),
        _required("subject", sa.String(64)),
        sa.Column("seen", sa.Text),
        _required("opened_at", _FLOAT),
    )
    op.create_table(
        "review_decision",
        _submission_key(),
        sa.Column("subject", sa.String(64), primary_key=True),
        _required("check_id", sa.String(128)),
        _required("accepted", sa.Boolean),
        _required("decided_by", sa.String(200)),
        _required("decided_at", _FLOAT, index=True),
        _required("reason", sa.Text),
        _required("waited_s", _FLOAT),
    )
    op.create_table(
        "second_opinion",
        _submission_key(),
        sa.Column("subject", sa.String(64), primary_key=True),
        sa.Column("model", sa.String(200), primary_key=True),
        _required("check_id", sa.String(128)),
        _required("opinion", sa.Text),
        _required("created_at", _FLOAT),
    )


def _workers() -> None:
    op.create_table(
        "device",
        sa.Column("device_id", sa.String(128), primary_key=True),
        _required("host", sa.String(200)),
        _required("model", sa.String(200)),
        _required("state", sa.String(16)),
        sa.Column("reason", sa.Text),
        sa.Column("lease_owner", sa.String(200)),
        sa.Column("lease_until", _FLOAT),
        _required("fence", sa.Integer),
        _required("seen_at", _FLOAT),
        sa.Column("canary_from", _FLOAT, server_default="0"),
        _required("canary_tries", sa.Integer, server_default="0"),
        sa.Column("canary_failed", sa.Text),
    )
    op.create_table(
        "worker",
        sa.Column("worker_id", sa.String(200), primary_key=True),
        _required("role", sa.String(16)),
        _required("host", sa.String(200)),
        sa.Column("device_id", sa.String(128)),
        _required("ready", sa.Boolean),
        sa.Column("reason", sa.Text),
        _required("labs_left", sa.Text),
        _required("memory", sa.JSON, server_default="{}"),
        _required("disk", sa.JSON, server_default="{}"),
        _required("chores", sa.JSON, server_default="{}"),
        _required("seen_at", _FLOAT),
    )


def _records() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("at", _FLOAT),
        _required("kind", sa.String(40)),
        _required("actor", sa.String(200)),
        sa.Column("submission_id", sa.String(128), index=True),
        sa.Column("run_id", sa.String(32), index=True),
        sa.Column("batch_id", sa.String(32), index=True),
        _required("detail", sa.JSON),
    )
    op.create_table(
        "figures",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        _required("last_event", sa.Integer),
        _required("document", sa.Text),
    )
    op.execute("insert into figures (id, last_event, document) values (1, 0, '{}')")
    op.create_table(
        "erasure",
        sa.Column("erasure_id", sa.String(32), primary_key=True),
        _required("learner_sha256", sa.String(64), index=True),
        _required("begun_at", _FLOAT),
        _required("removed", sa.JSON),
        sa.Column("note", sa.Text),
    )
    op.create_table(
        "backup",
        sa.Column("name", sa.String(40), primary_key=True),
        _required("begun_at", _FLOAT),
        _required("finished_at", _FLOAT),
    )
    op.create_table(
        "compatibility",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        _required("oldest", sa.String(32)),
    )
    op.execute("insert into compatibility (id, oldest) values (1, '0018')")
