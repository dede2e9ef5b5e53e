"""How often our own failures are tried again before an operator is asked."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Tries, and the waits before the next one."""

    max_attempts: int = 3
    delay_s: float = 10.0
    announce_again_s: float = 20.0
    """A run that waits this long with no wake-up on its queue is announced again."""
