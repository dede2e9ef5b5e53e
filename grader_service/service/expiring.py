"""Takes work back from workers that are gone, and not from those that only could not reach the database."""

import time
from collections.abc import Callable

from grader_service.service.readiness import DATABASE, Readiness


class Expiry:
    """A chore that takes expired work back, once the database has been there for as long as a lease lasts.

    While it was away no lease could be renewed: workers get that time to renew theirs, or to store their results.

    Args:
        expire: takes back what has expired.
        lease_s: how long a lease lasts, seconds.
        readiness: looked before; it knows whether the database answered.
    """

    def __init__(
        self,
        expire: Callable[[], object],
        lease_s: float,
        readiness: Readiness,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expire = expire
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
            self._expire()
