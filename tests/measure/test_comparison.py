"""What a learner is compared with: a fair loader takes part in every comparison, and speaks alone only where it may."""

import pytest

from grader_service.measure.baselines import Baselines
from grader_service.measure.comparison import fair_settings, reference_settings
from grader_service.measure.graph_timing import _may_screen
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm

PLAN = MeasurementPlan()
FAIR = fair_settings(PLAN, 4, 32)


@pytest.mark.parametrize(
    "worse",
    [{"batch_size": 1}, {"pin_memory": False}, {"persistent_workers": False}, {"prefetch_factor": 1}],
)
def test_whatever_holds_a_loader_back_has_the_fair_reference_beside_it(worse):
    """As many workers as are fair do not make one image at a time fair."""
    declared = FAIR.model_copy(update=worse)
    assert reference_settings(declared, FAIR) == {Arm.DECLARED: declared, Arm.FAIR: FAIR}


def test_a_loader_that_is_fair_is_timed_once():
    """The declared reference is the fair one then."""
    assert reference_settings(FAIR, FAIR.model_copy()) == {Arm.DECLARED: FAIR}


@pytest.mark.parametrize(("batch", "fair"), [(1, 16), (4, 16), (16, 16), (100, 100), (256, 256), (4096, 256)])
def test_the_fair_batch_is_the_graphs_own_within_reason(batch, fair):
    """A graph of tiny or of huge batches does not spoil the reference."""
    assert fair_settings(PLAN, 4, batch).batch_size == fair


@pytest.mark.parametrize(
    ("declared", "alone"),
    [
        ({}, True),
        ({"batch_size": 1}, True),
        ({"batch_size": 4096}, True),
        ({"num_workers": 0}, True),
        ({"num_workers": FAIR.num_workers + 1}, False),
        (None, False),
    ],
)
def test_a_kept_reference_is_no_answer_to_more_workers(declared, alone):
    """With more workers the declared reference may be the faster one; without a loader of the learner it is needed."""
    settings = {} if declared is None else {Arm.LEARNER: FAIR.model_copy(update=declared)}
    assert _may_screen(Baselines(FAIR, settings=settings)) is alone
