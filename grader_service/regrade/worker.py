"""`grader worker regrade`: judges batches in bulk and releases what has to run. Needs no broker, no Docker, no GPU."""

import os
import signal
import socket
import threading
import uuid

import structlog

from checks.registry import Registry
from grader_service import wiring
from grader_service.errors import InfrastructureError
from grader_service.judge_process import JudgeProcess
from grader_service.regrade.bulk import BulkDesk, judge_chunk
from grader_service.regrade.releasing import ReleaseDesk, release_due
from grader_service.service.pulse import REGRADE, beat
from grader_service.service.sweeper import Sweeper
from grader_service.settings import Settings
from grader_service.signing import Signer
from grader_service.store.regrade_work import expire_items, settle_all

log = structlog.get_logger(__name__)

_IDLE_S = 1.0
_NICE = 10
"""Learners who wait get the processor first."""


def regrade_worker(settings: Settings, *, judges: int) -> int:
    """Works until SIGTERM or SIGINT; what is begun is finished, the rest is given back.

    Args:
        settings: of the service.
        judges: chunks that are judged at the same time, each in a process of its own.

    Raises:
        ConfigurationError: a lab, plugin or setting is wrong.
    """
    os.nice(_NICE)
    store = wiring.ready_store(settings)
    owner = f"{socket.gethostname()}/regrade/{uuid.uuid4().hex[:8]}"
    registry, signer = Registry(), Signer.from_folder(settings.key_dir)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    policy = wiring.retry_policy(settings)
    desks = [
        BulkDesk(
            store=store,
            registry=registry,
            signer=signer,
            owner=f"{owner}/{number}",
            judging=JudgeProcess(),
            lease_s=settings.lease_s,
            retry=policy,
        )
        for number in range(judges)
    ]
    releasing = ReleaseDesk(store, wiring.open_artifacts(settings), registry, owner)
    sweeper = Sweeper(
        [
            ("expire_items", lambda: expire_items(store, max_attempts=policy.max_attempts, delay_s=policy.delay_s)),
            ("release", lambda: release_due(releasing)),
            ("settle", lambda: settle_all(store, owner)),
            ("pulse", lambda: beat(settings.state_dir, REGRADE)),
        ],
        settings.sweep_s,
    )
    threads = [
        threading.Thread(target=_work, args=(desk, stop), name=f"judge-{number}", daemon=True)
        for number, desk in enumerate(desks)
    ]
    log.info("regrade_starts", owner=owner, judges=judges)
    sweeper.start()
    for thread in threads:
        thread.start()
    stop.wait()
    for thread in threads:
        thread.join(timeout=settings.soft_shutdown_s)
    sweeper.stop()
    store.close()
    return 0


def _work(desk: BulkDesk, stop: threading.Event) -> None:
    assert desk.judging is not None  # noqa: S101 - every desk of a worker has one
    with desk.judging:
        while not stop.is_set():
            try:
                done = judge_chunk(desk, stop.is_set)
            except InfrastructureError as error:
                log.warning("chunk_failed", error=str(error)[:300])
                done = None
            except Exception:  # the thread must live on: nobody else does its work
                log.exception("chunk_bug")
                done = None
            if done is None:
                stop.wait(_IDLE_S)


def default_judges() -> int:
    """One for each core that this process may use."""
    return len(os.sched_getaffinity(0))
