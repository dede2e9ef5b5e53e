"""At the limit of its memory Redis moves and adds nothing: what fills it drains all the same, and nothing is lost."""

import json
import threading
from contextlib import contextmanager

import pytest
from redis.exceptions import OutOfMemoryError
from sqlalchemy import select

from grader_service.errors import InfrastructureError
from grader_service.queue.app import make_answers_app
from grader_service.queue.intake_loop import IntakeLoop
from grader_service.queue.outbox_relay import OutboxRelay
from grader_service.queue.redis_check import fullness
from grader_service.retry_policy import RetryPolicy
from grader_service.settings import Settings
from grader_service.store import outbox
from grader_service.store.clock import db_now
from grader_service.store.outbox import Waiter
from tests.service.faults import body, envelope
from tests.service.harness import QUICK, Service, served
from tests.services.redis_server import redis_server
from tests.store.factories import migrated
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PADDING = f"{QUICK}#{'x' * 300_000}\n"
"""A submission of some weight."""


def hand_in(client, queue, *task_ids):
    client.lpush(queue, *(json.dumps(envelope(body(submission={}), task_id=task_id)) for task_id in task_ids))


@contextmanager
def full(server):
    """Nothing is added until the block ends, which is seen first."""
    with server.full():
        with pytest.raises(OutOfMemoryError):
            server.client().set("more", 1)
        yield


class Handlers:
    """What an intake loop was asked to do."""

    def __init__(self, client, **options):
        self.handled, self.refused, self.kept = [], [], []
        self.unready = set()
        self.loop = IntakeLoop(client, self._handle, self._refuse, self._keep, **options)

    def _handle(self, messages, purpose):
        if self.unready & {message.task_id for message in messages}:
            raise InfrastructureError("the source is away")
        self.handled.extend((message.task_id, purpose) for message in messages)
        return [True] * len(messages)

    def _refuse(self, problem):
        self.refused.append(problem.task_id)

    def _keep(self, raw, *_):
        self.kept.append(raw)


class TestIntake:
    """Where messages cannot be moved, they are handled where they lie."""

    def test_queues_are_emptied_in_their_order(self, redis):
        """Live before regrade, oldest first; one that nobody can read is kept."""
        client, handlers = redis.client(), Handlers(redis.client())
        hand_in(client, "regrade", "r0", "r1")
        hand_in(client, "live", "l0", "l1")
        client.lpush("live", b"unreadable")
        with full(redis):
            assert [handlers.loop.take() for _ in range(3)] == [True, True, False]
            assert client.keys("*") == []
        assert handlers.handled == [("l0", "live"), ("l1", "live"), ("r0", "regrade"), ("r1", "regrade")]
        assert (handlers.kept, handlers.refused) == ([b"unreadable"], [None])

    def test_what_consumers_had_in_hand_is_handled(self, redis):
        """One's own, and those of the dead; what is in a living one's hands stays there."""
        client, handlers = redis.client(), Handlers(redis.client(), name="me")
        for name in ("me", "dead", "living"):
            hand_in(client, f"grader:intake:work:{name}:live", name)
        client.set("grader:intake:alive:living", 1)
        with full(redis):
            assert [handlers.loop.take() for _ in range(3)] == [True, True, False]
        assert sorted(handlers.handled) == [("dead", "live"), ("me", "live")]
        assert client.keys("grader:intake:work:*") == [b"grader:intake:work:living:live"]

    def test_one_that_has_to_wait_holds_up_nobody(self, redis):
        """It stays where it is, and is handled when our side is ready."""
        client, handlers = redis.client(), Handlers(redis.client())
        waiting = [f"w{number}" for number in range(40)]  # more than are looked at in one go
        hand_in(client, "live", *waiting, "ready")
        handlers.unready = set(waiting)
        with full(redis):
            assert [handlers.loop.take(), handlers.loop.take()] == [True, False]
            assert (handlers.handled, client.llen("live")) == ([("ready", "live")], 40)
            handlers.unready = set()
            assert [handlers.loop.take() for _ in range(3)] == [True, True, False]
        assert [task_id for task_id, _ in handlers.handled[1:]] == waiting

    def test_what_could_not_be_moved_back_is_not_lost(self, redis, monkeypatch):
        """The limit is reached while a message is in hand for which our side is not ready."""
        monkeypatch.setattr("grader_service.queue.intake_loop.MESSAGES", RetryPolicy(max_attempts=1))
        client, handlers = redis.client(), Handlers(redis.client())
        hand_in(client, "live", "unready")
        handlers.unready = {"unready"}
        handle = handlers._handle

        def filling(*what):
            client.config_set("maxmemory", 100_000)
            return handle(*what)

        handlers.loop._handle = filling
        assert handlers.loop.take() is False
        handlers.unready = set()
        assert handlers.loop.take() is True
        assert (handlers.handled, client.keys("grader:intake:work:*")) == ([("unready", "live")], [])

    def test_the_loop_goes_on_and_returns_to_moving(self, redis, monkeypatch):
        """It does not end; its sign of life is kept, and afterwards all is as before."""
        monkeypatch.setattr("grader_service.queue.intake_loop._BLOCK_S", 0.05)
        client, handlers = redis.client(), Handlers(redis.client(), name="me", alive_s=1.0)
        thread = threading.Thread(target=handlers.loop.run)
        thread.start()
        try:
            wait_for(lambda: client.exists("grader:intake:alive:me"), 5)
            hand_in(client, "live", "before")
            wait_for(lambda: len(handlers.handled) == 1, 5)
            with full(redis):
                threading.Event().wait(1.5)  # longer than a sign of life lasts by itself
                assert client.exists("grader:intake:alive:me")
            hand_in(client, "live", "after")
            wait_for(lambda: len(handlers.handled) == 2, 5)
        finally:
            handlers.loop.stop()
            thread.join(10)


@pytest.fixture
def results():
    """A Redis for answers."""
    with redis_server() as server:
        yield server


@pytest.fixture
def service(redis, results, postgres_url, tmp_path):
    """A service whose answers have a Redis of their own."""
    address = {"GRADER_RESULT_URL": results.url}
    with served(redis, postgres_url, tmp_path, kind=Service, **address) as made:
        made.answers = make_answers_app(Settings(redis_url=redis.url, result_url=results.url))
        yield made


class TestService:
    """Workers as they are started, with a platform that posts more than there is room for."""

    def test_a_full_broker_drains_itself(self, service):
        """Posted until Redis took no more, without a judge: each submission has one verdict, and posting goes on."""
        client = service.redis.client()
        client.config_set("maxmemory", client.info("memory")["used_memory"] + (6 << 20))
        posted = {}
        with pytest.raises(Exception, match="maxmemory"):
            while len(posted) < 100:
                message = service.message(source=PADDING)
                posted[message["submission_id"]] = service.post(message)[1]
        assert len(posted) > 3
        client.config_set("maxmemory", client.info("memory")["used_memory"] - 200_000)
        judge, _ = service.both()
        for task_id in posted.values():
            assert service.result(task_id)["status"] == "passed"
        assert judge.said("intake_in_place")
        assert [len(service.verdicts(submission_id)) for submission_id in posted] == [1] * len(posted)
        assert [run["attempts"] for submission_id in posted for run in service.runs(submission_id)] == [0] * len(posted)
        assert service.result(service.post()[1])["status"] == "passed"
        assert client.llen("live") == 0

    def test_full_results_keep_nobody_from_being_graded(self, service, results):
        """Answers wait in the database, and come when there is room; the broker notices nothing of it."""
        service.both()
        client = results.client()
        with full(results):
            submission_id, task_id = service.post()
            service.one_verdict(submission_id)
            wait_for(lambda: any("maxmemory" in (row["last_error"] or "") for row in service.undelivered()), 20)
            assert client.keys("celery-task-meta-*") == []
            memory = "select memory from worker where role = 'judge'"

            def told():
                with service.store.transaction() as connection:
                    return connection.exec_driver_sql(memory).scalar_one().get("results", 0) > 1

            wait_for(told, 20)
        assert service.result(task_id)["submission_id"] == submission_id
        wait_for(lambda: not service.undelivered(), 20)
        assert service.redis.client().keys("celery-task-meta-*") == []

    def test_runners_need_no_results(self, service, results):
        """Only judges send answers; without their Redis runs are executed, and the judge says what is missing."""
        judge = service.judge()
        runner = service.runner(GRADER_RESULT_URL="redis://127.0.0.1:1/0")
        submission_id, task_id = service.post()
        service.one_verdict(submission_id)
        service.result(task_id)
        results.kill()
        other, _ = service.post()
        service.one_verdict(other)
        wait_for(lambda: "the Redis for results does not answer" in str(judge.said("not_ready")), 20)
        assert runner.said("not_ready") == []
        results.start()
        wait_for(lambda: not service.undelivered(), 30)


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")  # by Celery
class TestReplies:
    """Queues that platforms named, and that nobody reads."""

    @pytest.fixture
    def store(self, tmp_path):
        """Five answers, each for a task and a queue."""
        with migrated(f"sqlite:///{tmp_path / 'grader.db'}") as made:
            for number in range(5):
                document = json.dumps({"verdict_id": f"v{number}"})
                with made.transaction() as connection:
                    outbox.enqueue(connection, None, Waiter(f"task-{number}", "inbox", "lab.ready"), document)
            yield made

    def test_the_database_keeps_what_nobody_reads(self, redis, store, monkeypatch):
        """Two lie in the queue, three wait, results are there at once; once it is read, the others come, each once."""
        monkeypatch.setattr(outbox, "_UNREAD_S", 0.0)
        client, relay = redis.client(), OutboxRelay(store, make_answers_app(Settings(redis_url=redis.url)), 2)
        assert relay.deliver_due() == 2
        assert client.llen("inbox") == 2
        assert len(client.keys("celery-task-meta-*")) == 5
        (unread, *_), client_results = outbox.due(store), client.keys("celery-task-meta-*")
        assert unread.task_id is None
        client.delete(*client_results)
        read = client.rpop("inbox", 2)
        with store.transaction() as connection:
            connection.exec_driver_sql("update outbox set not_before = 0")
        assert relay.deliver_due() == 2
        read += client.rpop("inbox", 9)
        assert relay.deliver_due() == 1
        read += client.rpop("inbox", 9)
        ids = [json.loads(raw)["headers"]["id"] for raw in read]
        assert ids == [f"verdict-v{number}" for number in range(5)]
        assert client.keys("celery-task-meta-*") == []  # stored once: a platform that had read one gets no other
        assert relay.deliver_due() == 0

    def test_an_unread_queue_holds_up_no_other(self, redis, store):
        """Answers to other queues are sent, and what waits says why."""
        client, relay = redis.client(), OutboxRelay(store, make_answers_app(Settings(redis_url=redis.url)), 2)
        with store.transaction() as connection:
            outbox.enqueue(connection, None, Waiter("last", "other", "lab.ready"), json.dumps({"verdict_id": "w"}))
        assert relay.deliver_due() == 3
        assert client.llen("other") == 1
        with store.transaction() as connection:
            told = connection.exec_driver_sql("select last_error from outbox where delivered_at is null").scalars()
            assert set(told) == {"2 answers lie unread in the queue inbox"}

    def test_thousands_for_it_come_before_nobody(self, redis, store):
        """As many as wait, one round finds out for all of them, and the next ones are sent to whoever reads."""
        relay = OutboxRelay(store, make_answers_app(Settings(redis_url=redis.url)), 2)
        assert relay.deliver_due() == 2
        with store.transaction() as connection:
            for number in range(1000):
                document = json.dumps({"verdict_id": f"u{number}"})
                outbox.enqueue(connection, None, Waiter(None, "inbox", "lab.ready"), document)
            outbox.enqueue(connection, None, Waiter("last", "other", "lab.ready"), json.dumps({"verdict_id": "w"}))
        assert relay.deliver_all(limit=20) == 1
        assert redis.client().llen("other") == 1
        assert outbox.due(store) == []

    def test_a_row_that_cannot_be_sent_holds_up_no_other(self, redis, store):
        """It stays, with the reason, and is tried again with growing patience."""
        with store.transaction() as connection:
            connection.exec_driver_sql("update outbox set document = 'no JSON' where id = 1")
        relay = OutboxRelay(store, make_answers_app(Settings(redis_url=redis.url)), 100)
        for attempt, sent in enumerate((4, 0, 0), 1):
            with store.transaction() as connection:
                since = connection.scalar(select(db_now()))
            assert relay.deliver_due() == sent
            # As if it had failed an hour later: however slow this machine is, it is not due yet.
            row = self.held(store, put_off_s=3600.0)
            assert row[:2] == (1, attempt)
            assert row[2].startswith("JSONDecodeError: Expecting value")
            assert row[3] - since >= 2 ** (attempt - 1), "seconds that it is left alone"
            assert relay.deliver_all() == 0
            assert self.held(store, put_off_s=-1e9)[1] == attempt

    @staticmethod
    def held(store, *, put_off_s):
        """Id, attempts, error and due time of the one answer that is left, which is due so much later from then on."""
        with store.transaction() as connection:
            found = connection.exec_driver_sql(
                "select id, attempts, last_error, not_before from outbox where delivered_at is null"
            ).one()
            connection.exec_driver_sql(
                "update outbox set not_before = not_before + ? where delivered_at is null", (put_off_s,)
            )
        return tuple(found)


def test_how_full_a_redis_is(redis, results):
    """Of its limit; one without a limit, or that does not answer, says nothing."""
    servers = {"broker": redis.client(), "results": results.client()}
    assert fullness(servers) == {}
    servers["broker"].config_set("maxmemory", 100 << 20)
    servers["results"].config_set("maxmemory", 100_000)
    found = fullness(servers)
    assert 0 < found["broker"] < 0.1
    assert found["results"] > 1
    results.kill()
    assert fullness(servers).keys() == {"broker"}
