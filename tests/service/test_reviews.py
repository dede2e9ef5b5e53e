"""A submission that waits for a person, in the whole service, each part in its own role of the database."""

import json

import pytest

from grader_service.store import regrade_apply, reviews
from grader_service.store.engine import Store
from tests.regrade.conftest import Room
from tests.reviewing import CHECK, LAB, check_of, install
from tests.service.harness import served
from tests.services.roles import as_role
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

WHY = "It names a real bottleneck."
LISTS = "where_dali_wins = ['perhaps', 'more']\nwhere_dali_loses = ['good']\n"


@pytest.fixture
def room(redis, postgres_url, tmp_path, monkeypatch):
    """A service with the plugin, without workers."""
    install(tmp_path / "installed", monkeypatch)
    with served(redis, postgres_url, tmp_path, kind=Room, GRADER_LEASE_S="60") as made:
        yield made


def as_(room, role, ask):
    """What a function says of the store that is opened in this role."""
    store = Store(as_role(room.database_url, role))
    try:
        return ask(store)
    finally:
        store.close()


@pytest.mark.slow
def test_from_the_first_verdict_to_that_of_a_person(room):
    """It is answered as inconclusive, waits, through a re-grade too, and is answered again with the reason."""
    room.both()
    room.regrade_worker()
    submission_id, task_id = room.post(room.message("s:1", LISTS, lab=LAB, steps=[], cohort="autumn"))
    assert room.result(task_id)["status"] == "inconclusive"
    batch_id = room.plan("--level", "judge")["batch_id"]
    room.regrade("start", batch_id)
    room.await_batch(batch_id, "finished")
    regrade_apply.apply(room.store, batch_id, "ann", notify="none")
    (case,) = json.loads(room.grader("reviews", "list", "--json"))
    assert (case["submission_id"], case["check_id"]) == (submission_id, CHECK)
    assert as_(room, "metrics", reviews.waiting)[0] == 1
    assert as_(room, "web", lambda store: reviews.case_view(store, submission_id)).seen == {
        "words": ["perhaps", "more"]
    }
    assert len(as_(room, "web", reviews.open_cases)) == 1
    room.grader("reviews", "accept", submission_id, "--reason", WHY)
    answer = wait_for(lambda: (found := room.result(task_id))["status"] == "passed" and found, 60)
    check, _, score = check_of(json.dumps(answer))
    assert (check["review"]["reason"], score) == (WHY, 15.0)
    assert WHY in check["feedback"]
    assert json.loads(room.grader("reviews", "list", "--json")) == []
    assert json.loads(room.grader("reviews", "export"))["label"] == "good"
    assert as_(room, "metrics", reviews.waiting) == (0, 0.0)
    room.grader("erase", "--learner", answer["learner"], "--yes")
    assert room.grader("reviews", "export") == ""
