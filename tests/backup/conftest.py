"""A service with a store, artifacts, keys and a place for backups, and an empty one to restore into."""

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from grader_service.backup import making, restoring
from grader_service.backup.journal import Journal
from grader_service.backup.making import What
from grader_service.backup.place import NEWEST, Place
from grader_service.backup.restoring import Where
from grader_service.signer.signatures import Signer
from grader_service.store import leases, outbox, results
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store
from grader_service.store.outbox import OutboxMessage, Waiter
from grader_service.store.tables import VerdictRow
from tests.conftest import fresh_database
from tests.regrade.conftest import store_url  # noqa: F401 - a fixture
from tests.store.factories import a_submission, a_verdict, accept


@dataclass
class Owned:
    """What an owner runs, as far as backups see it."""

    store: Store
    folder: Path
    place: Place

    @property
    def artifacts(self) -> ArtifactStore:
        """Where what was handed in is kept."""
        return ArtifactStore(f"file://{self.folder}/artifacts")

    @property
    def signer(self) -> Signer:
        """Signs verdicts; its key is made when it is first needed."""
        return Signer.from_folder(self.folder / "keys")

    def accept(self, number, *, data=b"x = 1", **changes):
        """A submission that waits to be run, with its artifact; its id."""
        self.artifacts.put(data)
        submission = a_submission(number, **changes)
        submission = submission.model_copy(update={"sha256": hashlib.sha256(data).hexdigest()})
        accept(self.store, submission, waiter=Waiter(task_id=f"task-{number}"))
        return submission

    def run(self, *, kind="measured"):
        """Runs what comes next."""
        claim = leases.claim(self.store, "run", "host/GPU-1/abc", 60)
        assert results.store_evidence(self.store, claim, kind, b"{}", {})

    def judge(self):
        """Judges what comes next; the id of the verdict."""
        claim = leases.claim(self.store, "judge", "judge", 60)
        verdict = self.signer.sign(a_verdict(claim.submission_id))
        assert results.store_verdict(self.store, claim, verdict)
        return verdict.verdict_id

    def grade(self, number, **changes):
        """A submission that is graded; its verdict's id."""
        self.accept(number, **changes)
        self.run()
        return self.judge()

    def answer(self) -> list[OutboxMessage]:
        """Keeps what is due in the journal, and takes it for sent."""
        messages = outbox.due(self.store)
        Journal(self.place, self.store, self.signer).keep(messages)
        outbox.delivered(self.store, [message.id for message in messages])
        return messages

    def back_up(self, **options):
        """Makes a backup; its manifest."""
        return making.make(self.place, What(self.store, self.signer, self.artifacts, **options))

    def restore(self, name=NEWEST, *, replace=False):
        """Restores a backup into this one."""
        where = Where(self.store, self.folder / "keys", self.artifacts, "operator:eve")
        manifest = self.place.manifest(name)
        return restoring.restore(self.place, manifest, where, replace=replace, progress=lambda _: None)

    def in_force(self):
        """Submission to the verdict in force, its document included."""
        columns = VerdictRow.submission_id, VerdictRow.verdict_id, VerdictRow.document
        with self.store.transaction() as connection:
            found = connection.execute(select(*columns).where(VerdictRow.current)).all()
        return {row.submission_id: (row.verdict_id, row.document) for row in found}


@pytest.fixture
def place(tmp_path):
    """Where backups lie."""
    return Place(f"file://{tmp_path}/backups")


@pytest.fixture
def owned(store, place, tmp_path):
    """The service, on each database in turn."""
    return Owned(store, tmp_path / "ours", place)


@pytest.fixture
def empty(request, store, place, tmp_path):
    """What is there after the host was lost: a database of the same kind without a table, no artifacts, no keys."""
    database = nullcontext(f"sqlite:///{tmp_path}/empty.db")
    if not store.is_sqlite:
        database = fresh_database(request.getfixturevalue("postgres"), template="template1")
    with database as url:
        opened = Store(url)
        yield Owned(opened, tmp_path / "restored", place)
        opened.close()
