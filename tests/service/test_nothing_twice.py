"""Nothing counts twice: one run at a time, one verdict in force, however often and by whomever (group B)."""

import os
import signal

import pytest

from grader_service.queue.chores import announce_waiting
from grader_service.queue.outbox_relay import OutboxRelay
from grader_service.retry_policy import RetryPolicy
from grader_service.store.outbox import due
from grader_service.store.sweep import expire_leases, to_announce
from grader_service.store.tables import EventRow, OutboxRow, RunRow
from tests.service.faults import explained, no_writes, writer_waits
from tests.service.harness import SLOW
from tests.store.threads import at_once
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SHIFTED = """
import time
_time = time.time
time.time = lambda: _time() + {shift}
open(__file__ + ".used", "a").close()
"""


def test_a_message_that_comes_five_times_is_one_run(service):
    """At once (B8) and again while it runs (B1), with wake-ups repeated beyond measure (B2): claimed once, judged once.

    The run takes longer than its lease, which is renewed (B3); the runner's clock is two hours fast and the judge's two
    hours slow, which the leases do not notice (B9).
    """
    for role, shift in (("judge", -7200), ("runner", 7200)):
        folder = service.logs / role
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SHIFTED.format(shift=shift))
        getattr(service, role)(PYTHONPATH=str(folder))
    service.runner(slot=1)
    wait_for(lambda: len(list(service.logs.glob("*/*.used"))) == 2, 20)
    message = service.message(source=SLOW.format(seconds=7))
    tasks = [task_id for _, task_id in at_once(5, lambda number: service.post(message, task_id=f"double-{number}"))]
    submission_id = message["submission_id"]
    service.await_state(submission_id, "running", timeout_s=20)
    run_id = service.runs(submission_id)[0]["run_id"]
    for _ in range(5):
        service.app.send_task("grader.run", args=(run_id,), queue="grader.run.live")
        service.app.send_task("grader.judge", args=(run_id,), queue="grader.judge.live")
    service.post(message, task_id="double-0")
    other = {**message, "submission_id": f"{submission_id}:2", "learner": "somebody-else"}
    _, task_id = service.post(other)
    verdicts = [service.result(task) for task in tasks]
    assert all(verdict == verdicts[0] for verdict in verdicts)
    assert service.one_verdict(submission_id) == verdicts[0]
    events = explained(service, submission_id)
    assert [events.count(kind) for kind in ("accepted", "repeated", "run_claimed", "judge_claimed")] == [1, 5, 1, 1]
    assert len(service.rows(OutboxRow, OutboxRow.task_id.in_(tasks))) == 5
    assert service.result(task_id)["verdict_id"] != verdicts[0]["verdict_id"]
    run = service.runs(submission_id)[0]
    assert run["finished_at"] - run["created_at"] < 3600
    assert service.rows(EventRow, EventRow.kind.in_(("failed_by_us", "fenced_off"))) == []


def test_a_runner_that_wakes_up_late_is_fenced_off(service):
    """Stopped beyond its lease while another grades (B4), or killed between result and commit (B6): one verdict."""
    _, sleeper = service.both()
    gate, submission_id, task_id = service.gated()
    pids = sleeper.pid, sleeper.child()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    gate.open()
    second = service.runner(slot=1)
    verdict = service.result(task_id)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: sleeper.said("lease_lost") or "fenced_off" in service.events(submission_id), 20)
    assert service.one_verdict(submission_id) == verdict
    events = explained(service, submission_id)
    assert [events.count(kind) for kind in ("run_claimed", "failed_by_us", "run_done", "verdict")] == [2, 1, 1, 1]
    assert service.runs(submission_id)[0]["attempts"] == 1
    wait_for(lambda: not list((service.state_dir / "runs").glob("*")), 20)

    second.end()
    with no_writes(service, "evidence"):
        submission_id, task_id = service.post()
        writer_waits(service, "evidence")
        sleeper.end(signal.SIGKILL)
    service.runner()
    assert service.result(task_id)["status"] == "passed"
    service.one_verdict(submission_id)
    assert explained(service, submission_id).count("run_done") == 1
    assert service.runs(submission_id)[0]["attempts"] == 1


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")  # Celery's own, in this process
def test_sweepers_at_once_do_everything_once(service):
    """Eight of them find twenty waiting runs, ten dead workers and twenty answers (B7)."""
    judge = service.judge()
    tasks = [service.post()[1] for _ in range(20)]
    wait_for(lambda: len(service.rows(RunRow)) == 20, 20)
    judge.end(signal.SIGKILL)
    store, client = service.store, service.redis.client()
    client.delete("grader.run.live")
    with store.transaction() as connection:
        connection.exec_driver_sql("update run set published_at = published_at - 3600")
    rounds = at_once(8, lambda _: to_announce(store, silent_s=600.0))
    assert sorted(wake_up.run_id for due in rounds for wake_up in due) == sorted(
        row["run_id"] for row in service.rows(RunRow)
    )

    with store.transaction() as connection:
        connection.exec_driver_sql(
            "update run set state = 'running', fence = 1, lease_until = 0, lease_owner = 'dead' where run_id in "
            "(select run_id from run order by run_id limit 10)"
        )
    counts = at_once(8, lambda _: expire_leases(store, RetryPolicy(max_attempts=3, delay_s=0.0)))
    assert sum(counts) == 10
    assert sorted(row["attempts"] for row in service.rows(RunRow)) == [0] * 10 + [1] * 10
    assert sum(at_once(8, lambda _: announce_waiting(store, service.app))) == 10
    assert client.llen("grader.run.live") == 10

    with store.transaction() as connection:
        connection.exec_driver_sql(
            "insert into outbox (document, task_id, reply_queue, reply_task, attempts, not_before) "
            "select '{\"verdict_id\": \"v\"}', task_id, 'inbox', 'lab.ready', 0, 0 from waiter"
        )
    assert sum(at_once(8, lambda _: OutboxRelay(store, service.answers, 2000).deliver_due())) == 20
    assert client.llen("inbox") == 20
    assert due(store) == []
    assert {service.result(task_id, 5)["verdict_id"] for task_id in tasks} == {"v"}
