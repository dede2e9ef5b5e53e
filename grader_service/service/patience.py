"""Repeats writes while the database is away, so that no result is lost."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from grader_service.errors import StoreUnavailable
from grader_service.retry_policy import STORING

log = structlog.get_logger(__name__)

_DATABASE_S = 600.0
"""How long a result waits in hand for a database that is away."""
ResultT = TypeVar("ResultT")


def patiently(write: Callable[[], ResultT]) -> ResultT:
    """Repeats a write until the database takes it.

    Args:
        write: has a transaction of its own, and may be repeated while its lease holds.

    Raises:
        StoreUnavailable: the database has been away for ten minutes.
    """
    deadline = time.monotonic() + _DATABASE_S
    failures = 0
    while True:
        try:
            return write()
        except StoreUnavailable as error:
            if time.monotonic() > deadline:
                raise
            log.warning("result_waits_for_the_database", error=str(error)[:200])
            failures += 1
            time.sleep(STORING.wait_s(failures))
