"""What is kept has an age at which it may go, and everything about a learner can be erased."""

import sqlalchemy as sa
from alembic import op

revision = "0008a"
down_revision = "0008"


def upgrade() -> None:
    """To which blobs evidence refers that is there already, judges note: see 0013a."""
    op.create_table(
        "evidence_blob",
        sa.Column("run_id", sa.String(length=32), sa.ForeignKey("evidence.run_id"), nullable=False),
        sa.Column("sha256", sa.String(length=64), sa.ForeignKey("blob.sha256"), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "sha256"),
    )
    op.create_index("ix_evidence_blob_sha256", "evidence_blob", ["sha256"])
    op.create_table(
        "figures",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_event", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("insert into figures (id, last_event, document) values (1, 0, '{}')")
    op.create_table(
        "erasure",
        sa.Column("erasure_id", sa.String(length=32), nullable=False),
        sa.Column("learner_sha256", sa.String(length=64), nullable=False),
        sa.Column("begun_at", sa.Float(precision=53), nullable=False),
        sa.Column("removed", sa.JSON(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("erasure_id"),
    )
    op.create_index("ix_erasure_learner_sha256", "erasure", ["learner_sha256"])
    op.add_column("submission", sa.Column("artifact_removed_at", sa.Float(precision=53), nullable=True))
    op.add_column("evidence", sa.Column("removed_at", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    """What was removed stays removed."""
    op.drop_column("evidence", "removed_at")
    op.drop_column("submission", "artifact_removed_at")
    for table in ("erasure", "figures", "evidence_blob"):
        op.drop_table(table)
