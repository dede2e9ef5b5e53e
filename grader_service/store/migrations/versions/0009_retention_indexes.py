"""Indexes of what 0008a adds: what is old enough is found without looking at all."""

from alembic import op

from grader_service.store.index_building import build_index

revision = "0009"
down_revision = "0008a"


def upgrade() -> None:
    """Five of them."""
    build_index("ix_evidence_kept", "evidence", ["created_at"], "removed_at is null")
    build_index("ix_verdict_age", "verdict", ["created_at"], "current")
    build_index("ix_outbox_delivered", "outbox", ["delivered_at"], "delivered_at is not null")
    build_index("ix_run_item", "run", ["item_id"], "item_id is not null")
    build_index("ix_outbox_verdict_id", "outbox", ["verdict_id"])


def downgrade() -> None:
    """Only the time that finding it takes is lost."""
    for table, index in (
        ("outbox", "ix_outbox_verdict_id"),
        ("run", "ix_run_item"),
        ("outbox", "ix_outbox_delivered"),
        ("verdict", "ix_verdict_age"),
        ("evidence", "ix_evidence_kept"),
    ):
        op.drop_index(index, table_name=table)
