"""The check `throughput_ratio`: only blocks decide, claims never do."""

from functools import partial

import pytest

from checks.throughput_ratio.check import throughput_ratio
from grader_service.model.discovery import Claim
from grader_service.model.evidence import CleanRoom
from grader_service.model.measurement import ClaimBesideMeasurement
from grader_service.model.verdict import Outcome, Tier
from tests.checks.judged import judged
from tests.checks.test_throughput_causes import NOISY, SLOW, arms
from tests.factories import a_discovery, a_measurement, an_evidence

judge = partial(judged, throughput_ratio)


def test_a_clear_ratio_passes():
    """Twice as fast is a pass on tier A."""
    result = judge(an_evidence())
    assert (result.outcome, result.code, result.tier) == (Outcome.PASSED, "ratio.ok", Tier.GRAPH)
    assert "2.00 times" in result.feedback


def test_a_clearly_lower_ratio_fails():
    """Slower than PyTorch is a failure with advice."""
    result = judge(an_evidence(measurement=a_measurement(SLOW)))
    assert (result.outcome, result.code, result.score) == (Outcome.FAILED, "ratio.too_low", 0.0)
    assert "device='mixed'" in result.parts.next.text


def test_noise_is_inconclusive_not_failed():
    """Twelve blocks around the threshold decide nothing, and give no score."""
    result = judge(an_evidence(measurement=a_measurement(NOISY)))
    assert (result.outcome, result.score) == (Outcome.INCONCLUSIVE, None)


def test_claims_are_never_an_input():
    """Any claim, or none, gives the same outcome."""
    for value in (1e9, 0.0, -5.0):
        claim = ClaimBesideMeasurement(name="dali_throughput", claimed=value, measured=100.0)
        slow = a_measurement((0.5, 0.5, 0.52, 0.51), claims=(claim,))
        discovery = a_discovery(dali_throughput=Claim(status="present", value=value, shown=str(value)))
        assert judge(an_evidence(discovery=discovery, measurement=slow)).code == "ratio.too_low"
    missing = a_discovery(dali_throughput=Claim(status="missing"), pytorch_throughput=Claim(status="missing"))
    assert judge(an_evidence(discovery=missing)).outcome is Outcome.PASSED


def test_a_sandbagged_baseline_is_credited_with_the_reference():
    """The feedback says so, and mentions num_workers=0."""
    measurement = a_measurement((1.2, 1.2, 1.2, 1.2), arms=arms(own=50.0, workers=0, best=900.0))
    feedback = judge(an_evidence(measurement=measurement)).feedback
    assert "6% of our reference, which set the baseline instead" in feedback
    assert "num_workers=0" in feedback


def test_a_graph_that_broke_while_timed_is_unverified():
    """Too few blocks for any test is not a failure of the ratio."""
    broken = a_measurement(blocks=(), decision=None, problem="it crashed")
    result = judge(an_evidence(measurement=broken))
    assert (result.outcome, result.code) == (Outcome.UNVERIFIED, "ratio.dali_stopped")


@pytest.mark.parametrize(
    "word", ["not_serializable", "operator_not_allowed", "reader_outputs", "dynamic_mode", "graph_failed"]
)
def test_what_was_not_carried_is_unverified(word):
    """No graph in the clean room, no ratio: tier D, never a pass."""
    room = CleanRoom(pipeline="p", problem=word, problem_text="why")
    result = judge(an_evidence(clean_room=room, measurement=None))
    assert (result.outcome, result.code, result.tier) == (Outcome.UNVERIFIED, "ratio.not_carried", Tier.CLAIMS)


def test_no_pipeline_fails():
    """Nothing built is no pass."""
    assert judge(an_evidence(discovery=a_discovery(pipelines=()))).code == "ratio.no_pipeline"
