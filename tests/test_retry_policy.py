"""One policy decides for every kind of work when it is tried again, and when it is given up."""

import math

import pytest

from grader_service import retry_policy, wiring
from grader_service.retry_policy import GiveUp, Retry, RetryPolicy
from grader_service.settings import Settings


def decisions(policy, most=12):
    """Waits after the first failures, up to the one with which it is given up; seconds."""
    waits = []
    for failures in range(1, most + 1):
        decision = policy.decide(failures)
        if decision == GiveUp():
            return [*waits, "given up"]
        waits.append(decision.after_s)
    return waits


def test_the_first_attempt_counts():
    """Three attempts have two waits; one that failed more often, under a policy with more attempts, is given up."""
    policy = RetryPolicy(max_attempts=3, delay_s=10.0)
    assert [policy.decide(failures) for failures in (1, 2, 3, 4)] == [Retry(10.0), Retry(10.0), GiveUp(), GiveUp()]
    assert RetryPolicy(max_attempts=1).decide(1) == GiveUp()


@pytest.mark.parametrize("policy", [RetryPolicy(), RetryPolicy(max_attempts=None)])
def test_what_trying_again_cannot_help_is_given_up_at_once(policy):
    """Whatever the policy grants."""
    assert policy.decide(1, retryable=False) == GiveUp()


@pytest.mark.parametrize(
    ("growth", "longest_s", "waits"),
    [
        (1.0, math.inf, [2.0, 2.0, 2.0, 2.0]),
        ("linear", math.inf, [2.0, 4.0, 6.0, 8.0]),
        ("linear", 5.0, [2.0, 4.0, 5.0, 5.0]),
        (2.0, math.inf, [2.0, 4.0, 8.0, 16.0]),
        (2.0, 7.0, [2.0, 4.0, 7.0, 7.0]),
    ],
)
def test_waits_grow_as_the_policy_says(growth, longest_s, waits):
    """By a factor, by the number of failures, or not, up to the longest."""
    policy = RetryPolicy(max_attempts=5, delay_s=2.0, growth=growth, longest_s=longest_s)
    assert decisions(policy) == [*waits, "given up"]


def test_what_is_never_given_up_can_fail_for_ever():
    """Some wait of months would be no float any more."""
    policy = RetryPolicy(max_attempts=None, delay_s=1.0, growth=4.0)
    assert math.isfinite(policy.decide(10**6).after_s)
    assert RetryPolicy(max_attempts=None, growth="linear").wait_s(10**6) == 10.0 * 10**6


@pytest.mark.parametrize(
    ("role", "waits"),
    [
        ("RUNS", [10, 20, "given up"]),
        ("JUDGING", [10, 10, "given up"]),
        ("EXPIRED_LEASES", [10, 10, "given up"]),
        ("REGRADE_ITEMS", [10, 10, "given up"]),
        ("ANSWERS", [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]),
        ("MESSAGES", [0.2, 0.4, 0.8, 1.6, 3.2, "given up"]),
        ("STORING", [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5, 5, 5, 5]),
    ],
)
def test_each_kind_of_work_has_its_policy(role, waits):
    """Whoever changes one sees here what that means."""
    assert decisions(getattr(retry_policy, role)) == waits


def test_settings_change_the_numbers_and_not_how_waits_grow():
    """Unset, they are those of the policy."""
    settings = Settings(max_attempts=5, retry_delay_s=0.5)
    assert decisions(wiring.retry_policy(retry_policy.RUNS, settings)) == [0.5, 1.0, 1.5, 2.0, "given up"]
    assert decisions(wiring.retry_policy(retry_policy.JUDGING, settings)) == [0.5, 0.5, 0.5, 0.5, "given up"]
    assert wiring.retry_policy(retry_policy.RUNS, Settings()) == retry_policy.RUNS
