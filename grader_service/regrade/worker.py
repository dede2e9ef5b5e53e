"""`grader worker regrade`: works on batches. Needs no broker, no Docker, no GPU, and yields to everybody else."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

import structlog

from checks.registry import Registry
from grader_service import wiring
from grader_service.host.confinement import hide_this_process
from grader_service.regrade.releasing import ReleaseDeps, release_due
from grader_service.retry_policy import REGRADE_ITEMS
from grader_service.service import pulse
from grader_service.service.expiring import Expiry
from grader_service.service.readiness import Readiness, judging_requirements
from grader_service.service.second_opinions import second_opinions_of
from grader_service.service.sweeper import Sweeper
from grader_service.settings import Settings
from grader_service.signer.chosen import signer_of
from grader_service.state_folder import require_own
from grader_service.store import workers
from grader_service.store.regrade_work import expire_items, settle_all

log = structlog.get_logger(__name__)

_AGAIN_S = 1.0
"""Between two starts of a process that ends by itself."""


def regrade_worker(settings: Settings, *, judges: int) -> int:
    """Works until SIGTERM or SIGINT; what is begun is finished, the rest is given back.

    Raises:
        ConfigurationError: a lab, plugin or setting is wrong.
    """
    hide_this_process()
    require_own(settings.state_dir)
    store = wiring.ready_store(settings)
    owner = f"{socket.gethostname()}/regrade/{uuid.uuid4().hex[:8]}"
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signer = signer_of(settings)
    policy = wiring.retry_policy(REGRADE_ITEMS, settings)
    releasing = ReleaseDeps(store, wiring.open_artifacts(settings), Registry(), owner)
    readiness = Readiness(
        workers.Identity(workers.REGRADE, socket.gethostname()),
        store,
        settings.state_dir,
        (pulse.REGRADE,),
        judging_requirements(settings.state_dir, store, signer),
        chores=lambda: sweeper.failing,
    )
    expiry = Expiry(lambda: expire_items(store, policy), settings.lease_s, readiness)
    sweeper = Sweeper(
        [
            ("ready", readiness.look),
            ("expire_items", expiry.look),
            ("release", lambda: release_due(releasing)),
            ("settle", lambda: settle_all(store, owner)),
        ],
        settings.sweep_s,
    )
    second_opinions_of(settings, store, owner)  # a key that cannot be read is said here, and not by a child
    children = [_Child(f"{owner}/{number}") for number in range(judges)]
    log.info("regrade_starts", owner=owner, judges=judges)
    sweeper.start()
    while not stop.wait(_AGAIN_S):
        for child in children:
            child.keep()
    for child in children:
        child.tell()
    deadline = time.monotonic() + settings.soft_shutdown_s
    for child in children:
        child.end(deadline)
    sweeper.stop()
    readiness.end()
    store.close()
    return 0


class _Child:
    """One judging process, started anew whenever it ends by itself."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "grader_service.regrade.judging_process", self._owner]
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def keep(self) -> None:
        """Starts it again if it has ended."""
        if self._process.poll() is not None:
            log.error("judging_process_ended", owner=self._owner, status=self._process.returncode)
            self._close()
            self._process = self._start()

    def tell(self) -> None:
        """Tells it to stop after the item in hand."""
        self._process.terminate()

    def end(self, deadline: float) -> None:
        """Waits until it has ended, and kills it when its time is up."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


def default_judges() -> int:
    """One for each core that this process may use."""
    return len(os.sched_getaffinity(0))
