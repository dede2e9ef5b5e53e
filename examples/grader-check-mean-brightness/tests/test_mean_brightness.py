"""Tests of the check; the fixtures come from the grader's plugin for pytest."""

import pytest

from grader_check_mean_brightness.check import mean_brightness

PROBE = "greys"
IMAGENET = [0.074, 0.205, 0.426]
OTHER = [0.004, 0.004, 0.004]
LAB = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


@pytest.fixture
def judged(evidence_builder, judge_check):
    """The result for what the probe saw."""

    def result(rows, **params):
        evidence = evidence_builder.probe(PROBE, {"rows": rows}).build()
        return judge_check(mean_brightness, evidence, **LAB, **params)

    return result


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([IMAGENET] * 3, "ok"),
        ([IMAGENET, [128, 128, 128]], "ok"),
        ([OTHER] * 3, "other_mean"),
        ([[-0.4, -0.3, 0.0], [0.5, 0.6, 0.8]], "varies"),
        ([], "no_rgb"),
    ],
)
def test_what_came_out_decides(judged, rows, code):
    """Only what is certain fails."""
    assert judged(rows, within=0.05).code == f"mean_brightness.{code}"


def test_the_tolerance_counts(judged):
    """The lab says how near is near enough."""
    assert judged([OTHER], within=0.5).outcome == "passed"
    assert judged([IMAGENET], within=0.001).outcome == "passed"


def test_the_feedback_says_what_to_do(judged):
    """A learner reads what came, what is wanted, and what to change."""
    result = judged([OTHER], within=0.05)
    for word in ("0.004", "0.426", "mean=(0.485", "std=(0.229"):
        assert word in result.feedback
    assert result.parts.next is not None


def test_a_graph_that_cannot_be_carried_is_no_failure(evidence_builder, judge_check):
    """What could not be looked at is not known to be wrong."""
    evidence = evidence_builder.probe(PROBE, status="no_graph").build()
    assert judge_check(mean_brightness, evidence).outcome == "unverified"
