"""`grader backup` and `grader reconcile`: what they say, and their exit codes."""

import json
import time
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from grader_service.cli.app import app
from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.store.tables import SubmissionRow
from tests.store.aged import graded
from tests.store.factories import a_submission, accept, count, migrated


@pytest.fixture
def store(tmp_path):
    """With two submissions that were graded."""
    with migrated(f"sqlite:///{tmp_path / 'grader.db'}") as made:
        graded(made, 1)
        graded(made, 2, learner="bob", sha="a")
        yield made


@pytest.fixture
def typed(store, tmp_path):
    """What came of a command; `refused` holds what it is told, as which kind of failure."""

    def type_(*words, status=0, refused=None, given=None, **env):
        env = {"GRADER_STATE_DIR": str(tmp_path), "GRADER_BACKUP_STORE": f"file://{tmp_path}/backups"} | env
        done = CliRunner().invoke(app, words, env=env | {"GRADER_OPERATOR": "eve", "COLUMNS": "200"}, input=given)
        if refused is None:
            assert done.exit_code == status, done.output
        else:
            kind, text = refused
            assert isinstance(done.exception, kind), done.output
            assert text in str(done.exception)
        return done

    return type_


def test_a_backup_is_made_listed_checked_and_restored(store, typed, tmp_path):
    """The verdicts here were signed by nobody, which is said: exit code 1."""
    assert "none" in typed("backup", "list").stdout
    made = typed("backup", "make").stderr
    (name,) = (path.name for path in (tmp_path / "backups" / "backups").iterdir())
    assert f"{name}: " in made
    assert f"file://{tmp_path}/backups" in made
    assert "2 artifacts are missing in it: the artifact store could not read them" in made
    assert name in typed("backup", "list").stdout
    assert "all" in typed("backup", "check").stderr
    before = count(store, SubmissionRow)
    accept(store, a_submission(3))
    typed("backup", "restore", refused=(UsageError, "is not empty"))
    typed("backup", "restore", "--replace", given="n\n", refused=(UsageError, "nothing was restored"))
    assert count(store, SubmissionRow) == before + 1
    done = typed("backup", "restore", "--replace", "--yes", status=1)
    assert "0 signatures are valid, 2 are not" in done.stderr
    assert "lost: artifact" in done.stderr
    assert count(store, SubmissionRow) == before


def test_a_backup_that_is_damaged_is_said(typed, tmp_path):
    """By the files that differ; exit code 1, and 3 where it is to be restored."""
    typed("backup", "make", "--without-artifacts")
    (file,) = (tmp_path / "backups").rglob("verdict.jsonl.gz")
    file.write_bytes(b"")
    assert "damaged: tables/verdict.jsonl.gz" in typed("backup", "check", status=1).stderr
    typed("backup", "restore", "--replace", "--yes", refused=(InfrastructureError, "verdict.jsonl.gz cannot be used"))


def test_one_is_made_whenever_the_newest_is_too_old(typed, tmp_path, monkeypatch):
    """After a start it is looked whether one is due; one that fails is tried again, and ends nothing."""
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            (tmp_path / "backups").unlink()
        elif len(waits) == 3:
            raise KeyboardInterrupt

    (tmp_path / "backups").touch()  # no folder can be made there
    monkeypatch.setattr("grader_service.cli.backup.time", SimpleNamespace(sleep=sleep, time=time.time))
    monkeypatch.setattr("grader_service.cli.backup.configure_logs", lambda _: None)  # it would outlive the runner
    words = ("backup", "make", "--every-hours", "0.1", "--without-artifacts")
    began = time.time()
    typed(*words, status=130)
    assert len(list((tmp_path / "backups" / "backups").iterdir())) == 1
    assert waits[0] == 600
    assert 359 - (time.time() - began) < waits[1] <= 360
    made = tmp_path / "backups" / "backups"
    later = SimpleNamespace(sleep=sleep, time=lambda: time.time() + (361 if len(list(made.iterdir())) == 1 else 0))
    monkeypatch.setattr("grader_service.cli.backup.time", later)
    waits[:] = [0.0, 0.0]
    typed(*words, status=130)
    assert len(list(made.iterdir())) == 2


def test_what_is_missing_is_said(typed):
    """The setting, or the backup."""
    typed("backup", "make", GRADER_BACKUP_STORE=None, refused=(ConfigurationError, "GRADER_BACKUP_STORE is not set"))
    typed("backup", "check", "2026", refused=(UsageError, "there is no whole backup '2026'"))


def test_a_platform_learns_which_of_its_ids_never_arrived(store, typed, tmp_path):
    """From a file or from standard input; with digests it also learns which were other files."""
    accept(store, a_submission(3, learner="cid"))
    ids = tmp_path / "ids"
    ids.write_text(f"s:1\n\ns:2  {'A' * 64}\ns:3\n")
    assert "3 submissions: 2 answered, 1 waiting" in typed("reconcile", str(ids)).stderr
    done = typed("reconcile", "-", given=f"s:1\ns:2 {'b' * 64}\ns:9\n", status=1)
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [["s:2", "differs"], ["s:9", "unknown"]]
    done = typed("reconcile", "-", "--json", given="s:9\ns:1\n", status=1)
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == {"submission_id": "s:9", "state": "unknown", "verdict_id": None, "status": None}
    assert (second["state"], second["status"]) == ("answered", "rejected")


def test_what_was_never_an_id_is_unknown(typed):
    """Whatever bytes it has."""
    done = typed("reconcile", "-", "--json", given=f"s:\0\n{'x' * 500}\n", status=1)
    assert [json.loads(line)["state"] for line in done.stdout.splitlines()] == ["unknown", "unknown"]


@pytest.mark.parametrize("line", ["s:1 s:2 s:3", "s:1 abc"])
def test_a_line_that_is_none_is_refused(typed, line):
    """With its number."""
    typed("reconcile", "-", given=f"s:1\n{line}\n", refused=(UsageError, "-, line 2: expected an id"))
