"""Chores that the sweepers of all workers share; each may run in any number of processes at once."""

from celery import Celery

from grader_service import wiring
from grader_service.queue.wake_ups import announce, holding
from grader_service.retry_policy import EXPIRED_LEASES
from grader_service.service.expiring import Expiry
from grader_service.service.readiness import BROKER, Readiness
from grader_service.service.sweeper import Chore
from grader_service.settings import Settings
from grader_service.store.engine import Store
from grader_service.store.sweep import expire_leases, not_announced, to_announce

_BATCH = 200
_SILENT_LOOKS = 4
"""A run that waits through so many looks, with no wake-up on its queue, is announced again."""


def announce_waiting(store: Store, app: Celery, *, silent_s: float | None = None, limit: int = _BATCH) -> int:
    """Sends wake-ups for runs that wait without one; returns how many.

    Args:
        silent_s: also for runs that still wait this long after their wake-up while their queue is empty: it, or who
            took it, is gone.
    """
    still_there = holding(app) if silent_s is not None else []
    if still_there is None:
        return 0
    due = to_announce(store, silent_s=silent_s, limit=limit, holding=still_there)
    for sent, wake_up in enumerate(due):
        if not announce(app, wake_up):
            not_announced(store, [wake_up.run_id for wake_up in due[sent:]])
            return sent
    return len(due)


def common_chores(settings: Settings, store: Store, app: Celery, readiness: Readiness) -> list[tuple[str, Chore]]:
    """Expired leases and lost wake-ups.

    Args:
        readiness: looked before; where the broker is away, nobody waits for it again in the same round, which would
            make the worker seem silent.
    """
    policy = wiring.retry_policy(EXPIRED_LEASES, settings)
    expiry = Expiry(lambda: expire_leases(store, policy), settings.lease_s, readiness)
    silent_s = _SILENT_LOOKS * settings.sweep_s
    return [
        ("expire_leases", expiry.look),
        ("announce", unless_away(BROKER, readiness, lambda: announce_waiting(store, app, silent_s=silent_s))),
    ]


def unless_away(server: str, readiness: Readiness, chore: Chore) -> Chore:
    """A chore that is left out in rounds in which this server was found to be away."""
    return lambda: None if server in readiness.missing else chore()
