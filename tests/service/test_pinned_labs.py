"""A run is graded by the text of the lab with which it was accepted, whatever becomes of the lab meanwhile."""

import hashlib

import pytest
from sqlalchemy import delete, insert, select

from grader_service.labs import discovery
from grader_service.service.pipeline import StageEnd
from grader_service.store import removal
from grader_service.store.cancelling import CANCELLED, cancel
from grader_service.store.ids import Named
from grader_service.store.retention_tables import EvidenceBlobRow
from grader_service.store.tables import BlobRow
from tests.receiving import receive
from tests.service.harness import a_message

pytestmark = pytest.mark.integration

LAB = """
schema = "grader.lab/v1"
id = "lists"
version = "1.0.0"
title = "Two lists"

[[steps]]
id = "reflection"
title = "Two lists"

[[steps.checks]]
id = "reflections"
points = 10
params = { min_wins = 1, min_loses = 1 }
"""
LATER = LAB.replace("1.0.0", "2.0.0").replace("points = 10", "points = 40").replace("Two lists", "Other lists")


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """The lab's file in the operator's folder."""
    monkeypatch.setenv("GRADER_LABS_DIR", str(tmp_path))
    monkeypatch.setattr(discovery, "_SETTLED_S", 0.05)
    discovery.installed.cache_clear()
    path = tmp_path / "lists.toml"
    path.write_text(LAB)
    yield path
    discovery.installed.cache_clear()


def told(verdict):
    """By which lab a verdict was made."""
    return verdict.provenance.lab_version, verdict.max_score, verdict.lab_title


def test_a_run_keeps_the_lab_that_it_was_accepted_with(local, lab):
    """Changed before the run, and gone before the judge; what comes in after a change is graded by it at once."""
    local.submit(lab="lists", steps=[])
    lab.write_text(LATER)
    local.submit(lab="lists", steps=[])
    assert local.run_all(local.deps()) == [StageEnd.STORED] * 2
    lab.unlink()
    assert sorted(told(local.judge()) for _ in range(2)) == [
        ("1.0.0", 10.0, "Two lists"),
        ("2.0.0", 40.0, "Other lists"),
    ]


def test_a_learner_cannot_take_the_lab_away(local, lab):
    """A graph of a learner's may have the lab's very bytes; with its evidence only what nobody needs is removed."""
    digest = hashlib.sha256(LAB.encode()).hexdigest()
    local.submit(lab="lists", steps=[])
    local.run_all(local.deps())
    first = local.judge().run_id
    local.submit(lab="lists", steps=[])

    def remove():
        with local.store.transaction() as connection:
            connection.execute(insert(EvidenceBlobRow).values(run_id=first, sha256=digest))
            removal.empty_evidence(connection, first)
            return connection.execute(select(BlobRow.sha256).where(BlobRow.sha256 == digest)).first() is None

    assert not remove()
    assert local.run_all(local.deps()) == [StageEnd.STORED]
    assert told(local.judge()) == ("1.0.0", 10.0, "Two lists")
    assert remove()


def test_a_run_is_cancelled_without_its_lab(local, lab):
    """Where the store has lost it, too."""
    submission_id = local.submit(lab="lists", steps=[])
    with local.store.transaction() as connection:
        connection.execute(delete(BlobRow))
    cancel(local.store, Named(submission_id), "the wrong lab", "operator")
    assert local.judge().code == CANCELLED


def test_what_is_cancelled_says_what_it_was(local, lab):
    """Its steps are those of the lab that was kept."""
    submission_id = local.submit(lab="lists", steps=[])
    lab.unlink()
    cancel(local.store, Named(submission_id), "the wrong lab", "operator")
    verdict = local.judge()
    assert (verdict.code, told(verdict)) == (CANCELLED, ("1.0.0", 10.0, "Two lists"))


def test_a_lab_that_broke_keeps_messages_waiting_and_runs_going(local, lab):
    """Who mends the file finds them all."""
    local.submit(lab="lists", steps=[])
    lab.write_text(LAB.replace("points = 10", "points = 0"))
    assert receive(local._intake, a_message(lab="lists", steps=[]), "live", None).kind == "away"
    assert local.run_all(local.deps()) == [StageEnd.STORED]
    assert told(local.judge()) == ("1.0.0", 10.0, "Two lists")
