"""What is written for PrairieLearn has the published fields, fits its size, and is gradable only with a grade."""

import json

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from grader_service.exports.prairielearn import MOST_BYTES, PrairieLearnResults, prairielearn
from grader_service.model.verdict import Outcome
from tests.exports.corpus import CANARY, CORPUS, UNDECIDED, any_verdicts, composed, many_checks, may_hold_a_grade
from tests.report.factories import PRINTED

TOP = {"gradable", "score", "format_errors", "message", "output", "images", "tests", "grader"}
TEST = {"name", "description", "points", "max_points", "message", "output", "images"}
"""The published fields once more, and ours: `grader`."""


def written(verdict):
    return prairielearn(verdict).model_dump_json(indent=2, exclude_none=True)


def exported(verdict):
    return json.loads(written(verdict))


def assert_sound(verdict):
    """Its document has the published fields only, is gradable only with a grade, and holds nothing for staff."""
    text = written(verdict)
    assert CANARY not in text
    PrairieLearnResults.model_validate_json(text)
    document = json.loads(text)
    tests = document.get("tests", [])
    assert document.keys() <= TOP
    assert all(test.keys() <= TEST for test in tests)
    assert document["gradable"] is may_hold_a_grade(verdict)
    if document["gradable"]:
        assert 0 <= document["score"] <= 1
        assert document["score"] == pytest.approx(min(1, verdict.score / verdict.max_score))
        assert "format_errors" not in document
        # One test without points takes the points of all from view.
        assert all({"points", "max_points"} <= test.keys() for test in tests)
    else:
        assert "score" not in document  # a null would break the element that shows it
        assert all(isinstance(line, str) for line in document["format_errors"])
        assert any(document["format_errors"])
    for check, test in zip(verdict.checks, tests, strict=False):
        assert test.get("points") == check.score


@pytest.mark.parametrize("name", CORPUS)
def test_every_kind_of_verdict_is_valid_and_honest(name):
    """Each verdict of the corpus."""
    assert_sound(CORPUS[name])


@settings(max_examples=150, deadline=None)
@given(any_verdicts())
def test_any_verdict_is_valid_and_honest(verdict):
    """Whatever the schema of verdicts allows."""
    assert_sound(verdict)


@pytest.mark.parametrize("outcome", UNDECIDED)
def test_an_open_check_costs_no_attempt(outcome):
    """The result is not gradable and says why; the open check has no points, the others keep theirs."""
    document = exported(composed(Outcome.PASSED, Outcome.PASSED, outcome, Outcome.PASSED))
    assert document["gradable"] is False
    assert "No score: this is neither 0 points nor a grade." in document["format_errors"]
    assert [test.get("points") for test in document["tests"]] == [25.0, 25.0, None, 25.0]
    assert document["tests"][2]["name"] == f"Throughput ratio: {outcome.value}"


def test_the_run_is_told_first_and_once():
    """What happened and what to do stand above; the line, the traceback and the output where breaks are kept."""
    document = exported(CORPUS["not_reached"])
    assert document["message"].splitlines() == [
        "Your code stopped at cell 3, line 2 (NameError): `y` was never set.",
        "What to do: Set `y` in a cell above.",
        "Failed: 0 of 100 points.",
    ]
    assert "    >    2 | x = y" in document["output"]
    assert "NameError: name 'y' is not defined" in document["output"]
    assert all(line in document["output"] for line in PRINTED.splitlines())
    assert [test["message"] for test in document["tests"]] == ["Not reached."] * 4
    assert {test["points"] for test in document["tests"]} == {0.0}
    assert json.dumps(document).count("was never set") == 1


def test_without_a_gpu_the_run_is_a_format_error():
    """Each of its lines is one, and nothing of it counts."""
    document = exported(CORPUS["needs_gpu"])
    assert document["gradable"] is False
    assert document["format_errors"][:2] == [
        "Your code stopped at cell 3, line 2 (NameError): `y` was never set.",
        "What to do: Set `y` in a cell above.",
    ]
    assert [test["name"] for test in document["tests"]][:2] == ["JPEG dataset: passed", "CUDA batch: not reached"]


def test_feedback_is_told_in_its_parts():
    """A line for each, code indented."""
    lines = exported(CORPUS["report_told"])["tests"][1]["message"].splitlines()
    assert lines[0] == "`dataset_dir` is not defined."
    assert lines[-4:] == [
        "What to do: Add this line:",
        "    dataset_dir = data_root",
        "Attention: Images are small. Enlarge them. (cell 3, line 2)",
        "Worth knowing: A batch of 24 is odd.",
    ]


def test_a_rejection_is_a_format_error():
    """The learner reads what to mend where PrairieLearn shows errors of the format."""
    document = exported(CORPUS["rejected"])
    assert document["format_errors"][-1] == "The archive holds a link; take it out."
    assert "tests" not in document


def test_a_partial_score_is_a_share():
    """87.5 of 100 points are 0.875."""
    document = exported(CORPUS["one_failed"])
    assert document["score"] == 0.875
    assert document["message"] == "Failed: 87.5 of 100 points."


@pytest.mark.parametrize(("count", "length"), [(1, 8000), (150, 8000), (600, 2000), (9000, 400)])
def test_the_size_limit_is_kept(count, length):
    """Long feedback is cut, and checks beyond all measure are left out and counted; the score stays."""
    text = written(many_checks(count, length))
    assert len(text.encode()) < MOST_BYTES
    document = json.loads(text)
    assert document["score"] == 0
    shown = len(document.get("tests", []))
    assert shown == count or (shown == 0 and f"The {count} checks" in document["message"])


def test_no_escape_sequence_is_left_to_colour_anything():
    """PrairieLearn renders ANSI sequences in messages; a learner's become visible characters."""
    text = json.dumps(exported(CORPUS["report_hostile"]), ensure_ascii=False)
    assert "\x1b" not in text
    assert "\\u001b" not in text
    assert "[31mred" in text


def test_the_models_refuse_what_prairielearn_would_misread():
    """A grade without a score, a score without a grade, a score out of range, format errors beside a grade."""
    for fields in ({}, {"gradable": False, "score": 0.5}, {"score": 1.5}, {"score": 1.0, "format_errors": "x"}):
        with pytest.raises(ValidationError):
            PrairieLearnResults.model_validate(fields)
