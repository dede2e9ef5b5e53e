"""A verdict as its learner sees it: on the page of staff, with the number of the attempt and what changed."""

import pytest

from grader_service.model.verdict import Status
from grader_service.store import leases, results
from tests.report.cases import stopped
from tests.report.factories import measurement, verdict
from tests.store.factories import a_submission, accept
from tests.web.client import Client, served


def graded(store, number, made):
    """Hands in a submission and puts this verdict on it in force, as `v:NUMBER`."""
    accept(store, a_submission(number, sha=str(number)))
    assert results.store_evidence(store, leases.claim(store, "run", "runner", 60), "evidence", b"{}", {})
    claim = leases.claim(store, "judge", "judge", 60)
    ids = {"verdict_id": f"v:{number}", "submission_id": f"s:{number}", "run_id": claim.run_id}
    assert results.store_verdict(store, claim, made.model_copy(update=ids))


@pytest.fixture
def visitor(quick_store):
    """Somebody who may read, where a learner's code stopped first and passed then."""
    graded(quick_store, 1, stopped())
    graded(quick_store, 2, verdict())
    with served(quick_store) as port:
        yield Client(port)


def test_the_pages_of_staff_say_how_the_run_ended(visitor):
    """On the verdict and on its submission, in words; nothing stands there where it came to its end."""
    for path in ("/verdicts/v:1", "/submissions/s:1"):
        text = visitor.get(path).text
        assert "Your code stopped at cell 3, line 2 (NameError): <code>y</code> was never set." in text
        assert "run.raised" in text
    for path in ("/verdicts/v:2", "/submissions/s:2"):
        assert 'class="stopped"' not in visitor.get(path).text


def test_the_report_is_for_staff_unless_the_learner_is_named(visitor):
    """The frame and the link beside it follow the page."""
    staff, learner = visitor.get("/verdicts/v:2").text, visitor.get("/verdicts/v:2?for=learner").text
    assert staff.count('"/verdicts/v:2/report"') == 2
    assert '"/verdicts/v:2?for=learner"' in staff
    assert learner.count('"/verdicts/v:2/report?for=learner"') == 2
    assert '"/verdicts/v:2"' in learner
    assert "Details for staff" in visitor.get("/verdicts/v:2/report").text
    assert "Details for staff" in visitor.get("/verdicts/v:2/report?for=staff").text
    shown = visitor.get("/verdicts/v:2/report?for=learner")
    assert "Details for staff" not in shown.text
    assert "30a5c63f5584221617bb05df0b1998dd" not in shown.text
    assert "allow-scripts" not in shown.headers["content-security-policy"]


def test_the_learner_sees_what_changed(visitor):
    """Code that stopped early was no attempt that counts, and is what came before all the same."""
    text = visitor.get("/verdicts/v:2/report?for=learner").text
    assert "<strong>Attempt 1.</strong> Since what you handed in before:" in text
    assert "Baseline: not reached → passed" in text
    assert 'class="attempt"' not in visitor.get("/verdicts/v:1/report?for=learner").text


def test_attempts_are_those_that_were_measured(quick_store):
    """As the measurement says; a verdict of another version before it leaves the number, and nothing to compare."""
    graded(quick_store, 1, verdict())
    graded(quick_store, 2, verdict(status=Status.FAILED, score=0.0, measurement=measurement(attempt=2)))
    with quick_store.transaction() as connection:
        connection.exec_driver_sql("update verdict set document = '{}' where verdict_id = 'v:1'")
    with served(quick_store) as port:
        text = Client(port).get("/verdicts/v:2/report?for=learner").text
    assert "<strong>Attempt 2.</strong></p>" in text


@pytest.mark.parametrize("path", ["/verdicts/v:2", "/verdicts/v:2/report"])
def test_there_is_no_report_for_others(visitor, path):
    """The answer says for whom there is one."""
    answer = visitor.get(f"{path}?for=<b>parents")
    assert answer.status == 400
    assert "known: learner, staff" in answer.text
    assert "<b>parents" not in answer.text
