"""Submissions are found by their artifact, so that artifacts of none can be removed."""

from alembic import op

from grader_service.store.index_building import build_index

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """An index."""
    build_index("ix_submission_sha256", "submission", ["sha256"])


def downgrade() -> None:
    """Without it."""
    op.drop_index("ix_submission_sha256", table_name="submission")
