"""The check `throughput_ratio` where the host, or the number of attempts, has a say."""

import math

from checks.throughput_ratio.check import CHECK, Params
from grader_service.model.measurement import HostBlock, HostEffect
from grader_service.model.verdict import Outcome
from grader_service.sequential_test import decide
from tests.factories import a_measurement, an_evidence

SLOW = (0.8, 0.82, 0.79, 0.81)
ABOVE = (1.3, 1.32, 1.28, 1.31, 1.29, 1.3)


def judge(measurement, threshold=1.1):
    return CHECK.judge(CHECK.observe(an_evidence(measurement=measurement)), Params(threshold=threshold))


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
    assert "not counted as a failure" in result.feedback
    assert "which is not above 1.1" in result.feedback
    assert "neither shows nor rules out" not in result.feedback


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
