"""An operator's room: a service with its database and Redis, and what an operator types there."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select

from checks.registry import Registry
from grader_service.labs.specs import lab_text
from grader_service.model.regrade import ItemState
from grader_service.regrade.bulk import BulkDesk
from grader_service.service.retry import RetryPolicy
from grader_service.signing import Signer
from grader_service.store import regrade_work, regrades
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.regrade_work import Chunk
from grader_service.store.tables import OutboxRow, VerdictRow, table_of
from tests.conftest import DATABASES
from tests.regrade.desk import COUNT
from tests.regrade.stored import LAB, fill
from tests.service.harness import GRADER, Service, Worker
from tests.waiting import wait_for


class Room(Service):
    """The service, and what an operator does there."""

    def signer(self) -> Signer:
        """Of the service."""
        return Signer.from_folder(self.settings().key_dir)

    def grader(self, *arguments: str, status: int = 0, **environment: str) -> str:
        """Runs `grader …`, which must end with this status; returns what it printed."""
        done = subprocess.run(
            [GRADER, *arguments],
            env=self.env(COLUMNS="160", **environment),
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == status, f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if status in {0, 1, 4} else done.stderr

    def regrade(self, *arguments: str, status: int = 0) -> str:
        """Runs `grader regrade …`."""
        return self.grader("regrade", *arguments, status=status)

    def plan(self, *arguments: str) -> dict[str, Any]:
        """Plans a batch over the autumn cohort; returns it."""
        words = ("plan", "--cohort", "autumn", "--reason", "the threshold was too low", *arguments, "--json")
        batch: dict[str, Any] = json.loads(self.regrade(*words))
        return batch

    def regrade_worker(self) -> Worker:
        """Starts a worker that works on batches."""
        return self.start("worker", "regrade")

    def stricter_lab(self) -> Path:
        """The lab as it is installed, with another threshold."""
        path = self.logs / "stricter.toml"
        path.write_bytes(lab_text(LAB).content.replace(b"threshold = 1.1", b"threshold = 1.3"))
        return path

    def await_done(self, batch_id: str, items: int, timeout_s: float = 60.0) -> None:
        """Waits until so many items of a batch have their new verdict."""
        wait_for(lambda: regrades.progress(self.store, batch_id).done >= items, timeout_s, every_s=0.02)

    def await_batch(self, batch_id: str, state: str, timeout_s: float = 120.0) -> None:
        """Waits until a batch is in this state."""
        wait_for(lambda: regrades.batch(self.store, batch_id).state == state, timeout_s)

    def hold(self, items: int) -> Chunk:
        """Takes items of the running batch, so that no worker, however fast, comes to its end before they are back."""
        chunk = regrade_work.claim_chunk(self.store, "somebody", 600.0, items)
        assert chunk is not None
        assert len(chunk.jobs) == items
        return chunk

    def give_back(self, chunk: Chunk) -> None:
        """Lets others have what `hold` took."""
        regrade_work.give_back(self.store, chunk, chunk.jobs)

    def await_idle(self, batch_id: str, *, held: int = 0, timeout_s: float = 60.0) -> None:
        """Waits until no item of a batch is in hand but those that `hold` took."""
        wait_for(lambda: regrades.progress(self.store, batch_id).counts.get(ItemState.WORKING, 0) == held, timeout_s)

    def in_force(self) -> dict[str, Any]:
        """Submission to the row of its verdict in force."""
        return {row["submission_id"]: row for row in self.rows(VerdictRow, VerdictRow.current)}

    def items(self, batch_id: str) -> dict[str, Any]:
        """Submission to its item in a batch."""
        return {row["submission_id"]: row for row in self.rows(RegradeItemRow, RegradeItemRow.batch_id == batch_id)}

    def answer(self, submission_id: str) -> dict[str, Any]:
        """What the task of a submission of the cohort has for its result now."""
        meta = self.app.backend.get_task_meta(f"task-{submission_id}", cache=False)
        found: dict[str, Any] = meta["result"]
        return found

    def outbox(self) -> list[str]:
        """Ids of the verdicts that were queued as answers, one for each answer."""
        with self.store.transaction() as connection:
            return list(connection.execute(select(table_of(OutboxRow).c.verdict_id)).scalars())


@pytest.fixture(params=DATABASES)
def store_url(request):
    """Each database in turn."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(params=DATABASES)
def room(request, redis, tmp_path):
    """A room of its own on each database; the logs of its workers are shown when a test fails."""
    state_dir = Path(tempfile.mkdtemp(prefix="grader-regrade-", dir="/var/tmp"))
    url = f"sqlite:///{state_dir}/grader.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    # Nothing here waits for a lease to end; one that is lost on a busy machine would be an event more.
    made = Room(redis, url, state_dir, tmp_path, environment={"GRADER_LEASE_S": "60"})
    yield made
    made.stop()
    for worker in made.workers:
        print(f"--- {worker.log.name}\n{worker.log.read_text(errors='replace')[-4000:]}")
    shutil.rmtree(state_dir, ignore_errors=True)


@pytest.fixture(scope="module")
def registry():
    return Registry()


@pytest.fixture
def desk(store, registry):
    """Somebody who judges in this process, over a cohort of known kinds."""
    fill(store, COUNT)
    signer = Signer(Ed25519PrivateKey.generate())
    return BulkDesk(store, registry, signer, "worker", retry=RetryPolicy(max_attempts=2, delay_s=0.0))


@pytest.fixture
def stricter(tmp_path):
    """The lab with another threshold."""
    path = tmp_path / "stricter.toml"
    path.write_bytes(lab_text(LAB).content.replace(b"threshold = 1.1", b"threshold = 1.3"))
    return path
