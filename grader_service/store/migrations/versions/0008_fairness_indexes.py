"""Indexes of what 0007a adds: in the order of claims."""

from alembic import op

from grader_service.store.index_building import build_index

revision = "0008"
down_revision = "0007a"


def upgrade() -> None:
    """The order of claims before it has no index any more."""
    queued, to_judge, held = "state = 'run_queued'", "state = 'judge_queued'", "held_until is not null"
    build_index("ix_run_queued", "run", ["priority", "cohort", "turn", "created_at"], queued)
    build_index("ix_run_learner_queued", "run", ["learner"], queued)
    build_index("ix_run_to_judge", "run", ["priority", "created_at"], to_judge)
    build_index("ix_run_held", "run", ["learner", "held_until"], held)
    op.drop_index("ix_run_waiting", table_name="run")


def downgrade() -> None:
    """What waits is claimed in the order in which it came."""
    where = "state in ('run_queued', 'judge_queued')"
    build_index("ix_run_waiting", "run", ["state", "priority", "created_at"], where)
    for index in ("ix_run_held", "ix_run_to_judge", "ix_run_learner_queued", "ix_run_queued"):
        op.drop_index(index, table_name="run")
