"""Runs are claimed by cohort and turn, count for how long they held a device, and can be cancelled."""

import sqlalchemy as sa
from alembic import op

revision = "0007a"
down_revision = "0007"


def upgrade() -> None:
    """What waits keeps its order, within its cohort."""
    op.create_table(
        "share",
        sa.Column("cohort", sa.String(length=200), nullable=False),
        sa.Column("priority", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("weight", sa.Float(precision=53), server_default="1", nullable=False),
        sa.Column("virtual_start", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column("virtual_finish", sa.Float(precision=53), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("cohort", "priority"),
    )
    op.add_column("run", sa.Column("cohort", sa.String(length=200), server_default="", nullable=False))
    op.add_column("run", sa.Column("turn", sa.Float(precision=53), server_default="0", nullable=False))
    op.add_column("run", sa.Column("virtual_start", sa.Float(precision=53), nullable=True))
    op.add_column("run", sa.Column("held_s", sa.Float(precision=53), server_default="0", nullable=False))
    op.add_column("run", sa.Column("held_until", sa.Float(precision=53), nullable=True))
    op.add_column("run", sa.Column("cancelled", sa.Text(), nullable=True))
    op.execute(
        "update run set turn = created_at, cohort = coalesce("
        "(select cohort from submission where submission.submission_id = run.submission_id), '') "
        "where state not in ('done', 'cancelled')"
    )


def downgrade() -> None:
    """What is known of shares and turns is lost."""
    for column in ("cancelled", "held_until", "held_s", "virtual_start", "turn", "cohort"):
        op.drop_column("run", column)
    op.drop_table("share")
