"""Remembers sources of artifacts that failed a moment ago, so that nobody waits for them again at once."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import structlog

from grader_service.errors import InfrastructureError

log = structlog.get_logger(__name__)

LEFT_ALONE_S = 30.0
"""For so long a source that failed is not asked again."""
_MOST = 10_000
"""Addresses that are remembered; beyond that all are asked once more."""


class SourceAway(InfrastructureError):
    """A source did not give an artifact, for a reason that may pass; trying again at once is of no use."""


class SourceSilent(SourceAway):
    """Its host does not answer at all."""


class Away:
    """What failed, by address, and where a host does not answer, by host; any number of threads may use it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def asking(self, uri: str) -> Iterator[None]:
        """Around a fetch from this address, which raises `SourceAway` where it fails.

        Raises:
            SourceAway: it, or its host, failed less than `LEFT_ALONE_S` ago, or is being asked again just now.
        """
        parts = urlsplit(uri)
        host = f"{parts.scheme}://{parts.netloc}"
        self._ask(host, uri)
        failed = None
        try:
            yield
        except SourceAway as error:
            failed = host if isinstance(error, SourceSilent) else uri
            log.warning("source_away", source=failed[:200], error=str(error)[:300])
            raise
        finally:
            with self._lock:
                for name in (host, uri):
                    self._until.pop(name, None)
                if len(self._until) >= _MOST:
                    self._until.clear()
                if failed is not None:
                    self._until[failed] = self._clock() + LEFT_ALONE_S

    def _ask(self, *names: str) -> None:
        with self._lock:
            known = [name for name in names if name in self._until]
            for name in known:
                if self._clock() < self._until[name]:
                    raise SourceAway(f"{name[:200]} failed less than {LEFT_ALONE_S:g} s ago")
            for name in known:
                self._until[name] = math.inf  # one asks again; the others do not wait with it
