"""Broker and database that are cut off, reset or away while workers work: everything comes to its one verdict."""

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from grader_service.queue.app import JUDGE_QUEUES, RUN_QUEUES, make_app
from grader_service.queue.tasks import register_judge, register_run
from grader_service.queue.wake_ups import announce
from grader_service.settings import Settings
from grader_service.store import workers
from grader_service.store.sweep import WakeUp
from tests.services.stream_proxy import StreamProxy
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
def broker(service):
    """A proxy before Redis, through which every worker goes; nobody waits for the end of a lease."""
    made = StreamProxy(("127.0.0.1", service.redis.port))
    service.environment["GRADER_REDIS_URL"] = service.redis.url.replace(f":{service.redis.port}/", f":{made.port}/")
    service.environment["GRADER_LEASE_S"] = "60"
    yield made
    made.close()


def test_a_broker_whose_connections_break_every_second(service, broker):
    """(C13) Workers go on by themselves, and each submission that was posted meanwhile has its one verdict."""
    workers = service.both()
    first, _ = service.post()
    service.one_verdict(first)
    posted, broken = [], 0
    for _ in range(10):
        posted.append(service.post())
        broken += broker.reset()
        time.sleep(1)
    assert broken >= 10
    for submission_id, task_id in posted:
        verdict = service.one_verdict(submission_id)
        assert service.result(task_id, 30)["verdict_id"] == verdict["verdict_id"]
        assert {(run["attempts"], run["fence"]) for run in service.runs(submission_id)} == {(0, 2)}
    assert wait_for(lambda: not service.undelivered(), 30)
    assert [worker.process.poll() for worker in workers] == [None, None]


def test_a_broker_behind_connections_that_went_silent(service, broker):
    """(C14) No error ever comes from a half-open connection; within a minute the workers notice and go on."""
    workers = service.both()
    first, _ = service.post()
    service.one_verdict(first)
    assert broker.silence() >= 3
    later, task_id = service.post()
    verdict = service.one_verdict(later, 60)
    assert service.result(task_id, 60)["verdict_id"] == verdict["verdict_id"]
    assert [worker.process.poll() for worker in workers] == [None, None]


def test_a_result_is_kept_until_the_database_is_back(service, database):
    """(C15) Away while the run ends: the result waits in the worker, and nothing is executed a second time."""
    service.environment["GRADER_LEASE_S"] = "120"
    _, worker = service.both()
    gate, submission_id, _ = service.gated()
    database.go_away()
    gate.open()
    late, _ = service.post()
    wait_for(lambda: worker.said("result_waits_for_the_database"), 30)
    assert service.verdicts(submission_id) == []
    time.sleep(2)
    database.come_back()
    service.one_verdict(submission_id)
    service.one_verdict(late)
    for one in (submission_id, late):
        (run,) = service.runs(one)
        assert (run["attempts"], run["fence"]) == (0, 2)  # one run and the judging
    assert service.events(submission_id).count("run_claimed") == 1


def test_a_worker_stops_although_the_database_is_away(service, database):
    """(C4, C15) It cannot give its run back; the lease ends by itself, and another worker executes it."""
    service.environment["GRADER_LEASE_S"] = "4"
    service.judge()
    worker = service.runner(GRADER_SOFT_SHUTDOWN_S="0")
    gate, submission_id, _ = service.gated()
    database.go_away()
    assert worker.end(signal.SIGTERM) == 0
    gate.open()
    assert service.state(submission_id) == "running"
    assert list((service.state_dir / "runs").glob("*")) == []
    database.come_back()
    service.runner()
    service.one_verdict(submission_id)
    (run,) = service.runs(submission_id)
    assert (run["attempts"], run["fence"]) == (1, 3)


def test_a_wake_up_that_cannot_be_acknowledged_keeps_no_place(redis, tmp_path):
    """(C12) Redis is gone when the work in hand ends: the only place is free again, or the worker would be deaf."""
    app = make_app(Settings(redis_url=redis.url, state_dir=tmp_path))
    assert announce(app, WakeUp("a-run", "run", "live"))
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        channel.basic_qos(0, 1, False)
        taken = []
        channel.basic_consume("grader.run.live", no_ack=False, callback=taken.append, consumer_tag="t")
        wait_for(lambda: taken or connection.drain_events(timeout=5), 5)
        assert not channel.qos.can_consume()
        redis.kill()
        with pytest.raises(connection.connection_errors):
            taken[0].ack()
        assert channel.qos.can_consume()
        redis.start()


def test_a_worker_that_takes_no_wake_ups_ends_itself(service):
    """(C12) Whatever made it deaf: it ends with a failure, which its supervisor sees, and another one goes on."""
    service.judge()
    deaf = service.start(str(Path(__file__).with_name("deaf_worker.py")), program=sys.executable)
    first, _ = service.post()
    service.one_verdict(first)
    later, _ = service.post()
    assert deaf.process.wait(40) == 1
    assert deaf.said("wake_ups_not_taken")
    assert workers.RUN in {one.role for one in workers.workers(service.store)}  # missed, where nobody starts another
    assert service.state(later) == "run_queued"
    service.runner()
    service.one_verdict(later)


@pytest.mark.parametrize("purpose", ["preflight", "live", "regrade"])
@pytest.mark.parametrize(
    ("stage", "register", "queues"), [("run", register_run, RUN_QUEUES), ("judge", register_judge, JUDGE_QUEUES)]
)
def test_every_wake_up_has_a_worker_that_knows_it(redis, tmp_path, stage, register, queues, purpose):
    """(C16) Names and queues of wake-ups are those that the workers register and consume."""
    app = make_app(Settings(redis_url=redis.url, state_dir=tmp_path))
    register(app, lambda *_: None)
    assert announce(app, WakeUp("a-run", stage, purpose))
    (raw,) = [raw for queue in queues for raw in redis.client().lrange(queue, 0, -1)]
    assert json.loads(raw)["headers"]["task"] in app.tasks
