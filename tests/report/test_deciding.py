"""The decision in words: the rule, the look, the attempt and the host."""

import math

import pytest

from grader_service.measure.sequential_test import decide
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import HostBlock, HostEffect
from grader_service.report import deciding
from tests.report.factories import decision


def _rule(plan=None, threshold=1.1, **changes):
    return " ".join(deciding.rule(plan or MeasurementPlan(), threshold, **changes))


def _effect(ratio):
    blocks = tuple(HostBlock(dali=100.0 * part, pytorch=100.0) for part in (ratio - 0.1, ratio + 0.1))
    return HostEffect(ratio=ratio, blocks=blocks)


def test_rule_takes_its_numbers_from_the_plan():
    """No number of the rule is fixed in words."""
    plan = MeasurementPlan(
        looks=(3, 5),
        extension_blocks=2,
        alpha_pass=0.01,
        alpha_fail=0.1,
        look_share=0.45,
        declared_floor=0.8,
        fair_floor=0.7,
        block_s=2.5,
    )
    text = _rule(plan, 1.25)
    for expected in (
        "2.5 s",
        "80%",
        "70%",
        "After 3 and 5 valid blocks",
        "2 more blocks follow, with a last look after 7",
        "above 1.25",
        "at most 1%",
        "at most 10%",
        "45% of its part is shared equally by the looks",
    ):
        assert expected in text
    assert "above the threshold" in _rule(plan, None)


def test_rule_without_an_extension_has_none():
    """A plan that ends with its last look does not speak of more blocks."""
    assert "follow" in _rule()
    assert "follow" not in _rule(MeasurementPlan(extension_blocks=0))
    assert "1 more block follows" in _rule(MeasurementPlan(extension_blocks=1))


def test_clear_case_says_where_it_lies():
    """A mean just beyond the bounds that the page names ends a run at its first look, one within them does not."""
    assert "about 1.40× or more, or 0.92× or less" in _rule()
    spread = (-0.09, 0.09, -0.09, 0.09)
    for mean, outcome in ((1.41, "passed"), (1.38, None), (0.91, "failed"), (0.93, None)):
        found = decide([math.log(mean) + part for part in spread], MeasurementPlan(clear_most_sd=0.2), 1.1)
        assert (found and found.outcome) == outcome


@pytest.mark.parametrize(
    ("plan", "attempt"),
    [
        (MeasurementPlan(), 2),
        (MeasurementPlan(clear_share=0.0), 1),
        (MeasurementPlan(looks=(3, 6)), 1),
    ],
)
def test_clear_case_is_told_only_where_it_applies(plan, attempt):
    """Later attempts, plans without it and first looks of few blocks have no first-look bound."""
    assert "ends at the first look where" in _rule()
    assert "ends at the first look where" not in _rule(plan, attempt=attempt)


def test_rule_follows_the_tier():
    """Below tier A the learner's own code ran, on images that were new to it; in tier C building it counts."""
    by_graph, by_proof, cold = (_rule(tier=tier) for tier in ("A", "B", "C"))
    assert "your DALI graph" in by_graph
    assert "not seen before" not in by_graph
    for text in (by_proof, cold):
        assert "your DALI code" in text
        assert "DALI graph" not in text
        assert "images that it has not seen before" in text
    assert "time to build it counts" in cold
    assert "time to build it counts" not in by_proof


def test_ending_counts_the_look_of_the_extension():
    """Looks are counted over the whole plan, and the one after the extension is named."""
    plan = MeasurementPlan()
    assert deciding.ending(decision(), plan) == "Here look 2 of 5 ended it, after 6 blocks."
    last = deciding.ending(decision(look=5, blocks_used=16), plan)
    assert last == "Here look 5 of 5, the one after the extension, ended it, after 16 blocks."
    assert "look" in deciding.ending(decision(look=4, blocks_used=12), MeasurementPlan(extension_blocks=0))


def test_blocks_that_ended_between_looks_name_no_look():
    """Blocks that stopped early are not said to have reached a look."""
    found = decide([0.2, 0.3, 0.25], MeasurementPlan(), 1.1, last=True)
    text = deciding.ending(found, MeasurementPlan())
    assert text == "Here the blocks ended after 3 valid ones, where no look was due."


def test_budget_of_later_attempts():
    """A first attempt needs no word; a later one says its number and what it could spend."""
    plan = MeasurementPlan()
    assert deciding.budget(plan, 1) == ""
    text = deciding.budget(plan, 3)
    for expected in ("attempt number 3", "6.8% of the error", "at most 0.034%", "0.34% to fail"):
        assert expected in text
    assert "e-" not in deciding.budget(plan, 1000)


@pytest.mark.parametrize(
    ("ratio", "threshold", "needed", "weak"),
    [(1.2, 1.1, "1.3×", True), (1.3, 1.1, "1.3×", False), (1.4, 1.5, "1.5×", True), (1.29999, 1.1, "1.3×", True)],
)
def test_host_is_held_against_floor_and_threshold(ratio, threshold, needed, weak):
    """The higher of the two is wanted, and what is just below it is not rounded onto it."""
    text = deciding.host(_effect(ratio), MeasurementPlan(), decision(threshold=threshold))
    assert f"At least {needed} is wanted" in text
    assert ("nobody fails on it" in text) == weak
    assert ("so it can show the effect" in text) != weak
    if ratio == 1.29999:
        assert "1.3000×" in text


def test_host_tells_its_blocks():
    """Median, range and number of blocks."""
    text = deciding.host(_effect(1.2), MeasurementPlan(), None)
    assert "delivered 1.20× the images" in text
    assert "median of 2 blocks, 1.10× to 1.30×" in text
