"""The sequential test decides as the plan says: in logarithms, look by look, attempt by attempt."""

import math
import pathlib

import pytest

from grader_service.labs.specs import lab_text, read_lab
from grader_service.measure.sequential_test import allow_for_host, bounds_at, decide, replay, spent
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import HostBlock, HostEffect

PLAN = MeasurementPlan()
NOISY = [1.0, 1.2]


def logs(*ratios):
    return [math.log(ratio) for ratio in ratios]


def a_host(ratio):
    return HostEffect(ratio=ratio, blocks=(HostBlock(dali=ratio, pytorch=1.0),))


@pytest.mark.parametrize("ratios", [(5, 5.1, 4.9), (5, 5, 5.1, 5, 4.9)], ids=["three", "five"])
def test_no_decision_before_or_between_looks(ratios):
    """Three blocks of four say nothing, however clear, and five are no look."""
    assert decide(logs(*ratios), PLAN, 1.1) is None


def test_a_clear_ratio_is_decided_at_the_first_look():
    """Twice the threshold needs four blocks."""
    decision = decide(logs(2.2, 2.3, 2.1, 2.25), PLAN, 1.1)
    assert (decision.outcome, decision.look, decision.blocks_used) == ("passed", 1, 4)
    assert decision.interval.low < decision.ratio < decision.interval.high


def test_the_last_look_leads_to_one_extension():
    """Undecided after twelve blocks is no answer yet; four more are the end."""
    assert decide(logs(*(NOISY * 6)), PLAN, 1.1) is None
    decision = decide(logs(*(NOISY * 8)), PLAN, 1.1)
    assert (decision.outcome, decision.look, decision.blocks_used) == ("inconclusive", 5, 16)
    assert "once extended, 16" in decision.rule


def test_the_extension_can_decide():
    """What twelve blocks leave open, sixteen like them may show."""
    blocks = logs(*([1.1735 * 1.05, 1.1735 / 1.05] * 8))
    assert decide(blocks[:12], PLAN, 1.1) is None
    assert decide(blocks, PLAN, 1.1).outcome == "passed"


def test_without_an_extension_the_last_look_answers():
    """A plan may go without."""
    plan = MeasurementPlan(extension_blocks=0)
    assert (plan.all_looks, plan.most_blocks) == ((4, 6, 8, 12), 12)
    assert decide(logs(*(NOISY * 6)), plan, 1.1).outcome == "inconclusive"


def test_when_no_more_blocks_come_there_is_an_answer():
    """Five blocks are no look, but may be all that there will ever be."""
    assert decide(logs(1.0, 1.2, 1.0, 1.2, 1.1), PLAN, 1.1, last=True).outcome == "inconclusive"


def test_equal_blocks_do_not_close_the_interval_to_a_point():
    """A clock's granularity is no certainty."""
    interval = decide(logs(2, 2, 2, 2), PLAN, 1.1).interval
    assert interval.high > interval.low


def test_one_block_is_no_evidence():
    """A spread needs two."""
    assert decide(logs(9.0), PLAN, 1.1, last=True) is None
    assert replay(logs(9.0), PLAN, 1.1) is None


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [(1.1, "inconclusive"), (1.0999, "failed"), (1.1 * 1.0001, "inconclusive"), (1.1 * 1.001, "passed")],
)
def test_nothing_is_rounded(ratio, outcome):
    """Exactly the threshold, or what rounds to it, does not pass, however equal the blocks are."""
    assert decide(logs(*([ratio] * 16)), PLAN, 1.1).outcome == outcome


def test_attempts_share_one_budget():
    """Over any number of attempts the parts add up to the whole, and the first one has most of it."""
    parts = [spent(PLAN.alpha_pass, attempt) for attempt in range(1, 100_001)]
    assert sum(parts) == pytest.approx(PLAN.alpha_pass, rel=1e-4)
    assert sum(parts) < PLAN.alpha_pass
    assert parts[0] / parts[9] == pytest.approx(100)


def test_a_later_attempt_needs_more():
    """Blocks that pass at first are not enough the tenth time; the rule says which attempt it was."""
    blocks = logs(1.3, 1.32, 1.28, 1.31, 1.29, 1.3)
    assert decide(blocks, PLAN, 1.1).outcome == "passed"
    assert decide(blocks, PLAN, 1.1, attempt=200) is None
    late = decide(blocks, PLAN, 1.1, attempt=200, last=True)
    assert (late.outcome, late.attempt) == ("inconclusive", 200)
    assert "attempt 200" in late.rule


def test_clear_cases_are_for_the_first_look_of_a_first_attempt():
    """Nowhere else is there a bound that does not grow with the SD seen."""
    assert math.isfinite(bounds_at(PLAN, 4, 1).clear_pass)
    assert math.isinf(bounds_at(PLAN, 4, 2).clear_pass)
    assert math.isinf(bounds_at(PLAN, 6, 1).clear_fail)
    assert math.isinf(bounds_at(MeasurementPlan(clear_share=0.0), 4, 1).clear_pass)


def test_a_clear_case_must_be_quiet():
    """The same mean with an SD above the plan's is not clear."""
    quiet = logs(1.5 * 1.06, 1.5 / 1.06, 1.5 * 1.06, 1.5 / 1.06)
    loud = logs(1.5 * 1.12, 1.5 / 1.12, 1.5 * 1.12, 1.5 / 1.12)
    assert decide(quiet, PLAN, 1.1).outcome == "passed"
    assert decide(loud, PLAN, 1.1) is None


def test_stored_blocks_are_judged_as_they_were_measured():
    """A replay stops where the run stopped, also when more blocks lie there."""
    blocks = logs(2.2, 2.3, 2.1, 2.25, 0.1, 0.1)
    assert replay(blocks, PLAN, 1.1) == decide(blocks[:4], PLAN, 1.1)
    assert replay(logs(*(NOISY * 8)), PLAN, 1.1) == decide(logs(*(NOISY * 8)), PLAN, 1.1)


@pytest.mark.parametrize("ratios", [(0.9, 0.91, 0.89, 0.9), tuple(NOISY * 8)])
def test_a_host_that_cannot_show_the_effect_fails_nobody(ratios):
    """Below the floor the outcome is inconclusive, with the reason; above it the outcome stands."""
    decision = decide(logs(*ratios), PLAN, 1.1)
    weak = allow_for_host(decision, a_host(1.29), PLAN)
    assert (weak.outcome, weak.reason) == ("inconclusive", "host_cannot_show_effect")
    assert allow_for_host(decision, a_host(1.3), PLAN) == decision
    assert allow_for_host(decision, None, PLAN) == decision


def test_a_failure_by_two_blocks_is_the_graphs_own_on_a_weak_host():
    """Two blocks that differ give a wide interval; both far below the threshold, they excuse nothing."""
    decision = decide(logs(0.05, 0.25), PLAN, 1.1)
    assert decision.outcome == "failed"
    assert decision.interval.high > 1.1
    assert allow_for_host(decision, a_host(1.02), PLAN) == decision
    assert allow_for_host(decision, a_host(0.5), PLAN).outcome == "inconclusive"


def test_a_pass_needs_no_excuse():
    """Who beats the threshold on a weak host has passed."""
    decision = decide(logs(2.2, 2.3, 2.1, 2.25), PLAN, 1.1)
    assert allow_for_host(decision, a_host(1.0), PLAN) == decision


def test_a_host_is_weak_below_the_threshold_itself():
    """A lab that asks for more than the floor cannot ask it of a host that does not reach it."""
    decision = decide(logs(1.4, 1.41, 1.39, 1.4), PLAN, 2.0)
    assert decision.outcome == "failed"
    assert allow_for_host(decision, a_host(1.9), PLAN).outcome == "inconclusive"
    assert allow_for_host(decision, a_host(2.1), PLAN).outcome == "failed"


def test_the_labs_plan_is_the_one_that_is_tested():
    """The lab's numbers are the defaults, for which the operating characteristic is pinned."""
    assert read_lab(lab_text("dali-pipelines"), "lab").measurement == PLAN


def test_the_rules_numbers_stand_in_the_documentation():
    """`docs/decision.md` names each number of the decision as the plan has it."""
    section = (pathlib.Path(__file__).parents[2] / "docs" / "decision.md").read_text()
    for number in ("4, 6, 8 and 12", "16", f"{PLAN.clear_sd:.0%}".replace("%", " %"), f"{PLAN.host_floor:g}"):
        assert number in section


@pytest.mark.parametrize(
    ("ratios", "outcome"), [((4.5, 3.9), "passed"), ((0.2, 0.31), "failed"), ((9.0, 3.8), None), ((0.2, 0.33), None)]
)
def test_a_ratio_beyond_the_bound_ends_after_two_blocks(ratios, outcome):
    """Each block alone must lie 3.5 times beyond the threshold, 1.1: above 3.85 or below 0.314."""
    decision = decide(logs(*ratios), PLAN, 1.1)
    assert (decision and (decision.outcome, decision.blocks_used)) == (outcome and (outcome, 2))


def test_only_a_first_attempt_may_end_by_two_blocks():
    """Later attempts, and labs that leave the rule out, go on to the first look."""
    two = logs(8.0, 8.1)
    assert decide(two, PLAN, 1.1, attempt=2) is None
    assert decide(two, MeasurementPlan(glaring=None), 1.1) is None
    assert replay([*two, *two], PLAN, 1.1, attempt=2).blocks_used == 4


def test_an_end_by_two_blocks_is_the_same_when_it_is_judged_again():
    """Stored blocks are replayed from the first stop; at a threshold that they do not dwarf they say what they can."""
    two = logs(8.0, 8.1)
    assert replay(two, PLAN, 1.1).outcome == "passed"
    assert replay(two, PLAN, 4.0).outcome == "inconclusive"
