"""Workers say whether they can do their work, and runs keep where they failed last."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Runs that failed before may be tried anywhere."""
    op.create_table(
        "worker",
        sa.Column("worker_id", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("device_id", sa.String(length=128), nullable=True),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("labs_left", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("worker_id"),
    )
    op.add_column("run", sa.Column("failed_host", sa.String(length=200), nullable=True))
    op.add_column("run", sa.Column("failed_device", sa.String(length=128), nullable=True))


def downgrade() -> None:
    """What workers say is said again a moment later."""
    op.drop_column("run", "failed_device")
    op.drop_column("run", "failed_host")
    op.drop_table("worker")
