"""Which backups were made, and which answers stand in the journal."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0011"


def upgrade() -> None:
    """Answers that were not sent yet are journaled before they are."""
    op.create_table(
        "backup",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("begun_at", sa.Float(53), nullable=False),
        sa.Column("finished_at", sa.Float(53), nullable=False),
    )
    op.add_column("outbox", sa.Column("journaled", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    """The journal is not looked at any more."""
    op.drop_column("outbox", "journaled")
    op.drop_table("backup")
