"""A day of the service, each part in its own role of the database: what none of the other tests types is typed here."""

import pytest

from grader_service.store.rights import RIGHTS
from grader_service.store.tables import VerdictRow, WorkerRow
from tests.regrade.conftest import Room
from tests.service.harness import served
from tests.services.roles import PASSWORDS, as_role
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def room(redis, postgres_url, tmp_path):
    """A service without workers, with a place for backups, and an operator."""
    passwords = tmp_path / "secrets"
    passwords.mkdir()
    for role, password in PASSWORDS.items():
        (passwords / f"postgres_{role}").write_text(f"{password}\n")
    environment = {"GRADER_BACKUP_STORE": f"file://{tmp_path}/backups", "GRADER_DATABASE_ROLES_DIR": str(passwords)}
    with served(redis, postgres_url, tmp_path, kind=Room, **environment) as made:
        yield made


def stopped(room):
    """Ends all workers, as they should."""
    for worker in room.workers:
        worker.end()
    assert room.rows(WorkerRow) == []


@pytest.mark.slow
def test_what_operators_do_and_what_a_restored_backup_leaves(room):
    """Batches, devices, weights, cancelled and erased submissions, backups; then a restored service grades again."""
    said = room.grader("store", "migrate")
    assert all(f"grader_{role}" in said for role in RIGHTS)
    room.both()
    room.regrade_worker()
    for number in range(2):
        room.post(room.message(f"s:{number}", cohort="autumn", learner=f"learner-{number}"))
    for number in range(2):
        room.one_verdict(f"s:{number}")
    batch = room.plan("--level", "run")["batch_id"]
    room.regrade("start", batch)
    room.await_batch(batch, "finished")
    room.regrade("diff", batch, status=0)
    room.regrade("apply", batch, "--notify", "all")
    room.regrade("revert", batch)
    room.grader("cohort", "weight", "autumn", "2")
    (device,) = (row["device_id"] for row in room.rows(WorkerRow) if row["device_id"])
    room.grader("devices", "drain", device)
    room.grader("devices", "ready", device)
    gate, under_way, _ = room.gated()
    room.grader("cancel", under_way)
    room.grader("backup", "make")
    room.grader("erase", "--learner", "learner-1", "--yes")
    gate.open()
    assert wait_for(lambda: room.verdicts(under_way), 30)
    room.grader("doctor", "--service")
    stopped(room)
    refused = room.command(
        "backup", "restore", "--replace", "--yes", GRADER_DATABASE_URL=as_role(room.database_url, "backup")
    )
    assert "may not make tables" in " ".join(refused.stderr.split()), refused
    assert len(room.rows(VerdictRow)) > 1
    room.grader("backup", "restore", "--replace", "--yes")
    room.both()
    room.post(room.message("s:again"))
    room.one_verdict("s:again")
    assert len(room.verdicts("s:0")) == 2
    assert room.verdicts("s:1") == []
