"""Batches of re-grades, and what verdicts say in a form that thousands can be compared in."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
_OPEN = sa.text("state in ('waiting', 'working')")
_LEASED = sa.text("lease_until is not null")


def upgrade() -> None:
    """Adds both tables, and columns to runs, verdicts and events."""
    op.create_table(
        "regrade_batch",
        sa.Column("batch_id", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.String(length=200), nullable=False),
        sa.Column("selection", sa.JSON(), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.Column("labs", sa.JSON(), nullable=False),
        sa.Column("estimate", sa.JSON(), nullable=False),
        sa.Column("gpu_budget_s", sa.Float(precision=53), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=True),
        sa.Column("finished_at", sa.Float(precision=53), nullable=True),
        sa.Column("applied_at", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("batch_id"),
    )
    op.create_index(op.f("ix_regrade_batch_state"), "regrade_batch", ["state"])
    op.create_table(
        "regrade_item",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("batch_id", sa.String(length=32), nullable=False),
        sa.Column("submission_id", sa.String(length=128), nullable=False),
        sa.Column("repetition", sa.Integer(), nullable=False),
        sa.Column("level", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.String(length=80), nullable=False),
        sa.Column("base_verdict_id", sa.String(length=32), nullable=False),
        sa.Column("base_run_id", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("lease_owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until", sa.Float(precision=53), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Float(precision=53), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("run_id", sa.String(length=32), nullable=True),
        sa.Column("gpu_s", sa.Float(precision=53), nullable=False),
        sa.Column("verdict_id", sa.String(length=32), nullable=True),
        sa.Column("changed", sa.Boolean(), nullable=True),
        sa.Column("applied", sa.Boolean(), nullable=False),
        sa.Column("finished_at", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["batch_id"], ["regrade_batch.batch_id"]),
        sa.ForeignKeyConstraint(["submission_id"], ["submission.submission_id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("batch_id", "submission_id", "repetition", name="uq_regrade_item"),
    )
    op.create_index(op.f("ix_regrade_item_submission_id"), "regrade_item", ["submission_id"])
    op.create_index(
        "ix_regrade_item_open",
        "regrade_item",
        ["batch_id", "state", "level", "id"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
    op.create_index(
        "ix_regrade_item_leased", "regrade_item", ["lease_until"], sqlite_where=_LEASED, postgresql_where=_LEASED
    )
    # In place: SQLite would copy the table to add a constraint, and may not drop one that evidence refers to.
    op.execute("alter table run add column item_id integer constraint run_item_id_fkey references regrade_item (id)")
    with op.batch_alter_table("event") as event:
        event.add_column(sa.Column("batch_id", sa.String(length=32), nullable=True))
    op.create_index(op.f("ix_event_batch_id"), "event", ["batch_id"])
    _verdicts()


def _verdicts() -> None:
    """A run may be judged again by a batch, so that its id is unique among the service's own verdicts only."""
    op.drop_index("ux_verdict_current", table_name="verdict")
    unnamed = {"uq": "%(table_name)s_%(column_0_name)s_key"}  # as PostgreSQL calls it
    with op.batch_alter_table("verdict", naming_convention=unnamed) as verdict:
        verdict.drop_constraint("verdict_run_id_key", type_="unique")
        verdict.add_column(sa.Column("standing", sa.Text(), nullable=True))
        verdict.add_column(sa.Column("batch_id", sa.String(length=32), nullable=True))
        verdict.create_foreign_key("verdict_batch_id_fkey", "regrade_batch", ["batch_id"], ["batch_id"])
    op.create_index(op.f("ix_verdict_run_id"), "verdict", ["run_id"])
    for name, column, where in (
        ("ux_verdict_current", "submission_id", "current"),
        ("ux_verdict_run", "run_id", "batch_id is null"),
    ):
        op.create_index(
            name, "verdict", [column], unique=True, sqlite_where=sa.text(where), postgresql_where=sa.text(where)
        )


def downgrade() -> None:
    """Batches and their verdicts would be lost."""
    raise NotImplementedError("re-grades cannot be undone by a migration; restore a backup")
