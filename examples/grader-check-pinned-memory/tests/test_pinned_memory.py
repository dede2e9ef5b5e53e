"""Tests of the check; the fixtures come from the grader's plugin for pytest."""

import pytest

from grader_check_pinned_memory.check import pinned_memory

PINNED = "discovery.loaders.0.pin_memory"
WORKERS = "discovery.loaders.0.num_workers"


@pytest.fixture
def judged(evidence_builder, judge_check):
    """The result for one loader."""

    def result(pinned, workers, least):
        evidence = evidence_builder.part(PINNED, pinned).part(WORKERS, workers).build()
        return judge_check(pinned_memory, evidence, least_workers=least)

    return result


@pytest.mark.parametrize(
    ("pinned", "workers", "code"),
    [
        (True, 3, "ok"),
        (True, 4, "ok"),
        (True, 2, "too_few"),
        (False, 3, "not_pinned"),
        (False, 0, "not_pinned"),
    ],
)
def test_both_settings_count(judged, pinned, workers, code):
    """Pinned memory and as many workers as the lab asks for."""
    assert judged(pinned, workers, least=3).code == f"pinned_memory.{code}"


@pytest.mark.parametrize("pinned", [True, False])
def test_the_feedback_says_what_to_do(judged, pinned):
    """A learner reads what was seen, what to do and what to write."""
    result = judged(pinned, 1, least=4)
    assert result.outcome == "failed"
    for word in (f"pin_memory={pinned}", "num_workers=1", "num_workers=4"):
        assert word in result.feedback
    assert result.parts.next is not None


def test_no_loader_fails_with_code_to_write(evidence_builder, judge_check):
    """Who has no loader reads how one is made."""
    evidence = evidence_builder.part("discovery.loaders", []).build()
    result = judge_check(pinned_memory, evidence, least_workers=2)
    assert result.code == "pinned_memory.no_loader"
    assert "pin_memory=True, num_workers=2" in result.feedback


def test_code_that_never_ended_was_not_reached(evidence_builder, judge_check):
    """How the code ended is told once in the verdict, and not by the check."""
    evidence = evidence_builder.ended("timed_out").build()
    assert judge_check(pinned_memory, evidence).code == "run.not_reached"
