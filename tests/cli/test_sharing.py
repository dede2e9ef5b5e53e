"""`grader cohort weight` and `grader cancel`: who gets more of the GPUs, and whose work ends."""

import json

import pytest

from grader_service.errors import UsageError
from tests import command_line
from tests.store.factories import a_submission, accept, finish, migrated


@pytest.fixture
def store(tmp_path):
    """Three submissions of one cohort; one is graded."""
    with migrated(f"sqlite:///{tmp_path / 'grader.db'}") as made:
        accept(made, a_submission(1, learner="lea"))
        finish(made)
        for number in (2, 3):
            accept(made, a_submission(number, learner=f"l{number}"))
        yield made


@pytest.fixture
def typed(store, tmp_path):
    """What came of a command."""
    return command_line.by_operator(tmp_path)


def test_a_weight_is_given_and_shown(typed):
    """Beside the cohort's figures; 1 before."""
    assert [row["weight"] for row in json.loads(typed("cohort", "list", "--json").stdout)] == [1.0]
    assert "cohort 'c' has weight 2.5" in typed("cohort", "weight", "c", "2.5").stdout
    assert [row["weight"] for row in json.loads(typed("cohort", "list", "--json").stdout)] == [2.5]
    assert "2.5" in typed("cohort", "list").stdout


def test_no_cohort_weighs_nothing(typed):
    """The message says what does."""
    with pytest.raises(UsageError, match=r"a weight is a number from 0\.01 to 100, got 0"):
        typed("cohort", "weight", "c", "0")


def test_what_is_cancelled_is_said(typed, store):
    """One of two that wait; the other one still does."""
    assert typed("cancel", "s:2", "-m", "wrong file").stdout.strip() == "1 run is cancelled"
    assert [run["state"] for run in json.loads(typed("queue", "s:2", "--json").stdout)["places"]] == ["judge_queued"]
    assert [run["state"] for run in json.loads(typed("queue", "s:3", "--json").stdout)["places"]] == ["run_queued"]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("s:1", "submission s:1 has nothing left to cancel: run .* is done"),
        ("s:2", "submission s:2 has nothing left to cancel: run .* is judge_queued"),
        ("nobody", "no submission and no run has the id"),
    ],
)
def test_what_cannot_be_cancelled_is_said(typed, named, said):
    """It is graded, it was cancelled already, nobody knows it."""
    typed("cancel", "s:2")
    with pytest.raises(UsageError, match=said):
        typed("cancel", named)
