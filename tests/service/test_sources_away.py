"""A server of artifacts that is away, or fails: messages that name it wait, all others are taken in meanwhile."""

import hashlib
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select

from checks.registry import Registry
from grader_service.queue import intake_loop
from grader_service.queue.app import make_app
from grader_service.queue.intake_loop import IntakeLoop
from grader_service.queue.judge_worker import Intake
from grader_service.service.intake import IntakeDeps
from grader_service.service.sweeper import Sweeper
from grader_service.settings import Settings
from grader_service.store import away
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.away import Away
from grader_service.store.tables import SubmissionRow
from tests.hand_clock import HandClock
from tests.service.faults import body, envelope
from tests.service.harness import a_message
from tests.services.kept_port import kept_port
from tests.waiting import wait_for

pytestmark = pytest.mark.integration
SOURCE = "x = 1\n"
DIGEST = hashlib.sha256(SOURCE.encode()).hexdigest()


@pytest.fixture
def port():
    """Where nobody listens."""
    with kept_port() as number:
        yield number


@pytest.fixture
def clock():
    """By which half a minute passes."""
    return HandClock()


@pytest.fixture
def intake(redis, local, port, clock):
    """That of a judge, not started."""
    settings = Settings(redis_url=redis.url, state_dir=local.state_dir)
    artifacts = ArtifactStore(local.artifacts._files.url, (f"http://127.0.0.1:{port}/",))
    artifacts._away = Away(clock)
    deps = IntakeDeps(local.store, artifacts, Registry(), local.signer)
    return Intake(settings, make_app(settings), deps, Sweeper([], 1.0))


def hand_in(redis, *messages, queue="live"):
    """Puts them on a queue, the first one first."""
    for message in messages:
        redis.client().lpush(queue, json.dumps(envelope(body(submission=message))))


def elsewhere(port, number):
    """A message whose artifact lies at that port."""
    uri = f"http://127.0.0.1:{port}/{number}.py"
    return a_message(f"away:{number}", artifact={"filename": "s.py", "uri": uri, "sha256": DIGEST})


def known(local):
    """Ids of the submissions that were accepted."""
    with local.store.transaction() as connection:
        return set(connection.execute(select(SubmissionRow.submission_id)).scalars())


def test_a_source_that_is_away_holds_up_nobody(redis, local, intake, port, clock, tmp_path):
    """Two hundred of its messages lie before another one; once it is back, they are taken in as well."""
    wanted = {f"away:{number}" for number in range(200)}
    hand_in(redis, *(elsewhere(port, number) for number in range(200)), a_message("good"))
    intake.start()
    try:
        wait_for(lambda: known(local) == {"good"}, 5)
        for number in range(200):
            (tmp_path / f"{number}.py").write_text(SOURCE)
        handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
        with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            clock.now += away.LEFT_ALONE_S
            wait_for(lambda: known(local) == {"good", *wanted}, 30)
            server.shutdown()
    finally:
        intake.stop()
    assert redis.client().keys("live") + redis.client().keys("grader:intake:work:*") == []


def test_it_is_asked_once(redis, local, intake, port, monkeypatch):
    """However many messages name it, and how often they come round; they stay, and no time is spent on them."""
    waits, asked = [], []
    monkeypatch.setattr(intake_loop, "_BATCH", 2)
    loop = IntakeLoop(redis.client(), intake._handle, pytest.fail, pytest.fail)
    monkeypatch.setattr(loop._stop, "wait", waits.append)
    monkeypatch.setattr(away.log, "warning", lambda *_, **said: asked.append(said["source"]))
    hand_in(redis, elsewhere(port, 0))
    assert [loop.take(block_s=1.0) for _ in range(5)] == [False] * 5
    assert asked == [f"http://127.0.0.1:{port}"]
    assert waits == [intake_loop._AWHILE_S] * 5
    hand_in(redis, *(elsewhere(port, number) for number in range(1, 4)), a_message("good"))
    assert [loop.take() for _ in range(3)] == [False, False, True]
    assert known(local) == {"good"}
    assert len(asked) == 1
    assert redis.client().llen("live") == 4


def test_it_holds_up_no_other_queue(redis, local, intake, port):
    """Neither re-grades, nor messages with a priority, which lie in lists of their own."""
    loop = IntakeLoop(redis.client(), intake._handle, pytest.fail, pytest.fail)
    hand_in(redis, elsewhere(port, 0))
    hand_in(redis, a_message("again"), queue="regrade")
    hand_in(redis, a_message("urgent"), queue="live\x06\x166")
    assert [loop.take(), loop.take(), loop.take()] == [True, True, False]
    assert known(local) == {"again", "urgent"}
