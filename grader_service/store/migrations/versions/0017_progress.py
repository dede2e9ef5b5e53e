"""Platforms may ask to be told how far a submission is."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Two columns; of what was accepted before nobody asked."""
    for column in ("progress_queue", "progress_task"):
        op.add_column("submission", sa.Column(column, sa.String(200), nullable=True))


def downgrade() -> None:
    """Nobody is told any more."""
    for column in ("progress_task", "progress_queue"):
        op.drop_column("submission", column)
