"""Evidence that older versions stored is noted before anything goes that it may refer to."""

import pytest
from sqlalchemy import delete, update

from grader_service.service.retaining import Keeping, Retention
from grader_service.store import erasing, results, retention
from grader_service.store.noting import note_older
from grader_service.store.retention_tables import EvidenceBlobRow
from grader_service.store.tables import BlobRow, EvidenceRow, VerdictRow
from tests.regrade.deps import read
from tests.store.aged import age, graded
from tests.store.test_retention import run_of
from tests.store.test_store import count


@pytest.fixture
def shared(store):
    """Two submissions whose runs brought the same graph; the second one's evidence was stored by an older version."""
    first, second = graded(store, 1), graded(store, 2, learner="bob")
    not_noted(store, run_of(store, second))
    return store, first, second


def not_noted(store, run_id):
    """Evidence as a version left it that notes nothing."""
    with store.transaction() as connection:
        connection.execute(delete(EvidenceBlobRow).where(EvidenceBlobRow.run_id == run_id))
        connection.execute(update(EvidenceRow).where(EvidenceRow.run_id == run_id).values(noted_at=None))


def test_nothing_goes_before_all_is_noted(shared):
    """The graph of the first one would go, and the second needs it."""
    store, first, _ = shared
    age(store, EvidenceRow, "created_at", 31, EvidenceRow.run_id == run_of(store, first))
    age(store, VerdictRow, "created_at", 31)
    assert retention.remove_evidence(store, 30, 100) == 0
    assert retention.remove_verdicts(store, 30, 100) == 0
    assert not note_older(store)
    assert retention.remove_evidence(store, 30, 100) == 1
    assert count(store, BlobRow) == 1


def test_the_chore_notes_and_then_removes(shared):
    """In one round; in the end nothing is left that nothing refers to."""
    store, first, second = shared
    age(store, EvidenceRow, "created_at", 31, EvidenceRow.run_id == run_of(store, first))
    Retention(store, Keeping(evidence_days=30)).look()
    (digest,) = read(store, BlobRow.sha256)
    assert results.load_blob(store, *digest) == b"graph"
    age(store, EvidenceRow, "created_at", 31, EvidenceRow.run_id == run_of(store, second))
    Retention(store, Keeping(evidence_days=30)).look()
    assert count(store, BlobRow) == 0


def test_an_erasure_leaves_what_others_need(shared):
    """It does not wait for the chore."""
    store, _, second = shared
    erasing.erase(store, "ann", "op", lambda _: "{}")
    assert read(store, EvidenceBlobRow.run_id) == [(run_of(store, second),)]


def test_damaged_evidence_holds_up_no_other(shared):
    """Nobody can judge from it."""
    store, first, second = shared
    damaged = run_of(store, first)
    not_noted(store, damaged)
    with store.transaction() as connection:
        connection.execute(update(EvidenceRow).where(EvidenceRow.run_id == damaged).values(document=b"damaged"))
    assert not note_older(store)
    assert read(store, EvidenceBlobRow.run_id) == [(run_of(store, second),)]


def test_evidence_of_this_version_is_noted_at_once(store):
    """So that there is nothing to look through."""
    graded(store, 1)
    assert count(store, EvidenceRow, EvidenceRow.noted_at.is_(None)) == 0
    assert count(store, EvidenceBlobRow) == 1
