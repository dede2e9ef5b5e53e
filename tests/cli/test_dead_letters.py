"""`grader dead-letters`: what could not be handled is listed, looked at, posted again or removed."""

import json
import time

import pytest
from redis.exceptions import RedisError

from grader_service.errors import InfrastructureError, UsageError
from grader_service.store import dead_letters
from tests import command_line
from tests.store.factories import migrated


@pytest.fixture
def store(tmp_path):
    """With one that nobody can read, and one that the grader failed on."""
    with migrated(f"sqlite:///{tmp_path / 'grader.db'}") as made:
        dead_letters.keep(made, b"\xff\x1b[2J", "regrade", None, "the message is not JSON")
        dead_letters.keep(made, b'{"good": 1}', "live", "task-7", "the grader failed on it: KeyError")
        yield made


@pytest.fixture
def typed(store, tmp_path):
    """What came of a command."""
    return command_line.by_operator(tmp_path, "dead-letters")


def events(store):
    with store.transaction() as connection:
        rows = connection.exec_driver_sql("select kind, actor, detail from event order by id").all()
    return [(kind, actor, json.loads(detail)) for kind, actor, detail in rows]


def test_listed_with_what_was_wrong(store, typed):
    """Newest first, with exit code 1 so that a script notices; none is said as well."""
    lines = typed("list", status=1).stdout.splitlines()
    assert len(lines) == 3
    assert "task-7" in lines[1]
    assert "KeyError" in lines[1]
    assert "the message is not JSON" in lines[2]
    for letter in dead_letters.letters(store):
        typed("remove", str(letter.id))
    assert typed("list").stdout.strip() == "none"


def test_shown_byte_for_byte(typed):
    """For a file."""
    assert typed("show", "1").stdout_bytes == b"\xff\x1b[2J"


def test_posted_again(store, typed, redis):
    """On the queue from which it came; then it is kept no longer, and the audit trail says who did it."""
    said = typed("post", "2", GRADER_REDIS_URL=redis.url).stdout
    assert "put back on the queue live" in said
    assert redis.client().lrange("live", 0, -1) == [b'{"good": 1}']
    assert [letter.id for letter in dead_letters.letters(store)] == [1]
    assert events(store) == [
        (
            "dead_letter_posted",
            "operator:ann",
            {"letter": 2, "task_id": "task-7", "reason": "the grader failed on it: KeyError"},
        )
    ]


def test_one_that_fails_again_at_once_stays(store, typed, monkeypatch):
    """What came back before its row was gone is not lost."""

    class Broker:
        def lpush(self, queue, data):
            dead_letters.keep(store, data, queue, "task-7", "failed again")

    monkeypatch.setattr("grader_service.wiring.open_redis", lambda _: Broker())
    assert "stays a dead letter" in typed("post", "2", status=1).stdout
    assert [letter.id for letter in dead_letters.letters(store)] == [2, 1]


def test_a_broker_that_is_away_takes_none(store, typed, monkeypatch):
    """It stays, and the error says so."""

    class Broker:
        def lpush(self, *_):
            raise RedisError("away")

    monkeypatch.setattr("grader_service.wiring.open_redis", lambda _: Broker())
    with pytest.raises(InfrastructureError, match="so the dead letter stays: away"):
        typed("post", "2")
    assert dead_letters.count(store) == 2


def test_one_that_was_cut_is_not_posted(store, typed):
    """It is none of those that would be taken."""
    dead_letters.keep(store, b"x" * (dead_letters.LARGEST_BYTES + 1), "live", None, "too large")
    assert "4194305 (kept: 4194304)" in typed("list", status=1).stdout
    with pytest.raises(UsageError, match="of which 4194304 were kept"):
        typed("post", "3")


def test_an_unknown_one_is_named(typed):
    """With what to look at."""
    for command in ("show", "post", "remove"):
        with pytest.raises(UsageError, match="no dead letter 9; `grader dead-letters list`"):
            typed(command, "9")


class TestBounds:
    """Whoever reaches the broker can send as many as he likes."""

    @pytest.fixture
    def empty(self, tmp_path):
        """Without any."""
        with migrated(f"sqlite:///{tmp_path / 'empty.db'}") as made:
            yield made

    def test_the_same_one_is_kept_once(self, empty):
        """And counts as having come last."""
        for raw in (b"a", b"b", b"a"):
            dead_letters.keep(empty, raw, "live", None, "unreadable")
            time.sleep(0.005)  # SQLite's clock has milliseconds
        assert [letter.id for letter in dead_letters.letters(empty)] == [1, 2]

    def test_the_oldest_make_room(self, empty, monkeypatch):
        """Bounded in bytes and in number; what was dropped is in the audit trail."""
        monkeypatch.setattr(dead_letters, "MOST_BYTES", 100)
        monkeypatch.setattr(dead_letters, "MOST_LETTERS", 3)
        for raw in (b"1" * 40, b"2" * 40, b"3" * 40):
            dead_letters.keep(empty, raw, "live", None, "unreadable")
        assert [letter.id for letter in dead_letters.letters(empty)] == [3, 2]
        for raw in (b"4", b"5"):
            dead_letters.keep(empty, raw, "live", None, "unreadable")
        assert [letter.id for letter in dead_letters.letters(empty)] == [5, 4, 3]
        assert [detail["ids"] for _, _, detail in events(empty)] == [[1], [2]]

    def test_its_beginning_is_kept_of_a_large_one(self, empty, monkeypatch):
        """With its whole size."""
        monkeypatch.setattr(dead_letters, "LARGEST_BYTES", 10)
        dead_letters.keep(empty, b"0123456789abc", "live", None, "too large")
        letter, data = dead_letters.letter(empty, 1)
        assert (data, letter.size_bytes, letter.whole) == (b"0123456789", 13, False)
