"""Notes to which blobs evidence refers: with the evidence itself, and later for what versions before that stored."""

import json
import zlib
from contextlib import suppress

from sqlalchemy import ColumnElement, Connection, literal, select, update
from sqlalchemy.orm import aliased

from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.retention_tables import EvidenceBlobRow
from grader_service.store.tables import BlobRow, EvidenceRow
from grader_service.store.upsert import insert_into

_AT_ONCE = 100
_NOT_OURS = (zlib.error, ValueError, KeyError, TypeError, AttributeError)
"""Of a document that was removed or is damaged: nobody can judge from it."""


def note_blobs(connection: Connection, run_id: str, document: bytes) -> None:
    """Notes to which blobs a run's evidence refers, also where another run had brought them; twice changes nothing.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the document is none of ours.
    """
    discovery = json.loads(document).get("discovery") or {}
    digests = [graph["sha256"] for graph in discovery.get("graphs", ())]
    there = select(literal(run_id), BlobRow.sha256).where(BlobRow.sha256.in_(digests)).order_by(BlobRow.sha256)
    notes = insert_into(connection, EvidenceBlobRow).from_select(["run_id", "sha256"], there)
    connection.execute(notes.on_conflict_do_nothing())


def all_noted() -> ColumnElement[bool]:
    """Whether no evidence is left to be noted. Until then no blob may be removed: it may be needed without a note."""
    evidence = aliased(EvidenceRow)
    return ~select(evidence.run_id).where(evidence.noted_at.is_(None)).exists()


def note_older(store: Store, most: int = _AT_ONCE) -> bool:
    """Notes some of the evidence that versions stored which did not; whether more is left.

    Raises:
        StoreUnavailable: the database failed.
    """
    chosen = select(EvidenceRow.run_id, EvidenceRow.document).where(EvidenceRow.noted_at.is_(None))
    with store.transaction() as connection:
        rows = connection.execute(chosen.order_by(EvidenceRow.run_id).limit(most).with_for_update()).all()
        for row in rows:
            with suppress(*_NOT_OURS):
                note_blobs(connection, row.run_id, zlib.decompress(row.document))
        noted = update(EvidenceRow).where(EvidenceRow.run_id.in_([row.run_id for row in rows]))
        connection.execute(noted.values(noted_at=db_now()))
        return not connection.execute(select(all_noted())).scalar_one()
