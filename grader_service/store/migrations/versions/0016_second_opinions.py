"""What models said about answers."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """A table."""
    op.create_table(
        "second_opinion",
        sa.Column("submission_id", sa.String(128), sa.ForeignKey("submission.submission_id", ondelete="CASCADE")),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("check_id", sa.String(128), nullable=False),
        sa.Column("opinion", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("submission_id", "subject", "model"),
    )


def downgrade() -> None:
    """The model is asked again."""
    op.drop_table("second_opinion")
