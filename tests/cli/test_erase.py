"""`grader erase`: asks, removes, and leaves a note whose signature verifies."""

import hashlib
import json

import pytest
from typer.testing import CliRunner

from grader_service.cli.app import app
from grader_service.errors import InfrastructureError, UsageError
from grader_service.store import backups
from grader_service.store.tables import SubmissionRow
from tests.store.aged import graded
from tests.store.factories import count, migrated

ANN = "ann@example.org"


@pytest.fixture
def store(tmp_path):
    """With a submission of two learners each."""
    with migrated(f"sqlite:///{tmp_path / 'grader.db'}") as made:
        graded(made, 1, learner=ANN)
        graded(made, 2, learner="bob")
        yield made


@pytest.fixture
def typed(store, tmp_path):
    """What came of a command; `refused` holds what it is told that it did wrong."""

    def type_(*words, status=0, refused=None, failed=None):
        env = {"GRADER_STATE_DIR": str(tmp_path), "GRADER_OPERATOR": "eve", "COLUMNS": "200"}
        done = CliRunner().invoke(app, words, env=env)
        if refused is None and failed is None:
            assert done.exit_code == status, done.output
        else:
            assert isinstance(done.exception, UsageError if refused else InfrastructureError), done.output
            assert (refused or failed) in str(done.exception)
        return done

    return type_


def test_a_note_is_left_that_verifies(store, typed, tmp_path):
    """On standard output and in a file; it has a digest in place of the id."""
    path = tmp_path / "note.json"
    said = typed("erase", "--learner", ANN, "--yes", "--reference", "request 17", "--note", str(path))
    note = json.loads(said.stdout)
    assert note == json.loads(path.read_text())
    assert note["learner_sha256"] == hashlib.sha256(ANN.encode()).hexdigest()
    assert ANN not in said.stdout
    assert (note["schema"], note["by"], note["reference"]) == ("grader.erasure/v1", "operator:eve", "request 17")
    assert note["removed"]["submissions"] == 1
    assert count(store, SubmissionRow) == 1
    typed("verify", str(path))
    path.write_text(path.read_text().replace('"submissions": 1', '"submissions": 2'))
    typed("verify", str(path), status=1)


def test_nothing_goes_unless_it_is_said_so(store, typed):
    """Where nobody can be asked, the option is named; and what would go is counted."""
    said = typed("erase", "--learner", ANN, refused="--yes")
    assert "submissions of this learner: 1" in said.stderr
    assert count(store, SubmissionRow) == 2


def test_who_was_erased_before(typed):
    """Whoever asks again sees when; a mistyped id shows that nothing is stored of it."""
    first = json.loads(typed("erase", "--learner", ANN, "--yes").stdout)
    said = typed("erase", "--learner", ANN, refused="nothing was removed").stderr
    assert "learner: 0" in said
    assert f"erased before: {first['erasure_id']}" in said
    assert "erased before" not in typed("erase", "--learner", "anne", refused="nothing").stderr


def test_a_note_that_cannot_be_written(typed, tmp_path):
    """Is on standard output all the same."""
    said = typed("erase", "--learner", ANN, "--yes", "--note", str(tmp_path / "no" / "note.json"), refused="is above")
    assert json.loads(said.stdout)["removed"]["submissions"] == 1


def test_a_restored_backup_will_follow_it(typed, tmp_path, monkeypatch):
    """The note lies beside the backups; where it cannot be put there, the command says so and is to be repeated."""
    place = tmp_path / "backups"
    monkeypatch.setenv("GRADER_BACKUP_STORE", f"file://{place}")
    place.touch()
    done = typed("erase", "--learner", ANN, "--yes", failed="run the command again")
    assert json.loads(done.stdout)["learner_sha256"] == hashlib.sha256(ANN.encode()).hexdigest()
    place.unlink()
    note = typed("erase", "--learner", ANN, "--yes").stdout
    (kept,) = (place / "erasures").iterdir()
    assert json.loads(json.loads(kept.read_text())["note"]) == json.loads(note)


def test_where_backups_are_made_it_must_know_them(store, typed):
    """Else a restored one would bring the learner back; nothing is removed."""
    backups.made(store, "today", backups.now(store))
    typed("erase", "--learner", ANN, "--yes", refused="GRADER_BACKUP_STORE is not set here")
    assert count(store, SubmissionRow, SubmissionRow.learner == ANN) == 1
