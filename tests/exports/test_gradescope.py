"""What is written for Gradescope has the published fields, and points only where there is a grade."""

import html
import json
import re

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from grader_service.exports.gradescope import GradescopeResults, GradescopeTest, gradescope
from grader_service.model.verdict import Outcome
from tests.exports.corpus import CANARY, CORPUS, any_verdicts, composed, may_hold_a_grade
from tests.report.factories import PRINTED
from tests.report.page import Page

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
TAGS = {"p", "strong", "code", "pre", "br"}
"""Of ours: no attribute, nothing that loads, links or runs."""
STATUS = {"passed": "passed", "failed": "failed", "skipped": "failed"}


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
        open_skip = check.outcome == "skipped" and check.score is None
        assert test.get("status") == (None if open_skip else STATUS.get(check.outcome.value))
    for output in (document["output"], *(test["output"] for test in document["tests"] if "output" in test)):
        assert_ours(output)


def assert_ours(output):
    """A piece of HTML has the tags that we write, without attributes, and no text in it became one."""
    found = Page(f"<body>{output}</body>").elements[1:]
    assert {element.tag for element in found} <= TAGS
    assert not any(element.attributes for element in found)
    assert len(found) == len(re.findall(r"<[a-z]", output))


def read(output):
    """What a reader sees of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", output.replace("<br>", "\n")))


@pytest.mark.parametrize("name", CORPUS)
def test_every_kind_of_verdict_is_valid_and_honest(name):
    """Each verdict of the corpus."""
    assert_sound(CORPUS[name])


@settings(max_examples=150, deadline=None)
@given(any_verdicts())
def test_any_verdict_is_valid_and_honest(verdict):
    """Whatever the schema of verdicts allows."""
    assert_sound(verdict)


def test_markup_of_a_learner_stays_as_it_was_written():
    """Texts are escaped inside HTML of ours; headings are plain."""
    document = exported(CORPUS["report_hostile"])
    assert (document["output_format"], document["test_output_format"]) == ("html", "html")
    assert document["test_name_format"] == "text"
    assert not any({"output_format", "name_format"} & test.keys() for test in document["tests"])
    output = document["tests"][0]["output"]
    assert "<script" not in output
    assert "<script>window.pwned=1</script>" in read(output)
    assert "\x1b" not in output


def test_feedback_is_told_in_its_parts():
    """Outcome first, then what was seen and wanted, the line, what to do with the code to write, and advice."""
    output = exported(CORPUS["report_told"])["tests"][1]["output"]
    assert output.startswith("<p><strong><code>dataset_dir</code> is not defined.</strong></p>")
    places = [
        output.index(part)
        for part in (
            "you may mean that. It should hold the folder with your &lt;JPEG&gt; files.",
            "<pre>cell 3, line 2\n",
            "&gt;    2 | x = y",
            "<strong>What to do:</strong> Add this line:</p><pre>dataset_dir = data_root</pre>",
            "<strong>Attention:</strong> Images are small. Enlarge them. (cell 3, line 2)",
            "<strong>Worth knowing:</strong> A batch of 24 is odd.",
        )
    ]
    assert places == sorted(places)


def test_the_run_is_told_first_and_once():
    """Where it stopped, the line and what to do, then the grade, then traceback and output; not again at a check."""
    document = exported(CORPUS["not_reached"])
    shown = read(document["output"])
    parts = ("Your code stopped at cell 3", "> 2 | x = y", "What to do:", "Failed: 0 of 100", "Traceback", PRINTED)
    spaced = " ".join(shown.split())
    places = [spaced.index(" ".join(part.split())) for part in parts]
    assert places == sorted(places)
    assert spaced.count("was never set") == 1
    assert [(test["output"], test["status"], test["score"]) for test in document["tests"]] == [
        ("<p>Not reached.</p>", "failed", 0.0)
    ] * 4


def test_a_run_that_lacked_a_gpu_costs_nothing():
    """What was not reached for that has neither points nor a status, and says so in its name."""
    document = exported(CORPUS["needs_gpu"])
    assert "score" not in document
    assert document["tests"][1]["name"] == "CUDA batch: not reached"
    assert "status" not in document["tests"][1]


def test_learners_see_the_tests_and_not_the_output_of_the_grader():
    """Feedback is visible from the start; stdout is for staff."""
    document = exported(CORPUS["one_failed"])
    assert (document["visibility"], document["stdout_visibility"]) == ("visible", "hidden")
    assert document["output"] == "<p>Failed: 87.5 of 100 points.</p>"
    assert document["tests"][2]["output"] == "<p>Too few: 3, wanted 100.</p>"


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
