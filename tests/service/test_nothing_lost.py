"""Nothing that was accepted is lost, whatever dies and whatever the broker forgets (group A of the fault list)."""

import signal
import threading
import time
from contextlib import ExitStack

import pytest
from kombu.exceptions import OperationalError

from grader_service.queue.chores import announce_waiting
from grader_service.store import acceptance, leases, outbox, results
from grader_service.store.acceptance import Arrival, Repeated
from grader_service.store.outbox import Waiter
from grader_service.store.tables import RunRow, SubmissionRow
from tests.service.faults import explained, frozen, no_writes, writer_waits
from tests.service.harness import Service, served
from tests.services.redis_server import redis_server
from tests.store.factories import LIMITS, PLAN, a_submission, a_verdict, accept
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def settled(service, task_ids):
    """The verdicts of these tasks; each of their submissions has exactly one, in force, and its history is whole."""
    found = [service.result(task_id, 30) for task_id in task_ids]
    for verdict in found:
        assert service.one_verdict(verdict["submission_id"])["verdict_id"] == verdict["verdict_id"]
        explained(service, verdict["submission_id"])
    return found


def in_hand(service):
    """Messages that a consumer has taken and not finished."""
    client = service.redis.client()
    return sum(client.llen(key) for key in client.keys("grader:intake:work:*"))


def gated_and_quick(service, quick=3):
    """One submission that runs until its gate opens, and some that wait behind it; returns id, gate and all tasks."""
    gate, submission_id, task_id = service.gated()
    tasks = [task_id, *(service.post()[1] for _ in range(quick))]
    wait_for(lambda: len(service.rows(RunRow)) >= len(tasks), 20)
    return submission_id, gate, tasks


def lost_wake_up(service, runner):
    """Freezes a runner while a pop of it is pending, and posts what that pop takes; returns the task.

    A pop is pending for a second at most. Where none was when the wake-up came, the runner takes it: it is tried again.
    """
    for _ in range(10):
        runner.send(signal.SIGSTOP)
        run_id, task_id = service.post()
        service.await_state(run_id, "run_queued")
        wait_for(lambda: all(row["published_at"] for row in service.rows(RunRow)), 30)
        time.sleep(0.3)
        if not service.redis.client().llen("grader.run.live"):
            return task_id
        runner.send(signal.SIGCONT)
        settled(service, [task_id])
    raise AssertionError("the runner was never frozen while a pop was pending")


def test_a_judge_that_dies_anywhere_between_message_and_answer_loses_nothing(service):
    """Killed before the commit (A1), before the wake-up (A2), and between the verdict and its answer (B5)."""
    judge = service.judge()
    with no_writes(service, "submission"):
        _, before_commit = service.post()
        writer_waits(service, "submission")
        judge.end(signal.SIGKILL)
    assert service.rows(SubmissionRow) == []
    assert in_hand(service) == 1

    judge = service.judge()
    wait_for(lambda: service.rows(SubmissionRow) and not in_hand(service), 20)
    with ExitStack() as faults:
        with no_writes(service, "submission"):
            submission_id, after_commit = service.post()
            writer_waits(service, "submission")
            faults.enter_context(frozen(service.redis))
        service.await_state(submission_id, "run_queued")
        judge.end(signal.SIGKILL)
    assert in_hand(service) == 1

    judge, _ = service.both()
    settled(service, [before_commit, after_commit])
    wait_for(lambda: "repeated" in service.events(submission_id), 20)  # its message was still in the dead judge's hand

    with ExitStack() as faults:
        with no_writes(service, "verdict"):
            submission_id, after_verdict = service.post()
            writer_waits(service, "verdict")
            faults.enter_context(frozen(service.redis))
        service.one_verdict(submission_id)
        judge.end(signal.SIGKILL)
    assert [row["task_id"] for row in service.undelivered()] == [after_verdict]
    service.judge()
    settled(service, [after_verdict])
    service.app.send_task("grader.judge", args=(service.runs(submission_id)[0]["run_id"],), queue="grader.judge.live")
    _, last = service.post()
    settled(service, [last, after_verdict])
    assert [run["fence"] for run in service.runs(submission_id)] == [2]


def test_what_a_stopped_worker_took_from_the_broker_is_done_by_another(service):
    """A frozen worker's pending pop takes a wake-up out of Redis for good, and a message into a dead hand (A4)."""
    judge, runner = service.both()
    _, warm = service.post()
    settled(service, [warm])
    client = service.redis.client()
    first = lost_wake_up(service, runner)
    assert client.hlen("unacked") == 0, "the broker must have forgotten the wake-up, or this test shows nothing"
    runner.end(signal.SIGKILL)
    judge.send(signal.SIGSTOP)
    second = service.post()[1]
    judge.end(signal.SIGKILL)
    service.both()
    settled(service, [first, second])


def test_a_broker_that_is_away_delays_and_loses_nothing(service):
    """Redis dies with its append-only file and comes back: the run goes on, the rest waits (A3, A7)."""
    service.both()
    running, gate, tasks = gated_and_quick(service)
    service.redis.kill()
    gate.open()
    with pytest.raises(OperationalError):
        service.post()
    service.await_state(running, "judge_queued", timeout_s=20)
    service.redis.start()
    settled(service, tasks)
    assert all(row["attempts"] == 0 for row in service.rows(RunRow))
    assert len(service.rows(SubmissionRow)) == len(tasks)


def test_wake_ups_are_repeated_when_they_are_gone_and_only_then(service):
    """A backlog is not announced over and over (A7), and wake-ups deleted by hand come back (A9)."""
    judge = service.judge()
    tasks = [service.post()[1] for _ in range(5)]
    client = service.redis.client()
    wait_for(lambda: client.llen("grader.run.live") == 5, 20)
    assert [announce_waiting(service.store, service.app, silent_s=0.0) for _ in range(5)] == [0] * 5
    assert client.llen("grader.run.live") == 5
    client.ltrim("grader.run.live", 1, 0)
    # Those that were announced long enough ago; the rest follow when these have been taken.
    wait_for(lambda: client.llen("grader.run.live"), 20)
    assert judge.said("unsafe_redis") == []
    service.runner()
    settled(service, tasks)


def test_a_broker_that_forgets_everything_loses_nothing(service):
    """FLUSHALL with runs in every hand (A5), bindings deleted (A8), and memory at its limit (A10)."""
    service.both()
    client = service.redis.client()
    _, gate, tasks = gated_and_quick(service, quick=5)
    client.flushall()
    gate.open()
    settled(service, tasks)

    bindings = client.keys("_kombu.binding.*")
    assert not bindings or client.delete(*bindings)
    _, unbound = service.post()
    settled(service, [unbound])

    with no_writes(service, "verdict"):
        submission_id, full = service.post(service.message(reply_to={"queue": "inbox", "task": "lab.ready"}))
        writer_waits(service, "verdict")
        client.config_set("maxmemory", 1)
    service.one_verdict(submission_id)
    wait_for(lambda: "maxmemory" in (service.undelivered()[0]["last_error"] or ""), 10)
    with pytest.raises(OperationalError, match="maxmemory"):
        service.post()
    client.config_set("maxmemory", 0)
    settled(service, [full])
    wait_for(lambda: not service.undelivered(), 20)
    assert client.llen("inbox") == 1
    settled(service, [service.post()[1]])
    assert all(worker.process.poll() is None for worker in service.workers)


def test_a_broker_without_a_file_may_die_too(postgres_url, tmp_path):
    """Redis that keeps nothing dies with wake-ups in it: runs are announced again (A6), operators were warned (G1)."""
    with (
        redis_server("--appendonly", "no", "--maxmemory-policy", "allkeys-lru") as redis,
        served(redis, postgres_url, tmp_path, kind=Service) as service,
    ):
        workers = service.both()
        _, gate, tasks = gated_and_quick(service)
        for worker in workers:
            worker.send(signal.SIGSTOP)  # or they might announce anew before anybody has looked
        redis.kill()
        redis.start()
        assert redis.client().keys("grader.run.*") == []
        for worker in workers:
            worker.send(signal.SIGCONT)
        gate.open()
        settled(service, tasks)
        for worker in workers:
            problems = " ".join(line["problem"] for line in worker.said("unsafe_redis"))
            assert "append-only" in problems
            assert "allkeys-lru" in problems


def test_who_asks_while_the_verdict_is_written_is_answered(service):
    """A repetition and a verdict in the same instant see one another, whichever comes first."""
    store, submission = service.store, a_submission()
    accept(store, submission, waiter=Waiter("first"))
    assert results.store_evidence(store, leases.claim(store, "run", "r", 60), "evidence", b"{}", {})
    claim = leases.claim(store, "judge", "j", 60)
    judging = threading.Thread(target=results.store_verdict, args=(store, claim, a_verdict()))
    with store.transaction() as connection:
        asked = acceptance._accept_all(
            connection, [Arrival(submission, PLAN, "live", Waiter("second"))], LIMITS, "test"
        )
        assert asked == [Repeated(claim.run_id, None)]
        judging.start()
        judging.join(0.5)
        assert judging.is_alive()
    judging.join(10)
    assert sorted(message.task_id for message in outbox.due(store)) == ["first", "second"]
