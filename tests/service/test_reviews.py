"""A submission that waits for a person, in the whole service, each part in its own role of the database."""

import json

import pytest

from grader_service.store import regrade_apply, reviews
from grader_service.store.engine import Store
from tests.regrade.conftest import OperatedService
from tests.reviewing import CHECK, LAB, check_of, install
from tests.service.harness import served
from tests.services.roles import as_role
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

WHY = "It names a real bottleneck."
LISTS = "where_dali_wins = ['perhaps', 'more']\nwhere_dali_loses = ['good']\n"


@pytest.fixture
def operated(redis, postgres_url, tmp_path, monkeypatch):
    """A service with the plugin, without workers."""
    install(tmp_path / "installed", monkeypatch)
    with served(redis, postgres_url, tmp_path, kind=OperatedService, GRADER_LEASE_S="60") as made:
        yield made


def as_(operated, role, ask):
    """What a function says of the store that is opened in this role."""
    store = Store(as_role(operated.database_url, role))
    try:
        return ask(store)
    finally:
        store.close()


@pytest.mark.slow
def test_from_the_first_verdict_to_that_of_a_person(operated):
    """It is answered as inconclusive, waits, through a re-grade too, and is answered again with the reason."""
    operated.both()
    operated.regrade_worker()
    submission_id, task_id = operated.post(operated.message("s:1", LISTS, lab=LAB, steps=[], cohort="autumn"))
    assert operated.result(task_id)["status"] == "inconclusive"
    batch_id = operated.plan("--level", "judge")["batch_id"]
    operated.regrade("start", batch_id)
    operated.await_batch(batch_id, "finished")
    regrade_apply.apply(operated.store, batch_id, "ann", notify="none")
    (case,) = json.loads(operated.grader("reviews", "list", "--json"))
    assert (case["submission_id"], case["check_id"]) == (submission_id, CHECK)
    assert as_(operated, "metrics", reviews.waiting)[0] == 1
    assert as_(operated, "web", lambda store: reviews.case_view(store, submission_id)).seen == {
        "words": ["perhaps", "more"]
    }
    assert len(as_(operated, "web", reviews.open_cases)) == 1
    operated.grader("reviews", "accept", submission_id, "--reason", WHY)
    answer = wait_for(lambda: (found := operated.result(task_id))["status"] == "passed" and found, 60)
    check, _, score = check_of(json.dumps(answer))
    assert (check["review"]["reason"], score) == (WHY, 15.0)
    assert WHY in check["feedback"]
    assert json.loads(operated.grader("reviews", "list", "--json")) == []
    assert json.loads(operated.grader("reviews", "export"))["label"] == "good"
    assert as_(operated, "metrics", reviews.waiting) == (0, 0.0)
    operated.grader("erase", "--learner", answer["learner"], "--yes")
    assert operated.grader("reviews", "export") == ""
