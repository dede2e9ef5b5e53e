"""What the stores of these tests hold: a cohort, hostile texts, devices, and batches in several states."""

import json

from sqlalchemy import insert, select

from grader_service.model.regrade import ItemState
from grader_service.regrade.bulk import judge_chunk
from grader_service.store import devices, regrade_apply, regrade_states, workers
from grader_service.store.events import record
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.review_tables import ReviewCaseRow
from grader_service.store.tables import RunRow, RunState, SubmissionRow, VerdictRow, table_of
from tests.regrade.deps import overwrite, planned, read, some_deps, started, worked_off
from tests.regrade.stored import changed_lab, fill

SCRIPT = "<script>window.pwned=1</script>"
IMAGE = "\"'><img src=x onerror=window.pwned=1>"
BIDI = "Ann\u202egpj\u2066"
COUNT = 60
REVIEWED = "reflections"
"""The check that waits for a person."""


def stock(store, folder):
    """Fills an empty store; returns what tests look for."""
    ids = fill(store, COUNT)
    rename(store, ids[0], learner=SCRIPT, filename=IMAGE)
    rename(store, ids[1], learner=IMAGE)
    rename(store, ids[2], learner=BIDI)
    rename(store, ids[3], learner="W" * 200, cohort="x" * 180)
    with store.transaction() as connection:
        record(connection, "verdict", SCRIPT, submission_id=ids[0], note=IMAGE)
        run = connection.execute(select(table_of(RunRow)).where(RunRow.submission_id == ids[4])).mappings().one()
        stuck = dict(run) | {"run_id": "f" * 32, "state": RunState.NEEDS_ATTENTION.value, "attempts": 3}
        connection.execute(insert(table_of(RunRow)).values(stuck | {"last_error": f"pod died: {SCRIPT}"}))
    devices.see(store, "GPU-1f0c3a52-77aa-4e0f-9d11-000000000001", "gpu-host-1", "NVIDIA H100 80GB HBM3")
    devices.see(store, "cpu:host:0", SCRIPT, IMAGE)
    devices.quarantine(store, "cpu:host:0", f"XID 79 {SCRIPT}", "host/watch")
    workers.say(store, workers.Identity(workers.RUN, SCRIPT, "cpu:host:0"), [f"run space: {IMAGE}"])
    deps = some_deps(store)
    finished = worked_off(deps, changed_lab(folder), reason=f"too low {SCRIPT}")
    applied = worked_off(deps, statuses=("rejected",))
    regrade_apply.apply(store, applied, "operator:tests")
    running = started(deps, cohorts=("autumn",))
    judge_chunk(deps, size=10)
    waiting = planned(deps, reason="again").batch_id
    stopped = started(deps, submissions=(ids[5],), repeats=2)
    regrade_states.pause(store, stopped, "operator:tests", f"the GPUs are needed {SCRIPT}")
    second = (RegradeItemRow.batch_id == stopped, RegradeItemRow.repetition == 2)
    failed = {"state": ItemState.NEEDS_ATTENTION.value, "attempts": 3, "last_error": IMAGE * 20}
    overwrite(store, RegradeItemRow, *second, **failed)
    left_to_a_person(store, ids[0])
    return {
        "ids": ids,
        "finished": finished,
        "applied": applied,
        "running": running,
        "planned": waiting,
        "stopped": stopped,
    }


def left_to_a_person(store, submission_id):
    """Lets the verdict in force leave a check to a person; what the check saw is hostile."""
    current = (VerdictRow.submission_id == submission_id, VerdictRow.current)
    overwrite(store, VerdictRow, *current, needs_review=True)
    ((verdict_id,),) = read(store, VerdictRow.verdict_id, where=current)
    lists = {"where_dali_wins": [SCRIPT, "W" * 400], "where_dali_loses": [IMAGE, BIDI]}
    seen = lists | {SCRIPT: {IMAGE: [SCRIPT, {SCRIPT: "W" * 400}], "rows": [{IMAGE: SCRIPT, "n": 1.5}]}}
    case = {"verdict_id": verdict_id, "check_id": REVIEWED, "submission_id": submission_id, "subject": "5" * 64}
    with store.transaction() as connection:
        connection.execute(insert(ReviewCaseRow).values(**case, seen=json.dumps(seen), opened_at=1e9))


def rename(store, submission_id, **values):
    """Gives a stored submission other texts or other values."""
    overwrite(store, SubmissionRow, SubmissionRow.submission_id == submission_id, **values)
