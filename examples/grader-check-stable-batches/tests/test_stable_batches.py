"""Tests of the check; the fixtures come from the grader's plugin for pytest."""

import pytest
from grader_service.authoring.pytest_plugin import judged_controls

from grader_check_stable_batches.check import CHECK

STABLE = {"images": 16, "shapes": [[3, 64, 64]]}
RESIZE = {"operator": "Resize", "file": "submission.py", "line": 21}


def observed(*batches, **changes):
    """What the probe returns."""
    return {"batches": list(batches), "dtype": "float", "places": [RESIZE]} | changes


def test_one_shape_passes(evidence_builder, judge_check):
    """The feedback names type and shape, and the result rests on the graph."""
    evidence = evidence_builder.probe(
        "stable_batches", observed(STABLE, STABLE)
    ).build()
    result = judge_check(CHECK, evidence)
    assert (result.code, result.tier) == ("stable_batches.ok", "A")
    assert "float [16, 3, 64, 64]" in result.feedback


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        ({"images": 16, "shapes": [[3, 64, 64], [3, 64, 65]]}, "stable_batches.ragged"),
        ({"images": 16, "shapes": [[3, 64, 65]]}, "stable_batches.changes"),
        ({"images": 15, "shapes": [[3, 64, 64]]}, "stable_batches.changes"),
    ],
)
def test_another_shape_fails_at_the_learners_line(
    evidence_builder, judge_check, batch, code
):
    """Both shapes, the remedy and the line of the learner's own operator are named."""
    evidence = evidence_builder.probe("stable_batches", observed(STABLE, batch)).build()
    result = judge_check(CHECK, evidence)
    assert result.code == code
    for words in ("submission.py, line 21", "fn.resize(images, size=", "64"):
        assert words in result.feedback
    assert result.parts.next.place.line == 21


def test_without_a_graph_nothing_is_decided(evidence_builder, judge_check):
    """What could not be looked at is not known to be wrong."""
    evidence = evidence_builder.probe("stable_batches", status="no_graph").build()
    assert judge_check(CHECK, evidence).outcome == "unverified"


@judged_controls(CHECK)
def test_control_submissions(judged_control):
    """Each control is run in a sandbox and comes out as `controls.toml` says."""
    assert judged_control.problem == ""
