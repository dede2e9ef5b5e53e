"""The database says which versions can work with it, and evidence whether it was noted to which blobs it refers."""

import sqlalchemy as sa
from alembic import op

revision = "0013a"
down_revision = "0013"


def upgrade() -> None:
    """Judges look through all evidence that is there, and through what older versions store from now on."""
    op.create_table(
        "compatibility",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("oldest", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("insert into compatibility (id, oldest) values (1, '0014')")  # versions before it refuse a newer schema
    op.add_column("evidence", sa.Column("noted_at", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    """Other versions are refused again."""
    op.drop_column("evidence", "noted_at")
    op.drop_table("compatibility")
