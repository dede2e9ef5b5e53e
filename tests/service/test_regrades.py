"""Re-grades over the real service: runs that are made again, budgets, pauses, and learners who hand in meanwhile."""

import pytest

from grader_service.model.regrade import ItemState
from grader_service.store import regrades
from grader_service.store.tables import RunRow, RunState
from tests.regrade.conftest import OperatedService
from tests.service.faults import no_writes, writer_waits
from tests.service.harness import served
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

COUNT = 3


@pytest.fixture
def operated(redis, postgres_url, tmp_path):
    """A service without workers, and an operator."""
    with served(redis, postgres_url, tmp_path, kind=OperatedService) as made:
        yield made


def graded(operated, count=COUNT):
    """Submissions of one cohort with their verdicts in force."""
    ids = [f"s:{number}" for number in range(count)]
    for submission_id in ids:
        operated.post(operated.message(submission_id, cohort="autumn"))
    for submission_id in ids:
        operated.one_verdict(submission_id)
    return ids


def planned(operated, *words):
    """The id of a batch that runs the cohort again."""
    return operated.plan("--level", "run", *words)["batch_id"]


def waiting_for_a_runner(operated, count=COUNT, **environment):
    """A running batch whose first runs no device has begun; `environment` is the judge's."""
    operated.judge(**environment)
    runner = operated.runner()
    graded(operated, count)
    runner.end()
    batch_id = planned(operated)
    operated.regrade_worker()
    operated.regrade("start", batch_id)
    wait_for(lambda: runs_of_batch(operated), 20)
    return batch_id


def runs_of_batch(operated):
    return operated.rows(RunRow, RunRow.item_id.is_not(None))


def test_a_cohort_is_run_again(operated):
    """New runs, new evidence, new verdicts that are staged; applied, they are in force and their history says so."""
    operated.both()
    ids = graded(operated)
    former = operated.in_force()
    batch_id = planned(operated, "--repeat", "2")
    assert runs_of_batch(operated) == []
    operated.regrade("start", batch_id)
    operated.regrade_worker()
    lines = operated.regrade("watch", batch_id, "--json").splitlines()
    assert '"state":"finished"' in lines[-1]
    assert operated.in_force() == former
    found = {change.submission_id: change for change in regrades.changes(operated.store, batch_id)}
    assert sorted(found) == ids
    for change in found.values():
        assert len(change.repeats) == 2
        assert {change.old.run_id, *(one.run_id for one in change.repeats)} == {
            run["run_id"] for run in operated.runs(change.submission_id)
        }
    assert regrades.progress(operated.store, batch_id).gpu_used_s > 0
    operated.regrade("flakes", batch_id)
    operated.regrade("apply", batch_id)
    now = {key: row["verdict_id"] for key, row in operated.in_force().items()}
    assert now == {key: change.new.verdict_id for key, change in found.items()}
    assert operated.events(ids[0])[-1] == "regraded"


def test_a_spent_budget_pauses_the_batch(operated):
    """What has begun is finished and charged; the rest waits for a larger budget."""
    operated.both()
    graded(operated)
    batch_id = planned(operated, "--gpu-hours", "0.00001")
    operated.regrade_worker()
    operated.regrade("start", batch_id)
    operated.await_batch(batch_id, "paused")
    operated.await_idle(batch_id)
    progress = regrades.progress(operated.store, batch_id)
    assert 1 <= progress.done < COUNT
    assert "the GPU budget is spent" in progress.note
    operated.regrade("watch", batch_id, status=4)
    operated.regrade("resume", batch_id, status=2)  # it would only be paused again
    operated.regrade("resume", batch_id, "--gpu-hours", "1")
    operated.await_batch(batch_id, "finished")
    assert regrades.progress(operated.store, batch_id).done == COUNT


def test_learners_go_first(operated):
    """A batch that waits for the device is overtaken by a learner, although it was there before."""
    # A sweep that looks at a row holds it for an instant, in which a claim passes it by.
    batch_id = waiting_for_a_runner(operated, 4, GRADER_SWEEP_S="60")
    assert len(runs_of_batch(operated)) <= 2, "few at a time, so that the queue stays short"
    operated.post(operated.message("live:1", cohort="autumn"))
    wait_for(lambda: operated.runs("live:1"), 20)
    operated.runner(GRADER_SWEEP_S="60")
    operated.one_verdict("live:1")
    operated.await_batch(batch_id, "finished")
    began = {run["run_id"]: run["started_at"] for run in operated.rows(RunRow)}
    live = operated.runs("live:1")[0]["run_id"]
    assert all(began[live] < began[run["run_id"]] for run in runs_of_batch(operated))
    assert "live:1" not in {change.submission_id for change in regrades.changes(operated.store, batch_id)}


def test_a_pause_takes_runs_back(operated):
    """Runs that no device has begun are cancelled, and made anew when the batch goes on."""
    batch_id = waiting_for_a_runner(operated)
    operated.regrade("pause", batch_id)
    assert {run["state"] for run in runs_of_batch(operated)} == {RunState.CANCELLED}
    assert regrades.progress(operated.store, batch_id).counts == {ItemState.WAITING: COUNT}
    operated.runner()
    operated.regrade("resume", batch_id)
    operated.await_batch(batch_id, "finished")


def test_a_runner_that_dies_costs_a_try(operated):
    """The item's run is taken up again by another runner, and its device time is charged twice."""
    _, first = operated.both()
    graded(operated, 1)
    batch_id = planned(operated)
    operated.regrade_worker()
    with no_writes(operated, "evidence"):
        operated.regrade("start", batch_id)
        writer_waits(operated, "evidence")
        first.end(9)
    operated.runner()
    operated.await_batch(batch_id, "finished")
    (run,) = runs_of_batch(operated)
    assert (run["attempts"], run["state"]) == (1, "done")


def test_dead_lettered_runs_show_on_their_batch(operated):
    """A run of a batch that fails through us is an item that needs attention; trying it again finishes the batch."""
    operated.environment["GRADER_MAX_ATTEMPTS"] = "1"
    batch_id = waiting_for_a_runner(operated, 1)
    (run,) = runs_of_batch(operated)
    artifact = next(path for path in (operated.state_dir / "artifacts").rglob("*") if path.is_file())
    hidden = artifact.rename(artifact.with_suffix(".hidden"))
    operated.runner()
    operated.await_batch(batch_id, "finished")
    operated.regrade("watch", batch_id, status=1)
    text = operated.regrade("show", batch_id)
    assert "needs attention" in text
    assert run["submission_id"] in text
    hidden.rename(artifact)
    operated.grader("retry", run["run_id"])
    operated.await_done(batch_id, 1)
    operated.await_batch(batch_id, "finished")
