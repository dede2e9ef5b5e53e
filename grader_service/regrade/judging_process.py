"""One process that judges running batches, chunk after chunk; `grader worker regrade` starts as many as it is told.

judging_process.py OWNER        its settings come from the environment; it ends when its standard input does
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable

import structlog

from checks.registry import Registry
from grader_service import wiring
from grader_service.errors import InfrastructureError
from grader_service.host.confinement import hide_this_process
from grader_service.host.garbage import look_seldom
from grader_service.judging.process import JudgeProcess
from grader_service.logs import configure_logs
from grader_service.regrade.bulk import BulkDeps, LabNotHere, judge_chunk
from grader_service.regrade.yielding import LiveWatch, lower_priority
from grader_service.retry_policy import REGRADE_ITEMS
from grader_service.service.second_opinions import second_opinions_of
from grader_service.settings import Settings
from grader_service.signer.chosen import signer_of

log = structlog.get_logger(__name__)

_IDLE_S = 1.0
_ELSEWHERE_S = 30.0
"""Left to other workers, where the lab of what comes next cannot be read here."""


def main() -> None:
    """Works until a signal, or until its parent ends."""
    configure_logs("regrade")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=_watch, args=(stop,), name="parent", daemon=True).start()
    lower_priority()  # before the next line, after which what it writes to is root's
    hide_this_process()
    settings = Settings()
    store = wiring.open_store(settings)
    deps = BulkDeps(
        store=store,
        registry=Registry(),
        signer=signer_of(settings),
        owner=sys.argv[1],
        judging=JudgeProcess(),
        opinions=second_opinions_of(settings, store, sys.argv[1]),
        lease_s=settings.lease_s,
        retry=wiring.retry_policy(REGRADE_ITEMS, settings),
    )
    assert deps.judging is not None  # noqa: S101 - just given
    look_seldom()
    with deps.judging, LiveWatch(deps.store) as live:

        def stopped() -> bool:
            live.rest()
            return stop.is_set()

        while not stop.is_set():
            stop.wait(_pause_s(deps, stopped))
    deps.store.close()


def _pause_s(deps: BulkDeps, stopped: Callable[[], bool]) -> float:
    """Judges one chunk; returns how long to rest before the next one."""
    try:
        return _IDLE_S if judge_chunk(deps, stopped) is None else 0.0
    except LabNotHere as error:
        log.error("lab_not_here", error=str(error)[:300])  # noqa: TRY400 - what is missing is said; a trace says less
        return _ELSEWHERE_S
    except InfrastructureError as error:
        log.warning("chunk_failed", error=str(error)[:300])
    except Exception:  # a bug of ours must not end the work on other batches
        log.exception("chunk_bug")
    return _IDLE_S


def _watch(stop: threading.Event) -> None:
    """Nobody would stop this process once its parent is gone."""
    with contextlib.suppress(OSError):
        while os.read(0, 64):
            pass
    stop.set()


if __name__ == "__main__":
    main()
