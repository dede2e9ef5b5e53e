"""A day of the service, each part in its own role of the database: what none of the other tests types is typed here."""

import pytest

from grader_service.store.rights import RIGHTS
from grader_service.store.tables import VerdictRow, WorkerRow
from tests.regrade.conftest import OperatedService
from tests.service.harness import served
from tests.services.roles import PASSWORDS, as_role
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def operated(redis, postgres_url, tmp_path):
    """A service without workers, with a place for backups, and an operator."""
    passwords = tmp_path / "secrets"
    passwords.mkdir()
    for role, password in PASSWORDS.items():
        (passwords / f"postgres_{role}").write_text(f"{password}\n")
    environment = {"GRADER_BACKUP_STORE": f"file://{tmp_path}/backups", "GRADER_DATABASE_ROLES_DIR": str(passwords)}
    with served(redis, postgres_url, tmp_path, kind=OperatedService, **environment) as made:
        yield made


def stopped(operated):
    """Ends all workers, as they should."""
    for worker in operated.workers:
        worker.end()
    assert operated.rows(WorkerRow) == []


@pytest.mark.slow
def test_what_operators_do_and_what_a_restored_backup_leaves(operated):
    """Batches, devices, weights, cancelled and erased submissions, backups; then a restored service grades again."""
    said = operated.grader("store", "migrate")
    assert all(f"grader_{role}" in said for role in RIGHTS)
    operated.both()
    operated.regrade_worker()
    for number in range(2):
        operated.post(operated.message(f"s:{number}", cohort="autumn", learner=f"learner-{number}"))
    for number in range(2):
        operated.one_verdict(f"s:{number}")
    batch = operated.plan("--level", "run")["batch_id"]
    operated.regrade("start", batch)
    operated.await_batch(batch, "finished")
    operated.regrade("diff", batch, status=0)
    operated.regrade("apply", batch, "--notify", "all")
    operated.regrade("revert", batch)
    operated.grader("cohort", "weight", "autumn", "2")
    (device,) = (row["device_id"] for row in operated.rows(WorkerRow) if row["device_id"])
    operated.grader("devices", "drain", device)
    operated.grader("devices", "ready", device)
    gate, under_way, _ = operated.gated()
    operated.grader("cancel", under_way)
    operated.grader("backup", "make")
    operated.grader("erase", "--learner", "learner-1", "--yes")
    gate.open()
    assert wait_for(lambda: operated.verdicts(under_way), 30)
    operated.grader("doctor", "--service")
    stopped(operated)
    refused = operated.command(
        "backup", "restore", "--replace", "--yes", GRADER_DATABASE_URL=as_role(operated.database_url, "backup")
    )
    assert "may not make tables" in " ".join(refused.stderr.split()), refused
    assert len(operated.rows(VerdictRow)) > 1
    operated.grader("backup", "restore", "--replace", "--yes")
    operated.both()
    operated.post(operated.message("s:again"))
    operated.one_verdict("s:again")
    assert len(operated.verdicts("s:0")) == 2
    assert operated.verdicts("s:1") == []
