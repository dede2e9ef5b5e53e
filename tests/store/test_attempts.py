"""Attempts are counted by what was measured, on both databases."""

from datetime import UTC, datetime

import pytest

from grader_service.model.verdict import Status, Verdict
from grader_service.retry_policy import RetryPolicy
from grader_service.store import leases, results
from grader_service.store.attempts import attempt_number, verdict_before
from tests.report.factories import verdict
from tests.store.factories import a_submission, accept


def measured(store, number, kind="measured", **changes):
    """Accepts a submission and stores its run's evidence."""
    accept(store, a_submission(number, **changes))
    claim = leases.claim(store, "run", "runner", 60)
    assert results.store_evidence(store, claim, kind, b"{}", {})


def test_the_first_is_the_first(store):
    """Before anything was measured, and for a submission that nobody knows."""
    accept(store, a_submission(1))
    assert attempt_number(store, "s:1") == 1
    assert attempt_number(store, "s:unknown") == 1


@pytest.mark.parametrize("kind", ["evidence", "rejection"])
def test_what_was_not_measured_counts_nothing(store, kind):
    """Code that stopped early, or an unusable file, spends no error."""
    measured(store, 1, kind=kind, sha="1")
    accept(store, a_submission(2, sha="2"))
    assert attempt_number(store, "s:2") == 1


def test_our_failures_count_nothing(store):
    """A run that failed by our fault, and the tries after it, are the same attempt."""
    accept(store, a_submission(1, sha="1"))
    leases.fail(store, leases.claim(store, "run", "runner", 60), "ours", RetryPolicy(max_attempts=3, delay_s=0.0))
    accept(store, a_submission(2, sha="2"))
    assert (attempt_number(store, "s:1"), attempt_number(store, "s:2")) == (1, 1)


def test_a_submission_keeps_its_number(store):
    """Running one again, later, is the attempt that it was, whether its verdict is out already or not."""
    for number in (1, 2, 3):
        measured(store, number, sha=str(number))
    assert [attempt_number(store, f"s:{number}") for number in (1, 2, 3)] == [1, 2, 3]


def test_the_same_file_under_another_id_is_another_attempt(store):
    """It is measured anew, which is one more chance for noise."""
    measured(store, 1, sha="1")
    accept(store, a_submission(2, sha="1"))
    assert attempt_number(store, "s:2") == 2


def test_learners_and_labs_are_counted_apart(store):
    """Nobody pays for another's attempts, nor for those at another lab; without a learner each is the first."""
    measured(store, 1, learner="ann")
    accept(store, a_submission(2, learner="bob"))
    accept(store, a_submission(3, learner="ann", lab="other-lab"))
    assert (attempt_number(store, "s:2"), attempt_number(store, "s:3")) == (1, 1)
    leases.claim(store, "run", "runner", 60)
    measured(store, 4, learner=None)
    accept(store, a_submission(5, learner=None))
    assert attempt_number(store, "s:5") == 1


def graded(store, number, status=Status.FAILED, **changes):
    """Accepts a submission and puts a verdict on it in force."""
    submission = a_submission(number, sha=str(number), **changes)
    accept(store, submission)
    assert results.store_evidence(store, leases.claim(store, "run", "runner", 60), "evidence", b"{}", {})
    claim = leases.claim(store, "judge", "judge", 60)
    made = verdict(verdict_id=f"v:{number}", submission_id=submission.submission_id, run_id=claim.run_id, status=status)
    assert results.store_verdict(store, claim, made)


def before(store, number):
    """The id of the verdict before a submission."""
    document = verdict_before(store, f"s:{number}")
    return None if document is None else Verdict.model_validate_json(document).verdict_id


def test_the_verdict_before_is_on_what_was_handed_in_last(store):
    """Measured or not; the first has none, and neither has one that nobody knows."""
    for number in (1, 2, 3):
        graded(store, number)
    assert [before(store, number) for number in (1, 2, 3, 4)] == [None, "v:1", "v:2", None]


@pytest.mark.parametrize("status", [Status.REJECTED, Status.ERROR])
def test_what_says_nothing_of_the_code_is_passed_over(store, status):
    """A rejection, an infrastructure failure, and what has no verdict yet."""
    graded(store, 1)
    graded(store, 2, status)
    accept(store, a_submission(3, sha="3"))
    accept(store, a_submission(4, sha="4"))
    assert before(store, 4) == "v:1"


def test_the_platforms_time_says_what_came_before(store):
    """One that came in late was handed in when it was."""
    graded(store, 1, submitted_at=datetime(2026, 9, 2, tzinfo=UTC))
    graded(store, 2, submitted_at=datetime(2026, 9, 1, tzinfo=UTC))
    assert (before(store, 1), before(store, 2)) == ("v:2", None)


def test_nobody_is_shown_anothers_verdict(store):
    """Nor one at another lab; who is nobody has none."""
    graded(store, 1, learner="ann")
    graded(store, 2, learner="bob")
    graded(store, 3, learner="ann", lab="other-lab")
    graded(store, 4, learner=None)
    graded(store, 5, learner=None)
    assert [before(store, number) for number in (2, 3, 5)] == [None, None, None]
