"""JUnit documents keep to the published schemas, count rightly, and carry any text."""

from xml.etree.ElementTree import fromstring, tostring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader_service.exports.junit import junit
from grader_service.exports.text import plain
from grader_service.model.verdict import Outcome, Status
from tests.exports.corpus import CANARY, CORPUS, any_verdicts, may_hold_a_grade
from tests.exports.junit_schema import violations
from tests.report.factories import PRINTED, check, verdict
from tests.report.hostile import ALL_HOSTILE

KINDS = {
    "passed": [],
    "failed": ["failure"],
    "inconclusive": ["skipped"],
    "unverified": ["skipped"],
    "skipped": ["skipped"],
    "error": ["error"],
}


def exported(*verdicts):
    return fromstring(junit(verdicts).encode())  # noqa: S314 - our own document


def results(suite):
    """What each case holds, but for output; that of a run stands first."""
    return [[child.tag for child in case if child.tag != "system-out"] for case in suite.iter("testcase")]


def of_checks(item, suite):
    """The cases without that of the run."""
    return list(suite.iter("testcase"))[item.run is not None and item.run.state != "completed" :]


def properties(suite):
    return {item.get("name"): item.get("value") for item in suite.iter("property")}


@pytest.mark.parametrize("name", CORPUS)
def test_every_kind_of_verdict_is_valid_and_honest(name):
    """Each verdict of the corpus keeps to the schema, has a score only with a grade, and nothing for staff."""
    root = exported(CORPUS[name])
    assert violations(root) == []
    assert ("score" in properties(root)) is may_hold_a_grade(CORPUS[name])
    assert CANARY not in tostring(root, encoding="unicode")


@settings(max_examples=150, deadline=None)
@given(st.lists(any_verdicts(), min_size=1, max_size=3))
def test_any_verdicts_are_valid_and_honest(verdicts):
    """So does whatever the schema allows, several at once; staff details stay inside."""
    root = exported(*verdicts)
    assert violations(root) == []
    assert CANARY not in tostring(root, encoding="unicode")
    for item, suite in zip(verdicts, root, strict=True):
        assert ("score" in properties(suite)) is may_hold_a_grade(item)
        expected = [KINDS[part.outcome.value] for part in item.checks]
        cases = of_checks(item, suite)
        assert [[child.tag for child in case if child.tag != "system-out"] for case in cases][
            : len(expected)
        ] == expected
        for part, case in zip(item.checks, cases, strict=False):
            for child in case:
                if part.parts is None:
                    assert "".join((child.text or "").split()) in "".join(plain(part.feedback).split())


@settings(max_examples=150, deadline=None)
@given(any_verdicts())
def test_a_suite_looks_as_good_as_its_verdict_and_no_better(item):
    """A verdict that is not a pass has a case that is none, whatever its checks say."""
    cases = results(exported(item))
    found = [tag for tags in cases for tag in tags]
    before = len(item.checks) + len(cases) - len(of_checks(item, exported(item)))
    for own in cases[before:]:
        assert not set(own).intersection(tag for tags in cases[:before] for tag in tags), "another case shows it"
    if item.status is Status.PASSED:
        assert len(found) == sum(part.outcome is not Outcome.PASSED for part in item.checks)
    else:
        wanted = {"failed": {"failure"}, "error": {"error"}, "rejected": {"failure", "error"}}
        assert wanted.get(item.status.value, {"skipped"}) & set(found)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rejected", "failure"),
        ("error", "error"),
        ("queue_full", "error"),
        ("malformed", "error"),
        ("cancelled", "error"),
    ],
)
def test_a_verdict_without_checks_is_one_case(name, kind):
    """What the platform has to mend, staff cancelled, or failed on our side, is no failure of the learner."""
    root = exported(CORPUS[name])
    assert results(root) == [[kind]]
    assert root.find(f".//{kind}").get("type") == CORPUS[name].code


def test_the_run_is_a_case_of_its_own():
    """It stands first; its message is the outcome, its text the rest, and what was printed is output."""
    root = exported(CORPUS["not_reached"])
    first, *others = root.iter("testcase")
    assert first.get("name") == "run"
    failure = first.find("failure")
    assert (failure.get("type"), failure.get("message")) == (
        "run.raised",
        "Your code stopped at cell 3, line 2 (NameError): `y` was never set.",
    )
    assert "was never set" not in failure.text
    assert "    >    2 | x = y\n" in f"{failure.text}\n".replace("         ", "    ")
    assert "What to do: Set `y` in a cell above." in failure.text
    assert all(line in first.find("system-out").text for line in PRINTED.splitlines())
    assert [[child.tag for child in case] for case in others] == [["skipped"]] * 4


@pytest.mark.parametrize(
    ("name", "kind"), [("needs_gpu", "skipped"), ("our_fault_and_stopped", "skipped"), ("passed_and_stopped", None)]
)
def test_a_run_that_stopped_looks_no_worse_than_its_verdict(name, kind):
    """A rehearsal without a GPU decides nothing, and code that stopped after everything was there has passed."""
    first = next(exported(CORPUS[name]).iter("testcase"))
    assert [child.tag for child in first] == ([kind] if kind else []) + ["system-out"]
    assert ("What to do" in first.find("system-out").text) is (kind is None)


def test_feedback_is_told_in_its_parts():
    """The message is the outcome, the text the rest; advice on what passed is output."""
    passed, failed = exported(CORPUS["report_told"]).iter("testcase")
    failure = failed.find("failure")
    assert failure.get("message") == "`dataset_dir` is not defined."
    assert failure.text.startswith("There is `data_root`")
    assert "What to do: Add this line:\n    dataset_dir = data_root\nAttention: Images" in failure.text
    assert [child.tag for child in passed] == ["system-out"]
    assert passed.find("system-out").text.startswith("Attention: Images are not normalised.")


def test_hostile_text_comes_back_unharmed():
    """Markup, closing tags and sections stay text; what XML 1.0 cannot hold is replaced."""
    text = f"{ALL_HOSTILE}]]><![CDATA[ &amp; \ufffe\uffff\r\n\ttail"
    item = verdict(status=Status.FAILED, score=0.0, checks=(check(outcome=Outcome.FAILED, feedback=text),))
    (failure,) = exported(item).iter("failure")
    assert failure.text == plain(text)
    assert "]]><![CDATA[ &amp; \ufffd\ufffd\ufffd\n\ttail" in failure.text
    assert "\n" not in failure.get("message")


def test_two_checks_of_one_name_stay_two():
    """Readers that know cases by class and name see both."""
    item = verdict(checks=(check("a"), check("a"), check("a"), check("submission")))
    names = [case.get("name") for case in exported(item).iter("testcase")]
    assert len(set(names)) == len(names) == 4


def test_the_submission_is_one_segment_of_the_class():
    """Jenkins cuts class names at the last dot."""
    (case,) = exported(verdict(submission_id="lms:a.b..c", checks=(check(),))).iter("testcase")
    assert case.get("classname") == "dali-pipelines.lms:a%2Eb%2E%2Ec"


def test_the_same_verdicts_give_the_same_bytes():
    """Nothing depends on time or chance."""
    assert junit(list(CORPUS.values())) == junit(list(CORPUS.values()))


CASE = '<testcase name="t" time="0.1"/>'
SKIPPED = '<testcase name="t" time="0"><skipped type="x"/></testcase>'
BOTH = '<testcase name="t" time="0"><error type="e"/><failure type="f"/></testcase>'


def suite(cases=CASE, tests=1, failures=0, errors=0):
    """The text of a suite with these cases and counts."""
    counts = f'tests="{tests}" failures="{failures}" errors="{errors}" skipped="0"'
    return f'<testsuite name="a" {counts}>{cases}</testsuite>'


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("<testsuite/>", "the root"),
        ('<testsuites colour="red"/>', "colour"),
        ('<testsuites time="1,5"/>', "time"),
        ("<testsuites>text</testsuites>", "holds text"),
        ("<testsuites><testcase/></testsuites>", "holds testcase"),
        ("<testsuites><testsuite/></testsuites>", "lacks the attribute errors"),
        (f'<testsuites tests="2">{suite()}</testsuites>', "tests of testsuites"),
        (f'<testsuites>{suite()}<x xmlns="y"/></testsuites>', "holds {y}x"),
        (f"<testsuites>{suite(SKIPPED, failures=1)}</testsuites>", "skipped has the attribute type"),
        (f"<testsuites>{suite(failures=1)}</testsuites>", "failures of suite a is 1"),
        (f"<testsuites>{suite(CASE + CASE, tests=2)}</testsuites>", "two cases of one name"),
        (f"<testsuites>{suite(BOTH, failures=1, errors=1)}</testsuites>", "another order"),
    ],
)
def test_the_table_refuses_what_the_schemas_refuse(broken, problem):
    """Each kind of mistake is found and named."""
    assert problem in "; ".join(violations(fromstring(broken)))  # noqa: S314 - our own document
