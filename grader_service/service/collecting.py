"""Removes artifacts to which nothing refers: of refused messages, of fetches that broke off, of old submissions."""

import time

import structlog

from grader_service.store.artifacts import FRESH_S, ArtifactStore
from grader_service.store.engine import Store
from grader_service.store.references import unreferenced

log = structlog.get_logger(__name__)

EVERY_S = 300.0
_PREFIXES = 256
_AT_ONCE = 100
_OLD_S = 2 * FRESH_S
"""Twice as old as what is renewed when it comes again: nothing is removed that was put here a moment ago."""


class Collector:
    """Looks through one of the artifact store's 256 folders every `EVERY_S`; for 0 `days` all are kept for ever."""

    def __init__(self, store: Store, artifacts: ArtifactStore, days: float = 0.0) -> None:
        self._store = store
        self._artifacts = artifacts
        self._days = days
        # Not always the first one, so that workers that are often started anew come to all of them as well.
        self._prefix = int(time.time() // EVERY_S)

    def look(self) -> None:
        """Looks through the next folder.

        Raises:
            InfrastructureError: the database or the artifacts' store failed; the folder comes again in the next round.
        """
        prefix = f"{self._prefix % _PREFIXES:02x}"
        self._prefix += 1
        old = [name for name, age_s in self._artifacts.kept(prefix) if age_s > _OLD_S]
        removed = 0
        for first in range(0, len(old), _AT_ONCE):
            for name in unreferenced(self._store, old[first : first + _AT_ONCE], days=self._days):
                # One that came again since is young, and may have a submission by now.
                removed += self._artifacts.remove(prefix, name, older_s=_OLD_S)
        if removed:
            log.info("artifacts_removed", folder=prefix, files=removed)
