"""Submissions, runs, evidence, verdicts, answers, devices and the audit trail."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates every table."""
    op.create_table(
        "blob",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "device",
        sa.Column("device_id", sa.String(length=128), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("lease_owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until", sa.Float(precision=53), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("seen_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("device_id"),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("submission_id", sa.String(length=128), nullable=True),
        sa.Column("run_id", sa.String(length=32), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_event_run_id"), "event", ["run_id"], unique=False)
    op.create_index(op.f("ix_event_submission_id"), "event", ["submission_id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("verdict_id", sa.String(length=32), nullable=True),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("reply_queue", sa.String(length=200), nullable=True),
        sa.Column("reply_task", sa.String(length=200), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Float(precision=53), nullable=False),
        sa.Column("delivered_at", sa.Float(precision=53), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_outbox_due",
        "outbox",
        ["not_before"],
        unique=False,
        sqlite_where=sa.text("delivered_at is null"),
        postgresql_where=sa.text("delivered_at is null"),
    )
    op.create_table(
        "submission",
        sa.Column("submission_id", sa.String(length=128), nullable=False),
        sa.Column("lab", sa.String(length=128), nullable=False),
        sa.Column("learner", sa.String(length=200), nullable=True),
        sa.Column("cohort", sa.String(length=200), nullable=True),
        sa.Column("submitted_at", sa.Float(precision=53), nullable=True),
        sa.Column("received_at", sa.Float(precision=53), nullable=False),
        sa.Column("filename", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("content_key", sa.String(length=64), nullable=False),
        sa.Column("queue", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("submission_id"),
    )
    op.create_index(op.f("ix_submission_cohort"), "submission", ["cohort"], unique=False)
    op.create_index(op.f("ix_submission_content_key"), "submission", ["content_key"], unique=False)
    op.create_index(op.f("ix_submission_learner"), "submission", ["learner"], unique=False)
    op.create_table(
        "run",
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("submission_id", sa.String(length=128), nullable=False),
        sa.Column("learner", sa.String(length=200), nullable=True),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until", sa.Float(precision=53), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Float(precision=53), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=True),
        sa.Column("finished_at", sa.Float(precision=53), nullable=True),
        sa.Column("published_at", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submission.submission_id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index(
        "ix_run_leased",
        "run",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("lease_until is not null"),
        postgresql_where=sa.text("lease_until is not null"),
    )
    op.create_index(op.f("ix_run_submission_id"), "run", ["submission_id"], unique=False)
    op.create_index(
        "ix_run_waiting",
        "run",
        ["state", "priority", "created_at"],
        unique=False,
        sqlite_where=sa.text("state in ('run_queued', 'judge_queued')"),
        postgresql_where=sa.text("state in ('run_queued', 'judge_queued')"),
    )
    op.create_index(
        "ux_run_learner_running",
        "run",
        ["learner"],
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "waiter",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("submission_id", sa.String(length=128), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("reply_queue", sa.String(length=200), nullable=True),
        sa.Column("reply_task", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submission.submission_id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_waiter_submission_id"), "waiter", ["submission_id"], unique=False)
    op.create_table(
        "evidence",
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.run_id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_table(
        "verdict",
        sa.Column("verdict_id", sa.String(length=32), nullable=False),
        sa.Column("submission_id", sa.String(length=128), nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("code", sa.String(length=80), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("max_score", sa.Float(precision=53), nullable=True),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.Column("supersedes", sa.String(length=32), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.run_id"],
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submission.submission_id"],
        ),
        sa.PrimaryKeyConstraint("verdict_id"),
        sa.UniqueConstraint("run_id"),
    )
    op.create_index(op.f("ix_verdict_submission_id"), "verdict", ["submission_id"], unique=False)
    op.create_index(
        "ux_verdict_current",
        "verdict",
        ["submission_id"],
        unique=True,
        sqlite_where=sa.text("current"),
        postgresql_where=sa.text("current"),
    )


def downgrade() -> None:
    """There is nothing before the first version."""
    raise NotImplementedError("the first version cannot be undone; restore a backup")
