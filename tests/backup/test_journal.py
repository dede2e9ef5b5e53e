"""No answer is sent that the journal does not have."""

import gzip
import json

import pytest

from grader_service.backup.journal import Journal
from grader_service.backup.place import ANSWERS, Place
from grader_service.errors import InfrastructureError
from grader_service.queue.app import make_answers_app
from grader_service.queue.outbox_relay import OutboxRelay
from grader_service.settings import Settings
from grader_service.store.files import Files
from grader_service.store.outbox import Waiter, enqueue
from tests.hand_clock import HandClock

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore:Call to deprecated setex")]  # by Celery


@pytest.fixture
def store_url(postgres_url):
    """The service's own database is enough."""
    return postgres_url


@pytest.fixture
def app(redis):
    """What sends answers."""
    return make_answers_app(Settings(redis_url=redis.url))


def kept(place):
    """Entries of the journal."""
    found = []
    for name in place.files.names(ANSWERS):
        with place.files.opened(f"{ANSWERS}/{name}") as file:
            found += [json.loads(line) for line in gzip.decompress(file.read()).splitlines()]
    return found


def test_an_answer_is_kept_once_before_it_is_sent(owned, place, app):
    """Also where it cannot be sent, and is tried again; without the bytes of what the run found."""
    verdict_id = owned.grade(1)
    relay = OutboxRelay(owned.store, app, 100, Journal(place, owned.store, owned.signer))
    broken = OutboxRelay(
        owned.store, make_answers_app(Settings(redis_url="redis://127.0.0.1:1/0")), 100, relay._journal
    )
    assert broken.deliver_due() == 0
    (entry,) = kept(place)
    assert entry["rows"]["verdict"]["verdict_id"] == verdict_id
    assert "document" not in entry["rows"]["evidence"]
    assert entry["sent_to"] == [{"task_id": "task-1", "reply_queue": None, "reply_task": None}]
    with owned.store.transaction() as connection:
        connection.exec_driver_sql("update outbox set not_before = 0")
    assert relay.deliver_due() == 1
    assert app.AsyncResult("task-1").result["verdict_id"] == verdict_id
    assert len(kept(place)) == 1


def test_nothing_is_sent_while_the_journal_cannot_be_written(owned, tmp_path, app):
    """It waits, and comes once the place is there; a refusal, which grades nothing, is not in the journal."""
    owned.grade(1)
    with owned.store.transaction() as connection:
        enqueue(connection, None, Waiter("task-9"), json.dumps({"verdict_id": "v"}))
    (tmp_path / "backups").write_text("a file where the folder should be")
    place = Place(f"file://{tmp_path}/backups")
    relay = OutboxRelay(owned.store, app, 100, Journal(place, owned.store, owned.signer))
    with pytest.raises(InfrastructureError, match=r"the backup store .*/backups failed"):
        relay.deliver_all()
    assert not app.AsyncResult("task-1").ready()
    (tmp_path / "backups").unlink()
    with owned.store.transaction() as connection:
        connection.exec_driver_sql("update outbox set not_before = 0")
    assert relay.deliver_all() == 2
    assert [entry["rows"]["submission"]["submission_id"] for entry in kept(place)] == ["s:1"]


def test_what_was_kept_too_late_is_read_again(owned, place, app, monkeypatch):
    """A place that hung for an hour: what was to be sent then may be somebody else's, or have changed since."""
    clock, put = HandClock(), Files.put

    def slowly(*what):
        clock.now += 3600.0
        put(*what)

    monkeypatch.setattr(Files, "put", slowly)
    owned.grade(1)
    relay = OutboxRelay(owned.store, app, 100, Journal(place, owned.store, owned.signer), clock)
    assert relay.deliver_all() == 0
    assert not app.AsyncResult("task-1").ready()
    with owned.store.transaction() as connection:
        connection.exec_driver_sql("update outbox set not_before = 0")
    assert relay.deliver_all() == 1
    assert len(kept(place)) == 1


def test_many_answers_are_one_file(owned, place, app):
    """A hundred at a time, each with those who asked for it."""
    for number in range(5):
        owned.grade(number, learner=f"l{number}")
        owned.accept(number, learner=f"l{number}")  # posted again: a second answer
    assert OutboxRelay(owned.store, app, 100, Journal(place, owned.store, owned.signer)).deliver_all() == 10
    assert len(place.files.names(ANSWERS)) == 1
    entries = kept(place)
    assert {entry["rows"]["submission"]["submission_id"] for entry in entries} == {f"s:{n}" for n in range(5)}
    assert all(len(entry["sent_to"]) == 2 for entry in entries)
