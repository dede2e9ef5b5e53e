"""Workers say which chores fail and how full their disks are; answers say that they wait for a reader."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """All of it is said anew within a minute."""
    for column in ("disk", "chores"):
        op.add_column("worker", sa.Column(column, sa.JSON(), server_default="{}", nullable=False))
    op.add_column("outbox", sa.Column("unread", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    """Nothing is lost that is not found again."""
    op.drop_column("outbox", "unread")
    for column in ("chores", "disk"):
        op.drop_column("worker", column)
