"""`grader worker judge`: takes messages in, judges evidence, sends answers. Loads checks; no Docker socket, no GPU."""

import os
import socket
import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import structlog
from celery import Celery

from checks.registry import Registry
from grader_service import wiring
from grader_service.errors import InfrastructureError
from grader_service.host.confinement import hide_this_process
from grader_service.judging.process import JudgeProcess
from grader_service.model.verdict import Verdict
from grader_service.queue.app import JUDGE_QUEUES, make_answers_app, make_app
from grader_service.queue.chores import announce_waiting, common_chores, unless_away
from grader_service.queue.consumer_watchdog import ConsumerWatchdog
from grader_service.queue.envelope import Envelope, Unreadable
from grader_service.queue.intake_loop import IntakeLoop, Purpose
from grader_service.queue.outbox_relay import OutboxRelay
from grader_service.queue.process import Companion, serve
from grader_service.queue.progress import ProgressRelay
from grader_service.queue.redis_check import fullness, require_answer, require_safe
from grader_service.queue.task_tracker import TaskTracker
from grader_service.queue.tasks import register_judge
from grader_service.queue.wake_ups import lying, plenty
from grader_service.retry_policy import JUDGING
from grader_service.service import collecting, pulse
from grader_service.service.collecting import Collector
from grader_service.service.intake import IntakeDeps, purpose_of, receive_all, refuse_unreadable
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.readiness import (
    BROKER,
    RESULTS,
    Readiness,
    Requirement,
    judging_requirements,
)
from grader_service.service.retaining import Retention
from grader_service.service.reviewing import judge_reviewed
from grader_service.service.second_opinions import second_opinions_of
from grader_service.service.sweeper import Sweeper
from grader_service.settings import Settings
from grader_service.signer.chosen import signer_of
from grader_service.state_folder import require_own
from grader_service.store import dead_letters, workers
from grader_service.store.engine import Store

log = structlog.get_logger(__name__)

_SENDING_S = 2.0
"""Seconds that a child waits until its answer is sent."""


def judge_worker(settings: Settings, *, children: int = 1) -> int:
    """Works until a signal ends it.

    Raises:
        ConfigurationError: a lab, plugin or setting is wrong.
    """
    hide_this_process()
    require_own(settings.state_dir)
    store = wiring.ready_store(settings)
    servers = {BROKER: wiring.open_redis(settings), RESULTS: wiring.open_results(settings)}
    for problem in require_safe(servers, production=settings.production):
        log.warning("unsafe_redis", problem=problem)
    app = make_app(settings)
    relay = _relay(settings, store)
    owner = f"{socket.gethostname()}/judge/{uuid.uuid4().hex[:8]}"
    opinions = second_opinions_of(settings, store, owner)
    deps = IntakeDeps(
        store=store,
        artifacts=wiring.open_artifacts(settings),
        registry=Registry(),
        signer=signer_of(settings),
        limits=wiring.intake_limits(settings),
        actor=owner,
    )
    tasks = TaskTracker(children)
    watchdog = ConsumerWatchdog(lambda: lying(app, JUDGE_QUEUES), tasks, settings.lease_s)
    readiness = Readiness(
        workers.Identity(workers.JUDGE, socket.gethostname()),
        store,
        settings.state_dir,
        (pulse.ANY,),
        [
            *judging_requirements(settings.state_dir, store, deps.signer),
            *(Requirement(name, partial(require_answer, redis, name)) for name, redis in servers.items()),
        ],
        # One that is away was waited for already.
        memory=lambda: fullness({name: redis for name, redis in servers.items() if name not in readiness.missing}),
        folders={"artifacts": folder} if (folder := deps.artifacts.folder) else {},
        chores=lambda: sweeper.failing | sending.failing | reviewing.failing | removing.failing,
    )
    chores = [
        ("ready", readiness.look),
        *common_chores(settings, store, app, readiness),
        ("watchdog", watchdog.check),
    ]
    sweeper = Sweeper(chores, settings.sweep_s)
    register_judge(app, Child(settings, owner))
    log.info("judge_starts", owner=owner, children=children)
    store.close()
    # Beside the other chores, which need not wait for a place of backups that hangs, or for an object store.
    deliver = unless_away(RESULTS, readiness, relay.deliver_all)
    sending = Sweeper([("deliver", deliver)], settings.sweep_s)
    judge = JudgeDeps(store, deps.registry, deps.signer, owner, opinions=opinions)
    reviewing = Sweeper([("reviews", partial(judge_reviewed, judge))], settings.sweep_s)
    intake = Intake(settings, app, deps, sending)
    progress = ProgressRelay(
        wiring.open_redis(settings), make_answers_app(settings), store, settings.reply_queue_length // 4
    )
    collector = Collector(store, deps.artifacts, settings.keep_artifact_days)
    retention = Retention(store, wiring.keeping(settings))
    removing = Sweeper([("collect", collector.look), ("retain", retention.look)], collecting.EVERY_S)
    companions: list[Companion] = [intake, sweeper, sending, reviewing, removing, progress]
    status = serve(app, JUDGE_QUEUES, name="judge", tasks=tasks, companions=companions)
    if watchdog.stalled:
        return 1
    readiness.end()
    return status


def _relay(settings: Settings, store: Store) -> OutboxRelay:
    journal = wiring.open_journal(settings, store)
    return OutboxRelay(store, make_answers_app(settings), settings.reply_queue_length, journal)


class Child:
    """The work of one wake-up, in the pool's child; what it needs is opened there, on the first one."""

    def __init__(self, settings: Settings, owner: str) -> None:
        self._settings = settings
        self._owner = owner
        self._pid = 0
        self._deps: JudgeDeps
        self._relay: OutboxRelay
        self._thread: ThreadPoolExecutor
        self._sending: Future[int] | None

    def __call__(self) -> Verdict | None:
        """Judges the run that should come next, and sends what is due."""
        if self._pid != os.getpid():
            store, owner = wiring.open_store(self._settings), f"{self._owner}/{os.getpid()}"
            self._deps = JudgeDeps(
                store=store,
                registry=Registry(),
                signer=signer_of(self._settings),
                owner=owner,
                lease_s=self._settings.lease_s,
                retry=wiring.retry_policy(JUDGING, self._settings),
                judging=JudgeProcess(),
                opinions=second_opinions_of(self._settings, store, owner),
            )
            self._relay = _relay(self._settings, self._deps.store)
            self._thread, self._sending = ThreadPoolExecutor(1, "answers"), None
            self._pid = os.getpid()
        verdict = judge_next(self._deps)
        if verdict is not None:
            self._send(verdict.verdict_id)
        return verdict

    def _send(self, verdict_id: str) -> None:
        """Sends answers with this verdict, only these: thousands of a batch must not come between two learners.

        In a thread, since a place of backups may hang for ever: judging goes on, and the parent sends what waits. The
        process ends by `os._exit`, which waits for no thread.
        """
        if self._sending is not None and not self._sending.done():
            return
        self._sending = self._thread.submit(self._relay.deliver_due, verdict_id=verdict_id)
        try:
            self._sending.result(_SENDING_S)
        except (InfrastructureError, TimeoutError) as error:
            log.warning("answer_waits", verdict_id=verdict_id, error=f"{type(error).__name__}: {error}"[:300])


class Intake:
    """The threads that take platform messages in."""

    def __init__(self, settings: Settings, app: Celery, deps: IntakeDeps, sending: Sweeper) -> None:
        self._app = app
        self._deps = deps
        self._sending = sending
        keep = partial(dead_letters.keep, deps.store)
        self._loops = [
            IntakeLoop(wiring.open_redis(settings), self._handle, self._refuse, keep, alive_s=settings.lease_s)
            for _ in range(settings.intake_threads)
        ]
        self._threads = [
            threading.Thread(target=loop.run, name=f"intake-{number}", daemon=True)
            for number, loop in enumerate(self._loops)
        ]

    def start(self) -> None:
        """See `Companion.start`."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """See `Companion.stop`."""
        for loop in self._loops:
            loop.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(timeout=30.0)

    def _handle(self, envelopes: Sequence[Envelope], purpose: Purpose) -> list[bool]:
        messages = [(envelope.submission, envelope.task_id) for envelope in envelopes]
        kinds = [taken.kind for taken in receive_all(self._deps, messages, purpose)]
        accepted = {
            purpose_of(body, purpose) for (body, _), kind in zip(messages, kinds, strict=True) if kind == "accepted"
        }
        if not all(plenty(self._app, "run", of) for of in accepted):
            announce_waiting(self._deps.store, self._app, limit=len(envelopes))
        if {"repeated", "refused"} & set(kinds):
            self._sending.nudge()  # an answer is due at once
        return [kind != "away" for kind in kinds]

    def _refuse(self, problem: Unreadable) -> None:
        refuse_unreadable(self._deps, str(problem), problem.task_id)
        self._sending.nudge()
