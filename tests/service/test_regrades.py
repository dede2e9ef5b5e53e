"""Re-grades over the real service: runs that are made again, budgets, pauses, and learners who hand in meanwhile."""

import pytest

from grader_service.model.regrade import BatchState, ItemState
from grader_service.store import regrades
from grader_service.store.tables import RunRow, RunState, VerdictRow
from tests.service.faults import no_writes, writer_waits
from tests.service.harness import QUICK
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

COUNT = 3


def graded(service, count=COUNT, source=QUICK):
    """Submissions of one cohort with their verdicts in force."""
    messages = [service.message(f"s:{number}", source, cohort="autumn") for number in range(count)]
    for message in messages:
        service.post(message)
    for message in messages:
        service.one_verdict(message["submission_id"])
    return [message["submission_id"] for message in messages]


def operate(service, *words, status=0):
    """Runs `grader regrade …` as an operator would."""
    worker = service.start("regrade", *words)
    assert worker.process.wait(240) == status, worker.log.read_text(errors="replace")
    return worker.log.read_text(errors="replace")


def planned(service, *words):
    """The id of a batch that runs the cohort again."""
    operate(service, "plan", "--cohort", "autumn", "--reason", "another image", "--level", "run", *words)
    return regrades.batches(service.store)[0].batch_id


def waiting_for_a_runner(service, count=COUNT, **environment):
    """A running batch whose first runs no device has begun; `environment` is the judge's."""
    service.judge(**environment)
    runner = service.runner()
    graded(service, count)
    runner.end()
    batch_id = planned(service)
    service.start("worker", "regrade")
    operate(service, "start", batch_id)
    wait_for(lambda: runs_of_batch(service), 20)
    return batch_id


def state(service, batch_id):
    return regrades.batch(service.store, batch_id).state


def in_force(service):
    return {row["submission_id"]: row["verdict_id"] for row in service.rows(VerdictRow, VerdictRow.current)}


def runs_of_batch(service):
    return service.rows(RunRow, RunRow.item_id.is_not(None))


def test_a_cohort_is_run_again(service):
    """New runs, new evidence, new verdicts that stay aside; applied, they are in force and their history says so."""
    service.both()
    ids = graded(service)
    former = in_force(service)
    batch_id = planned(service, "--repeat", "2")
    assert runs_of_batch(service) == []
    operate(service, "start", batch_id)
    service.start("worker", "regrade")
    lines = operate(service, "watch", batch_id, "--json").splitlines()
    assert '"state":"finished"' in lines[-1]
    assert in_force(service) == former
    found = {change.submission_id: change for change in regrades.changes(service.store, batch_id)}
    assert sorted(found) == ids
    for change in found.values():
        assert len(change.repeats) == 2
        assert {change.old.run_id, *(one.run_id for one in change.repeats)} == {
            run["run_id"] for run in service.runs(change.submission_id)
        }
    assert regrades.progress(service.store, batch_id).gpu_used_s > 0
    operate(service, "flakes", batch_id)
    operate(service, "apply", batch_id)
    assert in_force(service) == {key: change.new.verdict_id for key, change in found.items()}
    assert service.events(ids[0])[-1] == "regraded"


def test_a_spent_budget_pauses_the_batch(service):
    """What has begun is finished and charged; the rest waits for a larger budget."""
    service.both()
    graded(service)
    batch_id = planned(service, "--gpu-hours", "0.00001")
    service.start("worker", "regrade")
    operate(service, "start", batch_id)
    wait_for(lambda: state(service, batch_id) is BatchState.PAUSED, 60)
    wait_for(lambda: not regrades.progress(service.store, batch_id).counts.get(ItemState.WORKING), 60)
    progress = regrades.progress(service.store, batch_id)
    assert 1 <= progress.done < COUNT
    assert "the GPU budget is spent" in progress.note
    operate(service, "watch", batch_id, status=4)
    operate(service, "resume", batch_id, "--gpu-hours", "1")
    wait_for(lambda: state(service, batch_id) is BatchState.FINISHED, 60)
    assert regrades.progress(service.store, batch_id).done == COUNT


def test_learners_go_first(service):
    """A batch that waits for the device is overtaken by a learner, although it was there before."""
    # A sweep that looks at a row holds it for an instant, in which a claim passes it by.
    batch_id = waiting_for_a_runner(service, 4, GRADER_SWEEP_S="60")
    assert len(runs_of_batch(service)) <= 2, "few at a time, so that the queue stays short"
    service.post(service.message("live:1", cohort="autumn"))
    wait_for(lambda: service.runs("live:1"), 20)
    service.runner(GRADER_SWEEP_S="60")
    service.one_verdict("live:1")
    wait_for(lambda: state(service, batch_id) is BatchState.FINISHED, 90)
    began = {run["run_id"]: run["started_at"] for run in service.rows(RunRow)}
    live = service.runs("live:1")[0]["run_id"]
    assert all(began[live] < began[run["run_id"]] for run in runs_of_batch(service))
    assert "live:1" not in {change.submission_id for change in regrades.changes(service.store, batch_id)}


def test_a_pause_takes_runs_back(service):
    """Runs that no device has begun are cancelled, and made anew when the batch goes on."""
    batch_id = waiting_for_a_runner(service)
    operate(service, "pause", batch_id)
    assert {run["state"] for run in runs_of_batch(service)} == {RunState.CANCELLED}
    assert regrades.progress(service.store, batch_id).counts == {ItemState.WAITING: COUNT}
    service.runner()
    operate(service, "resume", batch_id)
    wait_for(lambda: state(service, batch_id) is BatchState.FINISHED, 60)


def test_a_runner_that_dies_costs_a_try(service):
    """The item's run is taken up again by another runner, and its device time is charged twice."""
    _, first = service.both()
    graded(service, 1)
    batch_id = planned(service)
    service.start("worker", "regrade")
    with no_writes(service, "evidence"):
        operate(service, "start", batch_id)
        writer_waits(service, "evidence")
        first.end(9)
    service.runner()
    wait_for(lambda: state(service, batch_id) is BatchState.FINISHED, 90)
    (run,) = runs_of_batch(service)
    assert (run["attempts"], run["state"]) == (1, "done")


def test_parked_runs_show_on_their_batch(service):
    """A run of a batch that fails through us is an item that needs attention; trying it again finishes the batch."""
    service.environment["GRADER_MAX_ATTEMPTS"] = "1"
    batch_id = waiting_for_a_runner(service, 1)
    (run,) = runs_of_batch(service)
    artifact = next(path for path in (service.state_dir / "artifacts").rglob("*") if path.is_file())
    hidden = artifact.rename(artifact.with_suffix(".hidden"))
    service.runner()
    wait_for(lambda: state(service, batch_id) is BatchState.FINISHED, 60)
    operate(service, "watch", batch_id, status=1)
    text = operate(service, "show", batch_id)
    assert "needs attention" in text
    assert run["submission_id"] in text
    hidden.rename(artifact)
    assert service.command("retry", run["run_id"]).returncode == 0
    wait_for(lambda: regrades.progress(service.store, batch_id).done == 1, 60)
    wait_for(lambda: state(service, batch_id) is BatchState.FINISHED, 60)
