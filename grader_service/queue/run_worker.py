"""`grader worker run`: executes submissions on one device. Loads no check."""

import contextlib
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from celery import Celery, signals

from grader_service import wiring
from grader_service.errors import SandboxUnavailable
from grader_service.host.facts import Gpu
from grader_service.host.gpu.monitor import GpuMonitor
from grader_service.host.gpu.nvml import NvmlGpu
from grader_service.host.gpu.steward import Steward
from grader_service.queue.app import PREFLIGHT_QUEUES, RUN_QUEUES, make_app
from grader_service.queue.chores import announce_waiting, common_chores
from grader_service.queue.consumer_watchdog import ConsumerWatchdog
from grader_service.queue.process import serve, use_queues
from grader_service.queue.progress import ProgressPost
from grader_service.queue.redis_check import require_answer, require_safe
from grader_service.queue.task_tracker import TaskTracker
from grader_service.queue.tasks import register_run
from grader_service.queue.wake_ups import lying
from grader_service.service import pulse
from grader_service.service.gate import DeviceGate
from grader_service.service.pipeline import StageEnd
from grader_service.service.progress_events import events_of
from grader_service.service.readiness import BROKER, Readiness, Requirement, database_requirement, device_requirement
from grader_service.service.reference_keeping import ReferenceKeeping
from grader_service.service.run_spaces import RUN_SPACE, HostFitness, RunSpaceTrial
from grader_service.service.sweeper import Sweeper
from grader_service.settings import Settings
from grader_service.state_folder import require_own
from grader_service.store import devices, leases, workers
from grader_service.store.engine import Store
from grader_service.store.sweep import not_announced

log = structlog.get_logger(__name__)

_OPENED_AGAIN_S = 10.0


def run_worker(settings: Settings, *, slot: int = 0) -> int:
    """Executes runs on one device, one at a time, until a signal ends it.

    This process holds the device, listens to Redis and watches the host; the work is done in a child: Celery task →
    `Child` → `ReferenceKeeping.run_next` → `runner.run_next` → `pipeline.advance` → `run.execution.execute`.
    On SIGTERM the run in hand gets some seconds to end; then the child removes its pods and gives the run back, and
    nothing is counted. When the worker is killed, the lease expires and the sweeper of any worker takes the run back.

    Args:
        slot: numbers the workers of a host without GPUs.

    Returns:
        The exit status: Celery's, or 1 where this worker ended itself because it took no wake-ups or has to ask anew
        what its sandbox is.

    Raises:
        ConfigurationError: another worker holds the device, or a setting, the schema or Redis does not fit.
        InfrastructureError: the database, Redis, the engine, the lab image or the GPU cannot be had.
    """
    require_own(settings.state_dir)
    gpu = wiring.chosen_gpu(settings)
    device = wiring.device_id(gpu, slot)
    with wiring.held(settings, gpu, slot) as hold:
        for neighbour in hold.neighbours:
            log.warning("cpus_shared", device=device, neighbour=neighbour.device, cpus=list(neighbour.cpus))
        store = wiring.ready_store(settings)
        labs_left = wiring.labs_left_to_others(gpu)
        queues = PREFLIGHT_QUEUES if settings.preflights_only else RUN_QUEUES
        # A run that failed elsewhere is not kept for this worker where it would not take it.
        labs_passed_on = (workers.EVERY_LAB,) if settings.preflights_only else tuple(labs_left)
        identity = workers.Identity(workers.RUN, socket.gethostname(), device, labs_passed_on)
        # Until its first look: a worker that fails at each start is reported, too.
        workers.say(store, identity, ("it has not come up yet; where it does not, its log says why",))
        redis = wiring.open_redis(settings)
        for problem in require_safe({BROKER: redis}, production=settings.production):
            log.warning("unsafe_redis", problem=problem)
        app = make_app(settings)
        # Kills a child that its heartbeat could not stop: by then its lease has expired, and its run is elsewhere.
        app.conf.task_time_limit = settings.run_limit_s + 2 * settings.lease_s
        owner = f"{socket.gethostname()}/{device}/{uuid.uuid4().hex[:8]}"
        # Fails here, before anything is taken, when the engine or the lab image is missing.
        sandbox = wiring.open_sandbox(settings, gpu)
        fitness = HostFitness()
        child = Child(settings, app, gpu, device, owner, fitness)
        register_run(app, child)
        signals.worker_process_init.connect(child.begin, weak=False)
        tasks = TaskTracker(1)
        watchdog = ConsumerWatchdog(lambda: lying(app, queues), tasks, settings.lease_s)
        gate = DeviceGate(store, device, socket.gethostname(), gpu.model if gpu else "CPU", None)
        subscription = QueueSubscription(gate, queues, fitness)
        outdated = threading.Event()

        def end() -> None:
            if not outdated.is_set():
                outdated.set()
                log.error("sandbox_outdated", remedy="this worker ends; start another, which asks what is there now")
                os.kill(os.getpid(), signal.SIGTERM)

        space = RunSpaceTrial(sandbox, settings.state_dir, fitness, lambda: tasks.idle, outdated=end)
        readiness = Readiness(
            identity,
            store,
            settings.state_dir,
            (pulse.ANY, pulse.of_device(device)),
            [
                Requirement(RUN_SPACE, space.look),
                database_requirement(store),
                Requirement(BROKER, lambda: require_answer(redis)),
                device_requirement(store, device, canary=gpu is not None and settings.canary_minutes > 0),
            ],
            chores=lambda: sweeper.failing,  # defined below; called first when both are there
        )
        sweeper = Sweeper(
            [
                ("ready", readiness.look),
                *common_chores(settings, store, app, readiness),
                ("device", subscription.look),
                ("watchdog", lambda: watchdog.check(taking=subscription.subscribed)),
                ("orphans", sandbox.sweep),
            ],
            settings.sweep_s,
        )
        for lab_id, reason in labs_left.items():
            log.warning("lab_left_to_others", lab=lab_id, reason=reason)
        log.info("runner_starts", device=device, owner=owner, sandbox=sandbox.facts.name)
        readiness.look()
        # The children open connections of their own; none may be inherited.
        store.close()
        status = serve(app, queues, name=f"run-{device.replace(':', '-')}", tasks=tasks, companions=[sweeper])
        with contextlib.suppress(SandboxUnavailable):  # then the next worker's sweep does it
            sandbox.sweep()  # what the children had prepared
        if watchdog.stalled or outdated.is_set():
            return 1
        readiness.end()
        return status


class Child:
    """What Celery's child process does: executes a run for each wake-up and, with a GPU, cares for the idle device."""

    def __init__(
        self, settings: Settings, app: Celery, gpu: Gpu | None, device: str, owner: str, fitness: HostFitness
    ) -> None:
        self._settings = settings
        self._fitness = fitness
        self._app = app
        self._gpu = gpu
        self._device = device
        self._owner = owner
        self._pid = 0
        self._opening = threading.Lock()
        self._store: Store
        self._keeping: ReferenceKeeping
        self._without_labs: tuple[str, ...] = ()

    def __call__(self, woken_for: str) -> StageEnd:
        """Executes the run that should come next, which may be another one than the wake-up names, or none."""
        return self._opened().run_next(lambda end: self._ended(end, woken_for))

    def begin(self, **_: Any) -> None:
        """Opens what a GPU needs without waiting for a wake-up, which comes to none in quarantine; returns at once.

        Celery calls it as each child begins, and ends a child that takes seconds for it.
        """
        if self._gpu is not None:
            threading.Thread(target=self._watch, name="opening", daemon=True).start()

    def _watch(self) -> None:
        while True:
            try:
                return self._opened().watch()
            except Exception as error:  # noqa: BLE001 - of the engine or the database, and tried again
                log.warning("child_not_opened", error=str(error)[:300])
                time.sleep(_OPENED_AGAIN_S)

    def _opened(self) -> ReferenceKeeping:
        """Opens database, GPU and sandbox on first use in this process: after a fork those of the parent are no use."""
        with self._opening:
            if self._pid != os.getpid():
                self._store = wiring.open_store(self._settings)
                monitor = NvmlGpu(self._gpu.uuid) if self._gpu is not None else None
                gate = self._gate(self._store, monitor)
                deps = wiring.runner_deps(self._settings, self._store, self._gpu, self._owner, gate, self._fitness)
                post = ProgressPost(wiring.open_redis(self._settings))
                deps = replace(deps, progress=partial(events_of, self._store, post.send))
                canary = wiring.canary(self._settings, deps, monitor)
                self._keeping, self._without_labs = ReferenceKeeping(deps, canary), deps.without_labs
                self._pid = os.getpid()
            return self._keeping

    def _ended(self, end: StageEnd, woken_for: str) -> None:
        """Passes on a wake-up that this worker could not use; wakes others for what its run held back."""
        passed_over = end is StageEnd.NOTHING and (
            self._without_labs or leases.failed_here(self._store, woken_for, self._owner)
        )
        if passed_over or end in (StageEnd.CLOSED, StageEnd.GIVEN_BACK):
            not_announced(self._store, [woken_for])  # for a worker that may take it
        if end in (StageEnd.STORED, StageEnd.FAILED):
            # What this run held back (its learner's next submission, its own judging) should not wait for the sweeper.
            announce_waiting(self._store, self._app, limit=2)

    def _gate(self, store: Store, monitor: GpuMonitor | None) -> DeviceGate:
        steward = None
        if monitor is not None:
            steward = Steward(monitor, lambda reason: devices.quarantine(store, self._device, reason, self._owner))
        return DeviceGate(store, self._device, socket.gethostname(), self._gpu.model if self._gpu else "CPU", steward)


class QueueSubscription:
    """Takes wake-ups only while the device may be used and its host is fit."""

    def __init__(self, gate: DeviceGate, queues: Sequence[str], fitness: HostFitness) -> None:
        self._gate = gate
        self._fitness = fitness
        self._queues = queues
        self.subscribed = True
        self._worker: Any = None
        signals.worker_ready.connect(self._ready, weak=False)

    def look(self) -> None:
        """Says that the device is here, and follows its state."""
        ready = self._gate.seen() == devices.READY and self._fitness.fit
        if ready != self.subscribed and self._worker is not None:
            use_queues(self._worker, self._queues, wanted=ready)
            self.subscribed = ready
            log.warning("taking_wake_ups" if ready else "leaving_wake_ups_to_others")

    def _ready(self, sender: Any, **_: Any) -> None:
        self._worker = sender
