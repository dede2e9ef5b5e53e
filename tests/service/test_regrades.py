"""Re-grades over the real service: runs that are made again, budgets, pauses, and learners who hand in meanwhile."""

import pytest

from grader_service.model.regrade import ItemState
from grader_service.store import regrades
from grader_service.store.tables import RunRow, RunState
from tests.regrade.conftest import Room
from tests.service.faults import no_writes, writer_waits
from tests.service.harness import served
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

COUNT = 3


@pytest.fixture
def room(redis, postgres_url, tmp_path):
    """A service without workers, and an operator."""
    with served(redis, postgres_url, tmp_path, kind=Room) as made:
        yield made


def graded(room, count=COUNT):
    """Submissions of one cohort with their verdicts in force."""
    ids = [f"s:{number}" for number in range(count)]
    for submission_id in ids:
        room.post(room.message(submission_id, cohort="autumn"))
    for submission_id in ids:
        room.one_verdict(submission_id)
    return ids


def planned(room, *words):
    """The id of a batch that runs the cohort again."""
    return room.plan("--level", "run", *words)["batch_id"]


def waiting_for_a_runner(room, count=COUNT, **environment):
    """A running batch whose first runs no device has begun; `environment` is the judge's."""
    room.judge(**environment)
    runner = room.runner()
    graded(room, count)
    runner.end()
    batch_id = planned(room)
    room.regrade_worker()
    room.regrade("start", batch_id)
    wait_for(lambda: runs_of_batch(room), 20)
    return batch_id


def runs_of_batch(room):
    return room.rows(RunRow, RunRow.item_id.is_not(None))


def test_a_cohort_is_run_again(room):
    """New runs, new evidence, new verdicts that stay aside; applied, they are in force and their history says so."""
    room.both()
    ids = graded(room)
    former = room.in_force()
    batch_id = planned(room, "--repeat", "2")
    assert runs_of_batch(room) == []
    room.regrade("start", batch_id)
    room.regrade_worker()
    lines = room.regrade("watch", batch_id, "--json").splitlines()
    assert '"state":"finished"' in lines[-1]
    assert room.in_force() == former
    found = {change.submission_id: change for change in regrades.changes(room.store, batch_id)}
    assert sorted(found) == ids
    for change in found.values():
        assert len(change.repeats) == 2
        assert {change.old.run_id, *(one.run_id for one in change.repeats)} == {
            run["run_id"] for run in room.runs(change.submission_id)
        }
    assert regrades.progress(room.store, batch_id).gpu_used_s > 0
    room.regrade("flakes", batch_id)
    room.regrade("apply", batch_id)
    now = {key: row["verdict_id"] for key, row in room.in_force().items()}
    assert now == {key: change.new.verdict_id for key, change in found.items()}
    assert room.events(ids[0])[-1] == "regraded"


def test_a_spent_budget_pauses_the_batch(room):
    """What has begun is finished and charged; the rest waits for a larger budget."""
    room.both()
    graded(room)
    batch_id = planned(room, "--gpu-hours", "0.00001")
    room.regrade_worker()
    room.regrade("start", batch_id)
    room.await_batch(batch_id, "paused")
    room.await_idle(batch_id)
    progress = regrades.progress(room.store, batch_id)
    assert 1 <= progress.done < COUNT
    assert "the GPU budget is spent" in progress.note
    room.regrade("watch", batch_id, status=4)
    room.regrade("resume", batch_id, status=2)  # it would only be paused again
    room.regrade("resume", batch_id, "--gpu-hours", "1")
    room.await_batch(batch_id, "finished")
    assert regrades.progress(room.store, batch_id).done == COUNT


def test_learners_go_first(room):
    """A batch that waits for the device is overtaken by a learner, although it was there before."""
    # A sweep that looks at a row holds it for an instant, in which a claim passes it by.
    batch_id = waiting_for_a_runner(room, 4, GRADER_SWEEP_S="60")
    assert len(runs_of_batch(room)) <= 2, "few at a time, so that the queue stays short"
    room.post(room.message("live:1", cohort="autumn"))
    wait_for(lambda: room.runs("live:1"), 20)
    room.runner(GRADER_SWEEP_S="60")
    room.one_verdict("live:1")
    room.await_batch(batch_id, "finished")
    began = {run["run_id"]: run["started_at"] for run in room.rows(RunRow)}
    live = room.runs("live:1")[0]["run_id"]
    assert all(began[live] < began[run["run_id"]] for run in runs_of_batch(room))
    assert "live:1" not in {change.submission_id for change in regrades.changes(room.store, batch_id)}


def test_a_pause_takes_runs_back(room):
    """Runs that no device has begun are cancelled, and made anew when the batch goes on."""
    batch_id = waiting_for_a_runner(room)
    room.regrade("pause", batch_id)
    assert {run["state"] for run in runs_of_batch(room)} == {RunState.CANCELLED}
    assert regrades.progress(room.store, batch_id).counts == {ItemState.WAITING: COUNT}
    room.runner()
    room.regrade("resume", batch_id)
    room.await_batch(batch_id, "finished")


def test_a_runner_that_dies_costs_a_try(room):
    """The item's run is taken up again by another runner, and its device time is charged twice."""
    _, first = room.both()
    graded(room, 1)
    batch_id = planned(room)
    room.regrade_worker()
    with no_writes(room, "evidence"):
        room.regrade("start", batch_id)
        writer_waits(room, "evidence")
        first.end(9)
    room.runner()
    room.await_batch(batch_id, "finished")
    (run,) = runs_of_batch(room)
    assert (run["attempts"], run["state"]) == (1, "done")


def test_parked_runs_show_on_their_batch(room):
    """A run of a batch that fails through us is an item that needs attention; trying it again finishes the batch."""
    room.environment["GRADER_MAX_ATTEMPTS"] = "1"
    batch_id = waiting_for_a_runner(room, 1)
    (run,) = runs_of_batch(room)
    artifact = next(path for path in (room.state_dir / "artifacts").rglob("*") if path.is_file())
    hidden = artifact.rename(artifact.with_suffix(".hidden"))
    room.runner()
    room.await_batch(batch_id, "finished")
    room.regrade("watch", batch_id, status=1)
    text = room.regrade("show", batch_id)
    assert "needs attention" in text
    assert run["submission_id"] in text
    hidden.rename(artifact)
    room.grader("retry", run["run_id"])
    room.await_done(batch_id, 1)
    room.await_batch(batch_id, "finished")
