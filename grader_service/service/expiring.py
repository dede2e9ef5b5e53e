"""Takes runs back from workers that are gone, and not from those that only could not reach the database."""

import time
from collections.abc import Callable

from grader_service.service.readiness import DATABASE, Readiness
from grader_service.service.retry import RetryPolicy
from grader_service.store.engine import Store
from grader_service.store.sweep import expire_leases


class Expiry:
    """A chore that lets leases end, once the database has answered at every look for as long as a lease lasts.

    While it was away nobody could renew a lease; whoever works on a run renews it in that time, or stores what it
    found.

    Args:
        store: with the leases.
        retry: how runs that were taken back are tried again.
        lease_s: how long a lease lasts, seconds.
        readiness: looked before; it knows whether the database answered.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        store: Store,
        retry: RetryPolicy,
        lease_s: float,
        readiness: Readiness,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._retry = retry
        self._lease_s = lease_s
        self._readiness = readiness
        self._clock = clock
        self._looked_at = self._answers_since = clock()

    def look(self) -> None:
        """Takes back what has expired, if it is time for that.

        Raises:
            StoreUnavailable: the database went away just now.
        """
        now = self._clock()
        # Nor is it known what happened while nobody looked, as on a host that slept.
        if DATABASE in self._readiness.missing or now - self._looked_at > self._lease_s:
            self._answers_since = now
        self._looked_at = now
        if now - self._answers_since >= self._lease_s:
            expire_leases(self._store, max_attempts=self._retry.max_attempts, delay_s=self._retry.delay_s)
