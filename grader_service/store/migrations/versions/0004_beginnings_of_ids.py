"""Submissions and runs are found by the beginning of an id."""

from alembic import op

from grader_service.store.index_building import build_index

revision = "0004"
down_revision = "0003"
TABLES = {"submission": "submission_id", "run": "run_id"}


def upgrade() -> None:
    """In the order of bytes: where a language has its own, what begins with the same text need not stand together."""
    for table, column in TABLES.items():
        build_index(f"ix_{table}_beginning", table, [column], postgresql_ops={column: "text_pattern_ops"})


def downgrade() -> None:
    """Only the time that finding them takes is lost."""
    for table in TABLES:
        op.drop_index(f"ix_{table}_beginning", table)
