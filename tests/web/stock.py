"""What the stores of these tests hold: a cohort, hostile texts, devices, and batches in several states."""

from sqlalchemy import insert, select, update

from checks.registry import Registry
from grader_service.model.regrade import ItemState, Selection
from grader_service.regrade.bulk import BulkDesk, judge_chunk
from grader_service.regrade.planning import PlanRequest, plan
from grader_service.signing import Signer
from grader_service.store import devices, regrade_apply, regrade_states
from grader_service.store.events import record
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.tables import RunRow, RunState, SubmissionRow, table_of
from tests.regrade.desk import overwrite
from tests.regrade.stored import changed_lab, fill

SCRIPT = "<script>window.pwned=1</script>"
IMAGE = "\"'><img src=x onerror=window.pwned=1>"
BIDI = "Ann\u202egpj\u2066"
COUNT = 60


class Worker:
    """Judges batches in this process, as `grader worker regrade` does."""

    def __init__(self, store, folder):
        self.desk = BulkDesk(store, Registry(), Signer.from_folder(folder / "keys"), "tests/regrade")

    def judge(self, size=25):
        """One chunk; returns how many items it had."""
        return judge_chunk(self.desk, size=size) or 0

    def finish(self):
        while self.judge():
            pass


def plan_batch(store, *, reason="the threshold was too low", lab_files=(), repeats=1, **selection):
    """A planned batch."""
    request = PlanRequest(Selection(**selection), reason, repeats=repeats, lab_files=lab_files)
    return plan(store, Registry(), request, "operator:tests")


def started(store, **planned):
    """The id of a batch at work."""
    batch_id = plan_batch(store, **planned).batch_id
    regrade_states.start(store, batch_id, "operator:tests")
    return batch_id


def stock(store, folder):
    """Fills an empty store; returns what tests look for."""
    signer = Signer.from_folder(folder / "keys")
    ids = fill(store, COUNT, signer=signer)
    with store.transaction() as connection:
        rename(connection, ids[0], learner=SCRIPT, filename=IMAGE)
        rename(connection, ids[1], learner=IMAGE)
        rename(connection, ids[2], learner=BIDI)
        rename(connection, ids[3], learner="W" * 200, cohort="x" * 180)
        record(connection, "verdict", SCRIPT, submission_id=ids[0], note=IMAGE)
        run = connection.execute(select(table_of(RunRow)).where(RunRow.submission_id == ids[4])).mappings().one()
        stuck = dict(run) | {"run_id": "f" * 32, "state": RunState.NEEDS_ATTENTION.value, "attempts": 3}
        connection.execute(insert(table_of(RunRow)).values(stuck | {"last_error": f"pod died: {SCRIPT}"}))
    devices.see(store, "GPU-1f0c3a52-77aa-4e0f-9d11-000000000001", "gpu-host-1", "NVIDIA H100 80GB HBM3")
    devices.see(store, "cpu:host:0", SCRIPT, IMAGE)
    devices.quarantine(store, "cpu:host:0", f"XID 79 {SCRIPT}", "host/watch")
    finished = started(store, reason=f"too low {SCRIPT}", lab_files=(changed_lab(folder),))
    worker = Worker(store, folder)
    worker.finish()
    applied = started(store, statuses=("rejected",))
    worker.finish()
    regrade_apply.apply(store, applied, "operator:tests")
    running = started(store, cohorts=("autumn",))
    worker.judge(10)
    planned = plan_batch(store, reason="again")
    stopped = started(store, submissions=(ids[5],), repeats=2)
    regrade_states.pause(store, stopped, "operator:tests", f"the GPUs are needed {SCRIPT}")
    second = (RegradeItemRow.batch_id == stopped, RegradeItemRow.repetition == 2)
    failed = {"state": ItemState.NEEDS_ATTENTION.value, "attempts": 3, "last_error": IMAGE * 20}
    overwrite(store, RegradeItemRow, *second, **failed)
    return {
        "ids": ids,
        "finished": finished,
        "applied": applied,
        "running": running,
        "planned": planned.batch_id,
        "stopped": stopped,
    }


def rename(connection, submission_id, **values):
    """Gives a stored submission other texts or other values."""
    connection.execute(update(SubmissionRow).where(SubmissionRow.submission_id == submission_id).values(**values))
