"""How often our own failures are tried again before an operator is asked."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Tries, and the wait before the next one."""

    max_attempts: int = 3
    delay_s: float = 10.0
