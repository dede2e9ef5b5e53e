"""What learners read of a check, and what advice does to score and status."""

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.api import failed, passed, undecided
from checks.stopped import not_reached
from grader_service.judging import rubric, verdicts
from grader_service.judging.checks import Judged, Judgement
from grader_service.judging.run_reporting import report
from grader_service.model.lab import LabCheck, LabSpec, LabStep
from grader_service.model.submission import Submission
from grader_service.model.verdict import Outcome, Status
from tests.factories import an_evidence

OPEN = [outcome for outcome in Outcome if outcome not in {Outcome.PASSED, Outcome.FAILED}]
RESULTS = {
    "passed": lambda name: passed(f"secret of {name}", code=f"{name}.ok"),
    "failed": lambda name: failed(f"{name}.bad", f"secret of {name}", score=0.5, details={"seen": 3}),
    "not_reached": lambda _: not_reached(),
} | {outcome.value: lambda name, o=outcome: undecided(o, f"{name}.open", f"secret of {name}") for outcome in OPEN}


def composed(*steps):
    """The verdict on steps of checks, each given as (outcome, fields of `LabCheck`)."""
    made = []
    judged = []
    for number, step in enumerate(steps):
        checks = tuple(
            LabCheck.model_validate({"id": f"c{number}{index}", "points": 10} | fields)
            for index, (_, fields) in enumerate(step)
        )
        made.append(LabStep(id=f"s{number}", title="S", checks=checks))
        judged += [
            Judged(made[-1], check, "1", "1 (x 1)", RESULTS[outcome](check.id))
            for check, (outcome, _) in zip(checks, step, strict=True)
        ]
    lab = LabSpec(schema_id="grader.lab/v1", id="l", version="1.0.0", title="L", steps=tuple(made))
    submission = Submission(submission_id="t:1", lab="l", filename="f.py", sha256="0" * 64, size_bytes=1)
    evidence = an_evidence()
    return verdicts.compose(submission, lab, lab.steps, Judgement(report(evidence), judged), evidence)


def test_full_feedback_stays_as_it_is():
    """The default changes nothing: no word is replaced, and nothing is added for staff."""
    verdict = composed([("failed", {})])
    assert verdict.checks[0].feedback == "secret of c00"
    assert dict(verdict.checks[0].details) == {"seen": 3}
    assert verdict.feedback == "0 of 1 checks passed.\nStep s0: secret of c00"


@pytest.mark.parametrize("outcome", list(Outcome), ids=lambda outcome: outcome.value)
@pytest.mark.parametrize("visibility", ["outcome", "hidden"])
def test_kept_feedback_is_for_staff(outcome, visibility):
    """The words are in the details and nowhere else that a learner reads."""
    verdict = composed([(outcome.value, {"feedback": visibility})], [("failed", {})])
    check = verdict.checks[0]
    assert check.details["staff_feedback"] == "secret of c00"
    assert check.visibility == visibility
    assert check.outcome is outcome
    for text in (check.feedback, check.parts.text, verdict.feedback):
        assert "secret of c00" not in text
    assert "secret of c10" in verdict.feedback


def test_an_outcome_names_its_code():
    """Whether it passed, and the code."""
    verdict = composed([("failed", {"feedback": "outcome"})])
    assert verdict.checks[0].feedback == "This check did not pass. Its code is c00.bad."
    assert verdict.feedback == "0 of 1 checks passed.\nStep s0: This check did not pass. Its code is c00.bad."
    assert verdict.code == "c00.bad"


def test_what_was_not_reached_says_nothing_else():
    """Neither words nor a code of the check, whatever the lab shows."""
    for fields in ({}, {"feedback": "outcome"}):
        verdict = composed([("passed", {}), ("not_reached", fields)])
        assert (verdict.checks[1].feedback, verdict.checks[1].score) == ("Not reached.", 0.0)
        assert verdict.feedback == "1 of 2 checks passed.\nNot reached: s0."
        assert (verdict.status, verdict.score) == (Status.FAILED, 10.0)


def test_a_hidden_check_is_the_same_whatever_came_out():
    """Its text says nothing, the summary does not count it, and the verdict's code is that of one that is shown."""
    texts = {composed([(outcome.value, {"feedback": "hidden"})]).checks[0].feedback for outcome in Outcome}
    assert texts == {"This check was graded; the lab does not show its result."}
    verdict = composed([("failed", {"feedback": "hidden"}), ("passed", {}), ("failed", {"feedback": "hidden"})])
    assert verdict.feedback == (
        "1 of 1 checks passed.\nStep s0: This check was graded; the lab does not show its result."
    )
    assert verdict.code == "grade.failed"
    assert verdict.status is Status.FAILED
    assert composed([("failed", {"feedback": "hidden"}), ("failed", {})]).code == "c01.bad"


def test_advice_does_not_fail_a_step():
    """The learner passes, reads the advice, and misses its points."""
    verdict = composed([("passed", {}), ("failed", {"optional": True})])
    assert verdict.status is Status.PASSED
    assert verdict.code == "grade.passed"
    assert verdict.steps[0].outcome is Outcome.PASSED
    assert (verdict.score, verdict.max_score) == (15.0, 20.0)
    assert verdict.feedback == "Every step passed.\nAdvice on step s0, not needed to pass: secret of c01"
    assert verdict.checks[1].outcome is Outcome.FAILED
    assert verdict.checks[1].optional is True


def test_advice_does_not_mend_a_step():
    """Its points count, its outcome does not."""
    verdict = composed([("failed", {}), ("passed", {"optional": True})])
    assert verdict.status is Status.FAILED
    assert (verdict.score, verdict.max_score) == (15.0, 20.0)
    assert verdict.feedback == "0 of 1 checks passed.\nStep s0: secret of c00"
    assert verdict.code == "c00.bad"


@pytest.mark.parametrize("outcome", OPEN, ids=lambda outcome: outcome.value)
def test_undecided_advice_costs_nothing(outcome):
    """It is left out of score and maximum, where an undecided check that is needed makes the score unknown."""
    verdict = composed([("passed", {}), (outcome.value, {"optional": True})])
    assert verdict.status is Status.PASSED
    assert (verdict.score, verdict.max_score) == (10.0, 10.0)
    assert composed([("passed", {}), (outcome.value, {})]).score is None


@pytest.mark.parametrize("outcome", ["passed", "failed", "skipped"])
def test_advice_may_be_worth_nothing(outcome):
    """With 0 points it is judged and shown."""
    verdict = composed([("passed", {}), (outcome, {"optional": True, "points": 0})])
    assert verdict.status is Status.PASSED
    assert (verdict.score, verdict.max_score) == (10.0, 10.0)
    assert verdict.checks[1].max_score == 0


def test_hidden_advice_is_not_mentioned():
    """Neither in the summary nor in its own text."""
    verdict = composed([("passed", {}), ("failed", {"optional": True, "feedback": "hidden"})])
    assert verdict.feedback == "Every step passed."


FIELDS = st.fixed_dictionaries(
    {}, optional={"feedback": st.sampled_from(["full", "outcome", "hidden"]), "optional": st.booleans()}
)
STEPS = st.lists(
    st.lists(st.tuples(st.sampled_from(list(RESULTS)), FIELDS), max_size=3).map(lambda step: [("passed", {}), *step]),
    min_size=1,
    max_size=3,
)


@given(STEPS)
def test_laws_of_every_verdict(steps):
    """Status comes from needed checks alone; a score is absent only through them; kept words stay kept."""
    verdict = composed(*steps)
    flat = [(check, fields) for check, (_, fields) in zip(verdict.checks, itertools.chain(*steps), strict=True)]
    needed = [check for check, fields in flat if not fields.get("optional")]
    assert verdict.status is Status(rubric.worst(check.counted for check in needed).value)
    assert (verdict.score is None) == any(check.score is None for check in needed)
    if verdict.score is not None:
        assert 0 <= verdict.score <= verdict.max_score
    said = json.dumps([verdict.feedback, [[check.feedback, check.parts.text] for check in verdict.checks]])
    kept = {check.id for check, fields in flat if fields.get("feedback", "full") != "full"}
    assert kept.isdisjoint(re.findall(r"secret of (\w+)", said))
