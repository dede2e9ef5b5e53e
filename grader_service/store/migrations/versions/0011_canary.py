"""A device that its steward took out of service is tried again by a canary."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """What is in quarantine already gets a canary at once."""
    op.add_column("device", sa.Column("canary_from", sa.Float(precision=53), server_default="0", nullable=True))
    op.add_column("device", sa.Column("canary_tries", sa.Integer(), server_default="0", nullable=False))
    op.add_column("device", sa.Column("canary_failed", sa.Text(), nullable=True))


def downgrade() -> None:
    """Only operators put a device back."""
    for column in ("canary_failed", "canary_tries", "canary_from"):
        op.drop_column("device", column)
