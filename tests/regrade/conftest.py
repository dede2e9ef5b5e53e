"""A service with its database and Redis, and what an operator types there."""

import json
from pathlib import Path
from typing import Any

import pytest

from grader_service.model.regrade import ItemState
from grader_service.regrade.releasing import ReleaseDeps
from grader_service.retry_policy import RetryPolicy
from grader_service.signer.signatures import Signer
from grader_service.store import regrade_work, regrades
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.regrade_work import Chunk
from grader_service.store.tables import OutboxRow, VerdictRow
from tests.conftest import DATABASES
from tests.regrade.deps import COUNT, some_deps
from tests.regrade.stored import changed_lab, fill
from tests.service.harness import Service, Worker, served
from tests.waiting import wait_for


class OperatedService(Service):
    """The service, and what an operator does there."""

    def signer(self) -> Signer:
        """Of the service."""
        return Signer.from_folder(self.settings().key_dir)

    def grader(self, *arguments: str, status: int = 0) -> str:
        """Runs `grader …`, which must end with this status; returns what it printed."""
        done = self.command(*arguments)
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
        return changed_lab(self.logs)

    def await_done(self, batch_id: str, items: int) -> None:
        """Waits until so many items of a batch have their new verdict."""
        wait_for(lambda: regrades.progress(self.store, batch_id).done >= items, 60, every_s=0.02)

    def await_batch(self, batch_id: str, state: str) -> None:
        """Waits until a batch is in this state."""
        wait_for(lambda: regrades.batch(self.store, batch_id).state == state, 120)

    def hold(self, items: int) -> Chunk:
        """Takes items of the running batch, so that no worker, however fast, comes to its end before they are back."""
        chunk = regrade_work.claim_chunk(self.store, "somebody", 600.0, items)
        assert chunk is not None
        assert len(chunk.jobs) == items
        return chunk

    def give_back(self, chunk: Chunk) -> None:
        """Lets others have what `hold` took."""
        regrade_work.give_back(self.store, chunk, chunk.jobs)

    def await_idle(self, batch_id: str, *, held: int = 0) -> None:
        """Waits until no item of a batch is in hand but those that `hold` took."""
        wait_for(lambda: regrades.progress(self.store, batch_id).counts.get(ItemState.WORKING, 0) == held, 60)

    def in_force(self) -> dict[str, Any]:
        """Submission to the row of its verdict in force."""
        return {row["submission_id"]: row for row in self.rows(VerdictRow, VerdictRow.current)}

    def items(self, batch_id: str) -> dict[str, Any]:
        """Submission to its item in a batch."""
        return {row["submission_id"]: row for row in self.rows(RegradeItemRow, RegradeItemRow.batch_id == batch_id)}

    def answer(self, submission_id: str) -> dict[str, Any]:
        """What the task of a submission of the cohort has for its result now."""
        meta = self.answers.backend.get_task_meta(f"task-{submission_id}", cache=False)
        found: dict[str, Any] = meta["result"]
        return found

    def outbox(self) -> list[str]:
        """Ids of the verdicts that were queued as answers, one for each answer."""
        return [row["verdict_id"] for row in self.rows(OutboxRow)]


@pytest.fixture(params=DATABASES)
def store_url(request):
    """Each database in turn."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def operated(redis, store_url, tmp_path):
    """One of its own on each database."""
    # Nothing here waits for a lease to end; one that is lost on a busy machine would be an event more.
    with served(redis, store_url, tmp_path, kind=OperatedService, GRADER_LEASE_S="60") as made:
        yield made


@pytest.fixture
def deps(store):
    """Somebody who judges in this process, over a cohort of known kinds."""
    fill(store, COUNT)
    return some_deps(store, retry=RetryPolicy(max_attempts=2, delay_s=0.0))


@pytest.fixture
def releasing(deps, tmp_path):
    """Whoever makes runs of items."""
    return ReleaseDeps(deps.store, ArtifactStore(f"file://{tmp_path}/artifacts"), deps.registry, "worker")


@pytest.fixture
def stricter(tmp_path):
    """The lab with another threshold."""
    return changed_lab(tmp_path)
