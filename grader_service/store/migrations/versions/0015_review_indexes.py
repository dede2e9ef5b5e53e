"""Finds verdicts that wait for a person, and lets a run be judged again once a person decided."""

from alembic import op

from grader_service.store.index_building import build_index

revision = "0015"
down_revision = "0014a"


def upgrade() -> None:
    """Two indexes, of which the second takes the place of an older one."""
    build_index("ix_verdict_needs_review", "verdict", ["verdict_id"], "current and needs_review")
    build_index("ux_verdict_judged", "verdict", ["run_id"], "batch_id is null and not reviewed", unique=True)
    op.drop_index("ux_verdict_run", table_name="verdict", if_exists=True)


def downgrade() -> None:
    """Verdicts that people brought about would not fit the older index."""
    raise NotImplementedError("decisions cannot be undone by a migration; restore a backup")
