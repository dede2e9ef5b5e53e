"""Finds the evidence of which nobody has noted to which blobs it refers."""

from alembic import op

from grader_service.store.index_building import build_index

revision = "0014"
down_revision = "0013a"


def upgrade() -> None:
    """An index, which is empty once judges have looked through all evidence."""
    build_index("ix_evidence_not_noted", "evidence", ["run_id"], "noted_at is null")


def downgrade() -> None:
    """Only the time that finding it takes is lost."""
    op.drop_index("ix_evidence_not_noted", table_name="evidence")
