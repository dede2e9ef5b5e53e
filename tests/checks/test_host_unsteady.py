"""What the check says of a host that spoiled its blocks, and what it tells staff."""

from checks.throughput_ratio.check import CHECK, Params
from grader_service.model.measurement import Corroboration
from grader_service.model.verdict import Outcome
from tests.factories import a_block, a_measurement, an_evidence

UNSTEADY = "12 of 13 blocks were discarded: the GPU's clocks were held down: heat (12 blocks)"


def judge(measurement, threshold=1.1):
    return CHECK.judge(CHECK.observe(an_evidence(measurement=measurement)), Params(threshold=threshold))


def spoiled(valid):
    """Twelve discarded blocks, after `valid` ones at twice the baseline."""
    blocks = [
        *(a_block(i, 2.0 + i / 100) for i in range(valid)),
        *(a_block(valid + i, 0.01, spoiled="heat") for i in range(12)),
    ]
    return a_measurement(blocks=tuple(blocks), decision=None, unsteady=UNSTEADY)


def test_an_unsteady_host_is_nobodys_failure():
    """Neither pass nor failure, no score, and the learner is told that it is not his fault."""
    for valid in (0, 1, 3):
        result = judge(spoiled(valid))
        assert (result.outcome, result.code, result.score) == (Outcome.INCONCLUSIVE, "ratio.host_unsteady", None)
        assert "not your fault" in result.feedback
        assert "heat" in result.feedback
        assert result.details["discarded"]["block 5"] == "heat"


def test_a_look_that_was_reached_still_answers():
    """Judged at another threshold, the valid blocks may be enough."""
    assert judge(spoiled(4)).code == "ratio.ok"
    assert judge(spoiled(4), threshold=3.0).code == "ratio.too_low"


def test_flags_are_for_staff_and_change_nothing():
    """They stand in the details, not in the feedback, and the outcome is the same."""
    flag = "the GPU was busy (55 % SM) in the windows of reference_fair, which only copies batches to it"
    flagged = judge(a_measurement(corroboration=Corroboration(flags=(flag,))))
    plain = judge(a_measurement())
    assert flagged.details["flags"] == [flag]
    assert (flagged.outcome, flagged.feedback) == (plain.outcome, plain.feedback)
    assert "flags" not in plain.details
    assert "discarded" not in plain.details


def test_valid_blocks_that_decide_nothing_leave_the_host_to_blame():
    """Four blocks around the threshold are an undecided look, and no more could be had."""
    blocks = [*(a_block(i, ratio) for i, ratio in enumerate((1.0, 1.25, 1.05, 1.2))), *spoiled(4).blocks[4:]]
    result = judge(a_measurement(blocks=tuple(blocks), decision=None, unsteady=UNSTEADY))
    assert (result.outcome, result.code) == (Outcome.INCONCLUSIVE, "ratio.host_unsteady")
