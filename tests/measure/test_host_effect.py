"""What the host can show is measured fairly, only when it matters, and never against a pass."""

import pytest

from grader_service.measure.host_effect import BLOCKS, host_ratio, needs_host_effect, with_host
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, ContentProof, HostBlock, HostEffect
from tests.factories import a_measurement
from tests.measure.test_blocks import SteadyArm

PLAN = MeasurementPlan()


def scripted(arm, rates):
    """An arm with a rate for each window, warm-up included."""
    return SteadyArm(arm, 1000, during=lambda window: rates[window - 1])


def test_the_ratio_is_the_median_over_blocks():
    """One block that the host disturbed does not decide, and the warm-up counts nowhere."""
    own = scripted(Arm.DALI, [9.0, 9.0, 200.0, 210.0, 900.0, 190.0])
    fair = scripted(Arm.FAIR, [9.0, 9.0, 100.0, 100.0, 100.0, 100.0])
    effect = host_ratio(own, fair, PLAN)
    assert effect.ratio == pytest.approx(2.05)
    assert [block.dali for block in effect.blocks] == pytest.approx([200.0, 210.0, 900.0, 190.0])
    assert len(effect.blocks) == BLOCKS


def test_blocks_go_there_and_back():
    """The order turns around, and windows are shorter than a graded block's."""
    log = []
    own, fair = SteadyArm(Arm.DALI, 1000, log=log), SteadyArm(Arm.FAIR, 1000, log=log)
    host_ratio(own, fair, PLAN)
    assert log[4:] == [Arm.DALI, Arm.FAIR, Arm.FAIR, Arm.DALI] * 2
    assert max(own.seconds) < PLAN.block_s


@pytest.mark.parametrize("lost_at", [0, 1, 2, 4])
def test_a_lost_arm_gives_no_number(lost_at):
    """Whenever our graph stops, there is nothing to say about the host."""
    assert host_ratio(SteadyArm(Arm.DALI, 100, lost_after=lost_at), SteadyArm(Arm.FAIR, 100), PLAN) is None


def test_only_what_is_no_pass_needs_it():
    """A pass needs no excuse; without a decision, or with images that do not count, there is none to excuse."""
    slow = a_measurement((0.8, 0.8, 0.82, 0.81))
    assert needs_host_effect(slow)
    content = ContentProof(delivered=96, identified=96, distinct=96, audited=8)
    assert needs_host_effect(slow.model_copy(update={"content": content}))
    replayed = content.model_copy(update={"problem": "replayed"})
    assert not needs_host_effect(slow.model_copy(update={"content": replayed}))
    assert not needs_host_effect(slow.model_copy(update={"decision": None}))
    assert not needs_host_effect(a_measurement())


def test_the_measurement_keeps_what_the_host_showed():
    """The decision allows for it, and the number stays for whoever judges again."""
    weak = HostEffect(ratio=1.05, blocks=(HostBlock(dali=105.0, pytorch=100.0),))
    found = with_host(a_measurement((0.8, 0.8, 0.82, 0.81)), weak)
    assert (found.decision.outcome, found.decision.reason) == ("inconclusive", "host_cannot_show_effect")
    assert found.host == weak
    assert with_host(a_measurement((0.8, 0.8, 0.82, 0.81)), None).decision.outcome == "failed"
