"""The check as the registry sees it."""

import pytest
from pydantic import ValidationError

from checks.reflections.check import CHECK, ReflectionsObservation, ReflectionsParams
from grader_service.model.discovery import TextList
from grader_service.model.verdict import Outcome
from tests.checks.reflections.lists import LOSES, WINS
from tests.factories import a_discovery, an_evidence


def test_observe_takes_both_lists():
    """What discovery found is what is judged."""
    wins, loses = (TextList(status="present", items=items) for items in (WINS, LOSES))
    seen = CHECK.observe(an_evidence(discovery=a_discovery(where_dali_wins=wins, where_dali_loses=loses)))
    assert seen == ReflectionsObservation(where_dali_wins=WINS, where_dali_loses=LOSES)


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
    result = CHECK.answer(an_evidence(discovery=a_discovery(**changes)), ReflectionsParams()).result
    assert (result.outcome, result.code) == (Outcome.FAILED, code)
    assert words in result.feedback
    assert "list of strings" in result.feedback


def test_a_pod_that_said_nothing_was_not_reached():
    """It earns nothing; what ended it is told of the run."""
    result = CHECK.observe(an_evidence(discovery=None))
    assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", 0.0)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"where_dali_wins": []},
        {"where_dali_wins": [], "where_dali_loses": [], "score": 1},
        {"where_dali_wins": ["x"] * 65, "where_dali_loses": []},
        {"where_dali_wins": ["x" * 8193], "where_dali_loses": []},
        {"where_dali_wins": [1], "where_dali_loses": []},
        {"where_dali_wins": "abc", "where_dali_loses": []},
    ],
)
def test_observations_are_bounded(value):
    """Nothing but two bounded lists of strings is an observation."""
    with pytest.raises(ValidationError):
        ReflectionsObservation.model_validate(value)


@pytest.mark.parametrize("params", [{"min_wins": 0}, {"min_loses": 65}, {"minimum": 3}])
def test_params_are_checked(params):
    """Mistakes in a lab's specification show at once."""
    with pytest.raises(ValidationError):
        ReflectionsParams(**params)
