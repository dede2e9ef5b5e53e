"""What every worker's sweeper does for all of them; each chore may run in any number of processes at once."""

from celery import Celery

from grader_service.queue.hints import announce
from grader_service.queue.letters import deliver_due
from grader_service.service.retry import RetryPolicy
from grader_service.service.sweeper import Chore
from grader_service.store.engine import Store
from grader_service.store.sweep import expire_leases, to_announce

SILENT_S = 60.0
"""A run that waited this long after its hint is announced again: the hint, or who took it, may be gone."""
_BATCH = 200


def announce_waiting(store: Store, app: Celery, *, silent_s: float = SILENT_S, limit: int = _BATCH) -> int:
    """Sends hints for runs that wait without one; returns how many."""
    hints = to_announce(store, silent_s=silent_s, limit=limit)
    return sum(announce(app, hint) for hint in hints)


def common_chores(store: Store, app: Celery, retry: RetryPolicy) -> list[tuple[str, Chore]]:
    """Expired leases, lost hints, undelivered answers."""
    return [
        (
            "expire_leases",
            lambda: expire_leases(store, max_attempts=retry.max_attempts, delay_s=retry.delay_s),
        ),
        ("announce", lambda: announce_waiting(store, app)),
        ("deliver", lambda: deliver_due(store, app)),
    ]
