"""What waits for a person, and what people decided."""

import sqlalchemy as sa
from alembic import op

revision = "0014a"
down_revision = "0014"


def upgrade() -> None:
    """Two tables, and columns of verdicts."""
    op.create_table(
        "review_case",
        sa.Column("verdict_id", sa.String(32), sa.ForeignKey("verdict.verdict_id", ondelete="CASCADE")),
        sa.Column("check_id", sa.String(128), nullable=False),
        sa.Column("submission_id", sa.String(128), nullable=False, index=True),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("seen", sa.Text(), nullable=True),
        sa.Column("opened_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("verdict_id", "check_id"),
    )
    op.create_table(
        "review_decision",
        sa.Column("submission_id", sa.String(128), sa.ForeignKey("submission.submission_id", ondelete="CASCADE")),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("check_id", sa.String(128), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("decided_by", sa.String(200), nullable=False),
        sa.Column("decided_at", sa.Float(53), nullable=False, index=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("waited_s", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("submission_id", "subject"),
    )
    for name in ("needs_review", "reviewed"):
        op.add_column("verdict", sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    """What people decided would be lost."""
    raise NotImplementedError("decisions cannot be undone by a migration; restore a backup")
