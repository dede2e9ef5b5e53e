"""Platforms that ask are told how far a run is: seldom, briefly, by judges, and never at the run's expense."""

import base64
import json
import time
from dataclasses import replace

import pytest

from grader_service.model.progress import MAX_BYTES, ProgressEvent
from grader_service.queue.app import make_answers_app
from grader_service.queue.progress import KEY, ProgressPost, ProgressRelay
from grader_service.run.progress import Silent
from grader_service.service.message import Malformed, parse_message
from grader_service.service.progress_events import EVERY_S, MOST, RunEvents, events_of
from grader_service.settings import Settings
from grader_service.store import leases
from grader_service.store.engine import Store
from tests.hand_clock import HandClock
from tests.service.harness import QUICK, a_message
from tests.services.redis_server import redis_server
from tests.waiting import wait_for

TO = {"queue": "lab-platform", "task": "lab.progress"}
PRINTING = f"import time\nfor number in range(12):\n    print('step', number)\n    time.sleep(1)\n{QUICK}"


@pytest.fixture
def lease(local):
    """The lease of a run whose platform asked."""
    local.submit(submission_id="p:1", progress_to=TO)
    return leases.claim(local.store, "run", "host/cpu/1", 60)


@pytest.fixture
def relay(local, redis):
    """What a judge does with events; eight messages may lie in a queue."""
    return ProgressRelay(redis.client(), make_answers_app(Settings(redis_url=redis.url)), local.store, 8)


def an_event(lease, **changes):
    """What a runner says of that run, as bytes."""
    said = []
    RunEvents(lease, said.append).stage("running", key="learner", limit_s=900.0)
    return said[0].model_copy(update=changes).model_dump_json().encode()


def sent(redis, queue="lab-platform"):
    """Tasks and events in a platform's queue, oldest first."""
    messages = [json.loads(raw) for raw in redis.client().lrange(queue, 0, -1)[::-1]]
    bodies = [json.loads(base64.b64decode(message["body"])) for message in messages]
    return [(message["headers"]["task"], body[1]["progress"]) for message, body in zip(messages, bodies, strict=True)]


class TestRunEvents:
    """What a run says of itself."""

    @pytest.fixture
    def clock(self):
        """Of the run."""
        return HandClock()

    @pytest.fixture
    def said(self):
        """Events."""
        return []

    @pytest.fixture
    def events(self, lease, said, clock):
        """What hears about the run."""
        return RunEvents(lease, said.append, clock)

    def test_each_stage_is_told_and_what_runs_now_and_then(self, events, said, clock):
        """At most every five seconds, whatever the code prints; a block's rates are nobody's business."""
        events.stage("unpacking", key="unpack")
        events.stage("running", key="learner", limit_s=300.0)
        for _ in range(95):
            clock.now += 0.2
            events.running(clock.now - 1000.0, 300.0, "epoch 1")
        events.note("block 1: 1.4")
        events.stage("judging by a name alone")
        told = [(event.stage, event.elapsed_s, event.limit_s, event.line) for event in said]
        assert told[:2] == [("unpack", 0.0, None, ""), ("learner", 0.0, 300.0, "")]
        assert [stage for stage, *_ in told[2:]] == ["learner"] * 3
        assert [elapsed for _, elapsed, _, _ in told[2:]] == pytest.approx([EVERY_S, 2 * EVERY_S, 3 * EVERY_S], abs=0.7)
        assert {(limit, line) for _, _, limit, line in told[2:]} == {(300.0, "epoch 1")}
        assert {(event.submission_id, event.run_id) for event in said} == {("p:1", events._lease.run_id)}

    def test_a_long_run_is_told_of_to_its_end(self, events, said, clock):
        """Its events are spread; beside them there is room for other stages, and no run has more than 200."""
        events.stage("running", key="learner", limit_s=7200.0)
        while clock.now < 1000.0 + 7200.0:
            clock.now += 1.5
            events.running(clock.now - 1000.0, 7200.0, "x")
        assert said[-1].elapsed_s > 7000
        assert len(said) < MOST
        for number in range(100):
            events.stage("other", key="measure" if number % 2 else "warm_up")
        assert len(said) == MOST

    def test_a_line_that_is_none_ends_no_run(self, events, said):
        """Whatever is wrong with an event is nobody's fault in the run."""
        events.stage("running", key="No Key")
        assert said == []

    def test_who_hears(self, local, lease):
        """Nobody, where nobody asked, where the run serves a re-grade, or where the database is away."""
        assert isinstance(events_of(local.store, print, lease), RunEvents)
        assert isinstance(events_of(local.store, print, replace(lease, item_id=1)), Silent)
        assert isinstance(events_of(Store("postgresql+psycopg://nobody@127.0.0.1:1/x"), print, lease), Silent)
        local.submit(submission_id="p:2")
        other = leases.claim(local.store, "run", "host/cpu/2", 60)
        assert isinstance(events_of(local.store, print, other), Silent)


@pytest.mark.integration
class TestPost:
    """What a runner does with events."""

    def test_judges_find_them_in_their_order(self, lease, redis):
        """In a list of the broker."""
        post = ProgressPost(redis.client())
        events = events_of_each(lease, post, "unpack", "start", "learner")
        wait_for(lambda: redis.client().llen(KEY) == len(events), 5)
        assert [json.loads(raw)["stage"] for raw in redis.client().lrange(KEY, 0, -1)[::-1]] == events

    def test_a_broker_that_is_away_holds_nobody_up(self, lease, redis):
        """What it does not take is lost, and what comes later is not."""
        post = ProgressPost(redis.client())
        redis.kill()
        started = time.monotonic()
        events_of_each(lease, post, *["measure"] * 500)
        assert time.monotonic() - started < 5
        redis.start()

        def arrives():
            events_of_each(lease, post, "end")
            return redis.client().llen(KEY)

        wait_for(arrives, 10)

    def test_a_list_that_nobody_reads_does_not_fill_the_broker(self, lease, redis):
        """A thousand events, of 1 KiB at most."""
        redis.client().lpush(KEY, *["x"] * 1000)
        post = ProgressPost(redis.client())
        events_of_each(lease, post, "unpack", "start")
        wait_for(post._waiting.empty, 5)
        time.sleep(0.2)
        assert redis.client().llen(KEY) == 1000


def events_of_each(lease, post, *keys):
    """Says that these stages began; returns them."""
    events = RunEvents(lease, post.send)
    for key in keys:
        events.stage(key, key=key)
    return list(keys)


@pytest.mark.integration
class TestRelay:
    """What a judge does with events."""

    def test_the_platform_that_asked_is_told(self, relay, lease, redis):
        """By its task, on its queue."""
        assert relay.relay(an_event(lease, line="epoch 1"))
        ((task, event),) = sent(redis)
        assert task == "lab.progress"
        assert ProgressEvent.model_validate_json(json.dumps(event)).line == "epoch 1"
        assert (event["submission_id"], event["run_id"], event["stage"]) == ("p:1", lease.run_id, "learner")

    def test_a_runner_chooses_no_queue(self, relay, lease, redis, local):
        """What is said of another submission, another run or one that has ended goes nowhere."""
        local.submit(submission_id="p:2")
        assert not relay.relay(an_event(lease, submission_id="p:2"))
        assert not relay.relay(an_event(lease, run_id="f" * 32))
        assert leases.give_back(local.store, lease, "told to stop")
        assert not relay.relay(an_event(lease))
        assert redis.client().keys("*") == []

    @pytest.mark.parametrize(
        "raw", [b"", b"\xff", b"[]", b"{}", b'{"schema": "grader.progress/v2"}', b"[" * 5000, b" " * 3 * MAX_BYTES]
    )
    def test_what_is_no_event_is_dropped(self, relay, raw, redis):
        """Whoever can write to the broker can write this."""
        assert not relay.relay(raw)
        assert redis.client().keys("*") == []

    def test_an_event_with_more_in_it_is_dropped(self, relay, lease, redis):
        """So that nothing else travels with it."""
        said = json.loads(an_event(lease)) | {"queue": "live", "task": "grader.grade"}
        assert not relay.relay(json.dumps(said).encode())
        assert redis.client().keys("*") == []

    def test_a_queue_that_nobody_reads_is_left_alone(self, relay, lease, redis):
        """Verdicts may share it, and come first."""
        done = [relay.relay(an_event(lease)) for _ in range(10)]
        assert done == [True] * 8 + [False] * 2
        assert len(sent(redis)) == 8

    def test_it_goes_on_after_a_broker_that_was_away(self, relay, lease, redis):
        """As all of a judge does."""
        relay.start()
        redis.kill()
        time.sleep(0.5)
        redis.start()
        wait_for(lambda: redis.client().lpush(KEY, an_event(lease)) and sent(redis), 20, 0.5)
        relay.stop()


@pytest.mark.integration
class TestService:
    """The whole way."""

    def test_a_platform_sees_its_submission_run(self, service):
        """The stages in their order, what the code printed last, and then the verdict, which waits for none of it."""
        service.both()
        submission_id, task_id = service.post(service.message(source=PRINTING, progress_to=TO))
        assert service.result(task_id)["status"] == "passed"
        events = [event for _, event in sent(service.redis)]
        assert {task for task, _ in sent(service.redis)} == {"lab.progress"}
        assert {event["submission_id"] for event in events} == {submission_id}
        stages = list(dict.fromkeys(event["stage"] for event in events))
        assert stages[:3] == ["unpack", "start", "learner"]
        lines = [event["line"] for event in events if event["stage"] == "learner"]
        assert lines[0] == ""
        assert lines[1].startswith("step "), lines
        running = [event for event in events if event["line"]]
        assert all(event["elapsed_s"] >= EVERY_S and event["limit_s"] > 0 for event in running)

    @pytest.mark.slow
    def test_without_the_answers_redis_a_run_goes_on(self, service):
        """A judge that cannot tell anybody, and a runner whose events nobody takes: the run is stored and judged."""
        with redis_server() as results:
            service.runner()
            service.judge(GRADER_RESULT_URL=results.url)
            _, before = service.post(service.message())
            wait_for(lambda: results.client().exists(f"celery-task-meta-{before}"), 60)
            results.kill()
            submission_id, _ = service.post(service.message(progress_to=TO))
            service.one_verdict(submission_id)
        assert sent(service.redis) == []

    def test_the_first_message_says_where(self, service):
        """The same again with another queue changes nothing, and is no conflict."""
        service.both()
        message = service.message(progress_to=TO)
        first, _ = service.post(message)
        service.one_verdict(first)
        _, again = service.post(message | {"progress_to": {"queue": "elsewhere", "task": "lab.progress"}})
        assert service.result(again)["status"] == "passed"
        assert service.redis.client().llen("elsewhere") == 0
        assert len(service.runs(first)) == 1

    @pytest.mark.slow
    def test_the_command_line_shows_it(self, service, tmp_path):
        """`submit --wait`, and leaves nothing in Redis."""
        (tmp_path / "s.py").write_text(PRINTING)
        service.both()
        done = service.command(
            "submit", str(tmp_path / "s.py"), "--submission-id", "cli:live", "--steps", "reflection", "--wait", "60"
        )
        assert done.returncode == 0, done.stderr
        said = done.stderr
        assert said.index("waiting for the verdict …") < said.index("Run your code …")
        assert not service.redis.client().keys("*cli:live.progress")


@pytest.mark.parametrize(
    "progress_to",
    [
        {"queue": "live", "task": "t"},
        {"queue": "grader.run.live", "task": "t"},
        {"queue": "q"},
        {"queue": "q", "task": ""},
    ],
)
def test_where_it_may_not_go(progress_to):
    """The same queues as answers, and no others."""
    with pytest.raises(Malformed, match="progress_to"):
        parse_message(a_message(progress_to=progress_to))
