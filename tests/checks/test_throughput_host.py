"""The check `throughput_ratio` where the host, or the number of attempts, has a say."""

import math

from checks.throughput_ratio.check import throughput_ratio
from grader_service.measure.sequential_test import decide
from grader_service.model.measurement import Corroboration, HostBlock, HostEffect
from grader_service.model.verdict import Outcome
from tests.checks.judged import judged
from tests.checks.test_throughput_causes import SLOW
from tests.factories import a_block, a_measurement, an_evidence

ABOVE = (1.3, 1.32, 1.28, 1.31, 1.29, 1.3)
UNSTEADY = "12 of 13 blocks were discarded: the GPU's clocks were held down: heat (12 blocks)"


def judge(measurement, threshold=1.1):
    return judged(throughput_ratio, an_evidence(measurement=measurement), threshold=threshold)


def a_host(ratio):
    return HostEffect(ratio=ratio, blocks=(HostBlock(dali=100.0 * ratio, pytorch=100.0),))


def test_nobody_fails_on_a_host_that_cannot_show_the_effect():
    """The outcome is inconclusive, without a score, and the feedback names the machine and its own ratio."""
    result = judge(a_measurement(SLOW, host=a_host(1.07)))
    assert (result.outcome, result.code, result.score) == (
        Outcome.INCONCLUSIVE,
        "ratio.host_cannot_show_effect",
        None,
    )
    assert "1.07 times" in result.feedback
    assert "nothing is counted for or against you" in result.parts.outcome
    assert "0.80 times" in result.parts.seen
    assert "above" not in result.feedback
    assert result.parts.next.text.startswith("Hand it in again")


def test_a_host_that_can_show_it_excuses_nothing():
    """Our own graph is fast there, so the learner's is slow."""
    assert judge(a_measurement(SLOW, host=a_host(2.4))).code == "ratio.too_low"


def test_a_graph_far_below_the_host_is_slow_by_itself():
    """A weak host does not excuse a graph that stays below half of what ours reaches there."""
    slow = (0.14, 0.15, 0.14, 0.15)
    assert judge(a_measurement(slow, host=a_host(1.2))).code == "ratio.too_low"
    assert judge(a_measurement(slow, host=a_host(0.2))).code == "ratio.host_cannot_show_effect"


def test_the_stored_host_ratio_counts_at_another_threshold():
    """Judged again at 3, what passed at 1.1 fails, unless the host showed less than 3 itself."""
    assert judge(a_measurement(host=a_host(5.0)), threshold=3.0).code == "ratio.too_low"
    assert judge(a_measurement(host=a_host(2.0)), threshold=3.0).code == "ratio.host_cannot_show_effect"


def test_a_later_attempt_is_judged_as_one():
    """The same blocks pass as a first attempt and not as a two-hundredth: the number is part of the evidence."""
    logs = [math.log(ratio) for ratio in ABOVE]
    plan = a_measurement().plan
    first = a_measurement(ABOVE)
    late = first.model_copy(update={"attempt": 200, "decision": decide(logs, plan, 1.1, attempt=200, last=True)})
    assert judge(first).outcome is Outcome.PASSED
    assert judge(late).code == "ratio.inconclusive"


def contaminated(valid):
    """Twelve discarded blocks, after `valid` ones at twice the baseline."""
    blocks = [
        *(a_block(i, 2.0 + i / 100) for i in range(valid)),
        *(a_block(valid + i, 0.01, spoiled="heat") for i in range(12)),
    ]
    return a_measurement(blocks=tuple(blocks), decision=None, unsteady=UNSTEADY)


def test_an_unsteady_host_is_nobodys_failure():
    """Neither pass nor failure, no score, and the learner is told that it is not his fault."""
    for valid in (0, 1, 3):
        result = judge(contaminated(valid))
        assert (result.outcome, result.code, result.score) == (Outcome.INCONCLUSIVE, "ratio.host_unsteady", None)
        assert "nothing is counted for or against you" in result.parts.outcome
        assert "heat" in result.feedback
        assert result.details["discarded"]["block 5"] == "heat"


def test_a_look_that_was_reached_still_answers():
    """Judged at another threshold, the valid blocks may be enough."""
    assert judge(contaminated(4)).code == "ratio.ok"
    assert judge(contaminated(4), threshold=3.0).code == "ratio.too_low"


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
    blocks = [*(a_block(i, ratio) for i, ratio in enumerate((1.0, 1.25, 1.05, 1.2))), *contaminated(4).blocks[4:]]
    result = judge(a_measurement(blocks=tuple(blocks), decision=None, unsteady=UNSTEADY))
    assert (result.outcome, result.code) == (Outcome.INCONCLUSIVE, "ratio.host_unsteady")
