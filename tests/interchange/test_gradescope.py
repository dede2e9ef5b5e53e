"""What is written for Gradescope has the published fields, and points only where there is a grade."""

import json

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from grader_service.interchange.gradescope import GradescopeResults, GradescopeTest, gradescope
from grader_service.model.verdict import Outcome
from tests.interchange.corpus import CANARY, CORPUS, any_verdicts, composed, may_hold_a_grade

FORMATS = {"text", "html", "simple_format", "md", "ansi"}
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
NUMBER = (int, float)
TOP = {
    "score": NUMBER,
    "execution_time": NUMBER,
    "output": str,
    "output_format": FORMATS,
    "test_output_format": FORMATS,
    "test_name_format": FORMATS,
    "visibility": VISIBILITIES,
    "stdout_visibility": VISIBILITIES,
    "extra_data": dict,
    "tests": list,
    "leaderboard": list,
}
TEST = {
    "score": NUMBER,
    "max_score": NUMBER,
    "status": {"passed", "failed"},
    "name": str,
    "name_format": FORMATS,
    "number": str,
    "output": str,
    "output_format": FORMATS,
    "tags": list,
    "visibility": VISIBILITIES,
    "extra_data": dict,
}
"""The published fields once more, written down without the models."""


def exported(verdict):
    return json.loads(gradescope(verdict).model_dump_json(exclude_none=True))


def assert_published(found, fields):
    for name, value in found.items():
        allowed = fields[name]
        assert value in allowed if isinstance(allowed, set) else isinstance(value, allowed), name


def assert_sound(verdict):
    """Its document has the published fields only, points everywhere or nowhere, and nothing for staff."""
    document = exported(verdict)
    assert CANARY not in json.dumps(document)
    GradescopeResults.model_validate_json(json.dumps(document))
    assert_published(document, TOP)
    for test in document["tests"]:
        assert_published(test, TEST)
        assert all(isinstance(tag, str) for tag in test.get("tags", []))
    assert "score" in document or document["tests"]
    scores = [document.get("score"), *(test.get("score") for test in document["tests"])]
    if may_hold_a_grade(verdict):
        assert scores == [verdict.score, *(check.score for check in verdict.checks)]
        assert document["extra_data"]["graded"] is True
    else:
        assert set(scores) == {None}
        assert document["extra_data"]["graded"] is False
    for check, test in zip(verdict.checks, document["tests"], strict=False):
        assert test.get("status") == (check.outcome.value if check.outcome.value in {"passed", "failed"} else None)


@pytest.mark.parametrize("name", CORPUS)
def test_every_kind_of_verdict_is_valid_and_honest(name):
    """Each verdict of the corpus."""
    assert_sound(CORPUS[name])


@settings(max_examples=150, deadline=None)
@given(any_verdicts())
def test_any_verdict_is_valid_and_honest(verdict):
    """Whatever the schema of verdicts allows."""
    assert_sound(verdict)


def test_every_text_is_shown_as_plain_text():
    """Markup of a learner stays as it was written, and no format that renders it is asked for."""
    document = exported(CORPUS["report_hostile"])
    formats = {document[key] for key in ("output_format", "test_output_format", "test_name_format")}
    assert formats == {"text"}
    assert not any({"output_format", "name_format"} & test.keys() for test in document["tests"])
    assert "<script>window.pwned=1</script>" in document["tests"][0]["output"]
    assert "\x1b" not in document["tests"][0]["output"]


def test_learners_see_the_tests_and_not_the_output_of_the_grader():
    """Feedback is visible from the start; stdout is for staff."""
    document = exported(CORPUS["one_failed"])
    assert (document["visibility"], document["stdout_visibility"]) == ("visible", "hidden")
    assert document["output"] == "Failed: 87.5 of 100 points."
    assert document["tests"][2]["output"] == "Too few: 3, wanted 100."


def test_an_open_check_says_so_in_its_name():
    """Without points a heading is all that Gradescope marks."""
    document = exported(composed(Outcome.PASSED, Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.PASSED))
    assert [test["name"] for test in document["tests"]][1:3] == ["CUDA batch: passed", "Throughput ratio: inconclusive"]
    assert "No score: this is neither 0 points nor a grade." in document["output"]


def test_our_failure_leaves_a_message_and_no_points():
    """A failure without any check still has a test, as Gradescope asks for a score or tests."""
    document = exported(CORPUS["error"])
    assert "The grader itself failed" in document["output"]
    assert document["tests"] == [{"name": "Submission: error", "tags": ["submission"]}]


def test_the_models_refuse_what_gradescope_does_not_know():
    """Unknown fields, statuses, and a document with neither score nor tests."""
    for wrong in (
        GradescopeResults,
        lambda: GradescopeResults(score=float("nan")),
        lambda: GradescopeResults.model_validate({"score": 1.0, "max_score": 2.0}),
        lambda: GradescopeTest.model_validate({"status": "skipped"}),
    ):
        with pytest.raises(ValidationError):
            wrong()
