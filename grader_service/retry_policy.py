"""When work that failed through us is tried again, and when it is given up: one value decides for every kind of work.

Each kind has its policy at the end of this file. `wiring.retry_policy` puts the settings' numbers into those that
operators may change.
"""

import math
from dataclasses import dataclass
from typing import Literal

_MOST_STEPS = 20
"""A wait is multiplied so many times at most: with a growth of 2 that is a million, and a float holds it."""


@dataclass(frozen=True)
class Retry:
    """The work is tried again."""

    after_s: float
    """Seconds from the failure to the next attempt."""


@dataclass(frozen=True)
class GiveUp:
    """The work is not tried again by itself."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often work is tried, and how long it waits in between; the same failures always give the same waits."""

    max_attempts: int | None = 3
    """The first attempt included; None for work that is never given up."""
    delay_s: float = 10.0
    """Seconds from the first failure to the second attempt."""
    growth: float | Literal["linear"] = 1.0
    """By what each further failure multiplies the wait; `linear` for `delay_s` times the number of failures."""
    longest_s: float = math.inf
    """No wait is longer, seconds."""

    def decide(self, failures: int, *, retryable: bool = True) -> Retry | GiveUp:
        """What follows a failure.

        Args:
            failures: of this work so far, the latest one included; 1 or more.
            retryable: whether another attempt can help; where it cannot, the first failure is the last.
        """
        last = self.max_attempts is not None and failures >= self.max_attempts
        return GiveUp() if last or not retryable else Retry(self.wait_s(failures))

    def wait_s(self, failures: int) -> float:
        """Seconds from a failure to the next attempt, for work that is not given up; see `decide`."""
        factor = failures if self.growth == "linear" else self.growth ** min(failures - 1, _MOST_STEPS)
        return min(self.delay_s * factor, self.longest_s)


RUNS = RetryPolicy(growth="linear")
"""Of runs whose runner says what failed. This policy and the next three get numbers of the settings."""
JUDGING = RetryPolicy()
EXPIRED_LEASES = RetryPolicy()
"""Of runs and judgings whose worker stopped renewing its lease."""
REGRADE_ITEMS = RetryPolicy()
"""Of items of a batch that are judged from stored evidence; those that are executed are runs."""
ANSWERS = RetryPolicy(max_attempts=None, delay_s=1.0, growth=2.0, longest_s=300.0)
"""Of answers that Redis did not take."""
MESSAGES = RetryPolicy(max_attempts=6, delay_s=0.2, growth=2.0)
"""Of a platform's message in hand: about six seconds in all, then other messages get their turn."""
CANARIES = RetryPolicy(max_attempts=None, growth=2.0, longest_s=4 * 3600.0)
"""Of a quarantined device; the settings say after how long it is tried first."""
REFERENCES = RetryPolicy(max_attempts=None, growth=4.0)
"""Of measuring our reference between runs; the settings say how old its rate may get."""
STORING = RetryPolicy(max_attempts=None, delay_s=0.2, growth=2.0, longest_s=5.0)
"""Of storing a result while the database is away; how long in all, `service.patience` knows."""
