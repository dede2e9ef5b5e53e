"""What is kept has an age at which it may go, and everything about a learner can be erased."""

import json
import zlib

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_AT_ONCE = 500


def upgrade() -> None:
    """Evidence that is there is read once, to note which blobs it refers to."""
    op.create_table(
        "evidence_blob",
        sa.Column("run_id", sa.String(length=32), sa.ForeignKey("evidence.run_id"), nullable=False),
        sa.Column("sha256", sa.String(length=64), sa.ForeignKey("blob.sha256"), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "sha256"),
    )
    op.create_index("ix_evidence_blob_sha256", "evidence_blob", ["sha256"])
    _note_blobs(op.get_bind())  # which takes a while, and so before anything else is locked
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
    _index("ix_evidence_kept", "evidence", "created_at", "removed_at is null")
    _index("ix_verdict_age", "verdict", "created_at", "current")
    _index("ix_outbox_delivered", "outbox", "delivered_at", "delivered_at is not null")
    _index("ix_run_item", "run", "item_id", "item_id is not null")
    op.create_index("ix_outbox_verdict_id", "outbox", ["verdict_id"])


def downgrade() -> None:
    """What was removed stays removed."""
    for table, index in (
        ("outbox", "ix_outbox_verdict_id"),
        ("run", "ix_run_item"),
        ("outbox", "ix_outbox_delivered"),
        ("verdict", "ix_verdict_age"),
        ("evidence", "ix_evidence_kept"),
    ):
        op.drop_index(index, table_name=table)
    op.drop_column("evidence", "removed_at")
    op.drop_column("submission", "artifact_removed_at")
    for table in ("erasure", "figures", "evidence_blob"):
        op.drop_table(table)


def _index(name: str, table: str, column: str, where: str) -> None:
    op.create_index(name, table, [column], sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _note_blobs(connection: sa.Connection) -> None:
    last = ""
    page = sa.text("select run_id, document from evidence where run_id > :last order by run_id limit :most")
    note = sa.text("insert into evidence_blob (run_id, sha256) select :run, sha256 from blob where sha256 = :sha256")
    while rows := connection.execute(page, {"last": last, "most": _AT_ONCE}).all():
        told = [{"run": row.run_id, "sha256": sha256} for row in rows for sha256 in _graphs(row.document)]
        if told:
            connection.execute(note, told)
        last = rows[-1].run_id


def _graphs(document: bytes) -> set[str]:
    try:
        graphs = json.loads(zlib.decompress(document))["discovery"]["graphs"]
        return {graph["sha256"] for graph in graphs}
    except (zlib.error, ValueError, KeyError, TypeError):  # a rejection, or damaged
        return set()
