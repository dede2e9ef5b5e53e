"""What changed from one attempt to the next."""

from grader_service.model.verdict import Outcome
from grader_service.report.changes import reached, since
from tests.report.cases import stopped
from tests.report.factories import check, decision, measurement, step, unreached, verdict


def test_nothing_changed():
    """No line, also where the texts differ."""
    assert since(verdict(), verdict(feedback="Other words.")) == []


def test_steps_points_and_ratio_are_told_in_order():
    """By the lab's titles where it has some."""
    titled = step("baseline", Outcome.FAILED, 0.0).model_copy(update={"title": "Your images"})
    now = verdict(
        steps=(titled, step("benchmark")), score=25.0, measurement=measurement(decision=decision(1.5, 1.4, 1.6))
    )
    assert since(verdict(), now) == ["Your images: passed → failed", "Points: 50 → 25", "Ratio: 1.39 → 1.50"]


def test_a_step_that_was_not_reached_is_called_so():
    """On either side; from a failure to not reached is a change too."""
    failed = verdict(
        steps=(step("baseline", Outcome.FAILED, 0.0), step("benchmark", Outcome.FAILED, 0.0)),
        checks=(check(outcome=Outcome.FAILED), unreached("throughput_ratio", "benchmark")),
        score=0.0,
        measurement=None,
    )
    assert since(failed, stopped()) == ["The baseline: failed → not reached"]
    assert since(stopped(), failed) == ["Baseline: not reached → failed"]


def test_a_score_that_nobody_knows_is_no_zero():
    """Points are compared where both sides have some."""
    assert since(verdict(score=None), verdict(score=25.0)) == []


def test_a_step_with_anything_to_look_at_was_reached():
    """One of two checks suffices; a step without checks is not said to be missed."""
    assert not reached([unreached(), unreached("cuda_batch")])
    assert reached([unreached(), check("cuda_batch")])
    assert reached([])


def test_steps_that_one_side_lacks_are_left_out():
    """A lab may have got another step since."""
    assert since(verdict(steps=(step("baseline", Outcome.FAILED, 0.0),)), verdict()) == ["Baseline: failed → passed"]
