"""What a lab hides stays hidden in every export, and advice that could not be given costs nobody a grade."""

from xml.etree import ElementTree as ET

from grader_service.exports.gradescope import gradescope
from grader_service.exports.junit import junit
from grader_service.exports.prairielearn import prairielearn
from grader_service.model.verdict import Outcome
from tests.exports.corpus import CORPUS, composed

HIDDEN_CODE = "hidden.answer_is_wrong"


def with_details(verdict, place, **changes):
    checks = list(verdict.checks)
    checks[place] = checks[place].model_copy(update=changes)
    return verdict.model_copy(update={"checks": tuple(checks)})


def test_a_hidden_check_is_in_no_export():
    """Neither its code nor a line of its own; the grade stays what it is."""
    plain = composed(Outcome.PASSED, Outcome.PASSED, Outcome.PASSED, Outcome.FAILED)
    kept = {"visibility": "hidden", "details": {"staff_feedback": HIDDEN_CODE}}
    hidden = with_details(plain, 3, code=HIDDEN_CODE, **kept)
    for text in (gradescope(hidden).model_dump_json(), prairielearn(hidden).model_dump_json(), junit([hidden])):
        assert HIDDEN_CODE not in text
    assert len(gradescope(hidden).tests) == len(plain.checks) - 1
    assert gradescope(hidden).score == plain.score
    cases = ET.fromstring(junit([hidden])).iter("testcase")  # noqa: S314 - our own document
    assert all(plain.checks[3].id not in case.get("name") for case in cases)


def test_how_the_run_ended_is_shown_whatever_a_lab_hides():
    """It tells of the learner's own code; the hidden check stays out of every export, not reached or not."""
    stopped = CORPUS["not_reached"]
    kept = {"visibility": "hidden", "details": {"staff_feedback": HIDDEN_CODE}}
    hidden = with_details(stopped, 3, code=HIDDEN_CODE, **kept)
    for text in (gradescope(hidden).model_dump_json(), prairielearn(hidden).model_dump_json(), junit([hidden])):
        assert HIDDEN_CODE not in text
        assert stopped.checks[3].id not in text
        assert "Your code stopped at cell 3" in text


def test_advice_that_could_not_be_given_leaves_the_grade():
    """A passed verdict with an optional check that was not decided is exported with its points."""
    passed = composed(*[Outcome.PASSED] * 4)
    advice = with_details(passed, 3, outcome=Outcome.UNVERIFIED, score=None, max_score=0.0, optional=True)
    assert gradescope(advice).score == passed.score
    assert prairielearn(advice).gradable is True
    needed = with_details(passed, 3, outcome=Outcome.UNVERIFIED, score=None)
    assert gradescope(needed).score is None
