"""Messages that nobody could handle are kept in the database, and workers say how full each Redis is."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """What older versions kept in Redis stays there; docs/operations.md says how to look at it."""
    op.create_table(
        "dead_letter",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("queue", sa.String(length=16), nullable=False),
        sa.Column("task_id", sa.String(length=200), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("came_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("sha256"),
    )
    op.add_column("worker", sa.Column("memory", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Messages that were kept are lost."""
    op.drop_column("worker", "memory")
    op.drop_table("dead_letter")
