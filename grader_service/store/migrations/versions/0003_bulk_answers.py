"""Answers of a batch of re-grades are marked, so that they wait behind those that a learner waits for."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Answers that are there were asked for one by one."""
    op.add_column("outbox", sa.Column("bulk", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    """The order of answers is all that is lost."""
    op.drop_column("outbox", "bulk")
