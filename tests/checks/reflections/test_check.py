"""The check as the registry sees it."""

import json

import pytest
from pydantic import ValidationError

from checks.reflections.check import reflections
from grader_service.model.discovery import TextList
from grader_service.model.verdict import Outcome
from tests.checks.judged import judged
from tests.checks.reflections.lists import LOSES, WINS
from tests.factories import a_discovery, an_evidence


def test_observe_takes_both_lists():
    """What discovery found is what is judged."""
    wins, loses = (TextList(status="present", items=items) for items in (WINS, LOSES))
    seen = reflections.observe(an_evidence(discovery=a_discovery(where_dali_wins=wins, where_dali_loses=loses)))
    assert seen.model_dump() == {"where_dali_wins": WINS, "where_dali_loses": LOSES, "one_texts": ()}


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"where_dali_loses": TextList(status="missing")}, "reflections.missing", "`where_dali_loses` is not defined"),
        (
            {"where_dali_wins": TextList(status="unreadable", shown="<object>")},
            "reflections.unreadable",
            "`where_dali_wins` could not be read",
        ),
    ],
)
def test_absent_lists(changes, code, words):
    """The variable is named, with what it should hold."""
    result = judged(reflections, an_evidence(discovery=a_discovery(**changes)))
    assert (result.outcome, result.code) == (Outcome.FAILED, code)
    assert words in result.feedback
    assert "list of strings" in result.feedback


def test_a_pod_that_said_nothing_was_not_reached():
    """It earns nothing; what ended it is told of the run."""
    result = reflections.observe(an_evidence(discovery=None))
    assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", 0.0)


@pytest.mark.parametrize(
    "value",
    [
        {"where_dali_wins": None, "where_dali_loses": None},
        {"where_dali_loses": None},
        {"score": 1},
        {"where_dali_wins": ["x"] * 65},
        {"where_dali_wins": ["x" * 8193]},
        {"where_dali_wins": [1]},
        {"where_dali_wins": "abc"},
        {"one_texts": ["first_batch"]},
    ],
)
def test_observations_are_bounded(value):
    """Nothing but two bounded lists of strings is an observation."""
    whole = {"where_dali_wins": [], "where_dali_loses": [], "one_texts": []}
    assert reflections.observation_model.model_validate_json(json.dumps(whole))
    changed = {name: held for name, held in (whole | value).items() if held is not None}
    with pytest.raises(ValidationError):
        reflections.observation_model.model_validate_json(json.dumps(changed))


@pytest.mark.parametrize("params", [{"min_wins": 0}, {"min_loses": 65}, {"minimum": 3}])
def test_params_are_checked(params):
    """Mistakes in a lab's specification show at once."""
    with pytest.raises(ValidationError):
        reflections.params_model(**params)
