"""Brings events about runs to platforms: runners say them to judges, and these say them on.

A runner has no way to platforms' queues, and what it says chooses none: where an event goes stands in the database.
All of it is best effort; what is lost on the way is not sent again.
"""

import contextlib
import queue
import threading
import uuid
from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import RedisError

from grader_service.errors import InfrastructureError
from grader_service.model.progress import MAX_BYTES, ProgressEvent
from grader_service.store.engine import Store
from grader_service.store.submissions import progress_to

log = structlog.get_logger(__name__)

KEY = "grader.judge.progress"
"""List in the broker, among those that runners and judges share."""
_MOST_WAITING = 1000
_MOST_IN_HAND = 50
_BLOCK_S = 1.0


class ProgressPost:
    """Says a runner's events to judges by the broker, in a thread: one that hangs holds up no run."""

    def __init__(self, redis: "Redis") -> None:
        self._redis: Any = redis
        self._waiting: queue.Queue[ProgressEvent] = queue.Queue(_MOST_IN_HAND)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def send(self, event: ProgressEvent) -> None:
        """Takes an event and returns at once; where too many wait already, it is dropped."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
                self._thread.start()
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(event)

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                if self._redis.llen(KEY) < _MOST_WAITING:  # else no judge listens
                    self._redis.lpush(KEY, event.model_dump_json())
            except (RedisError, OSError) as error:
                log.info("progress_not_sent", run_id=event.run_id, error=str(error)[:200])


class ProgressRelay:
    """Says on what runners say, in a thread of a judge; implements `Companion`.

    Args:
        redis: a client of the broker, of its own.
        app: of `make_answers_app`, of its own.
        store: where it stands who asked.
        most_unread: messages in a platform's queue beside which no event is put.
    """

    def __init__(self, redis: "Redis", app: Celery, store: Store, most_unread: int) -> None:
        self._redis: Any = redis
        self._app = app
        self._store = store
        self._most_unread = most_unread
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def start(self) -> None:
        """See `Companion.start`."""
        self._thread.start()

    def stop(self) -> None:
        """See `Companion.stop`."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=30.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if (popped := self._redis.brpop([KEY], timeout=_BLOCK_S)) is not None:
                    self.relay(popped[1])
            except (RedisError, OperationalError, OSError, InfrastructureError) as error:
                log.info("progress_lost", error=f"{type(error).__name__}: {error}"[:200])
                self._stop.wait(_BLOCK_S)
            except Exception:
                log.exception("progress_bug")
                self._stop.wait(_BLOCK_S)

    def relay(self, raw: bytes) -> bool:
        """Sends one event to the platform that asked for it; whether that was done.

        Raises:
            RedisError, OperationalError, OSError, StoreUnavailable: a server did not do its part.
        """
        try:
            event = ProgressEvent.model_validate_json(raw if len(raw) <= 2 * MAX_BYTES else b"")
        except ValueError as error:
            log.warning("progress_unreadable", size=len(raw), error=str(error)[:200])
            return False
        to = progress_to(self._store, event.submission_id, event.run_id)
        if to is None or self._app.backend.client.llen(to.queue) >= self._most_unread:
            return False
        self._app.send_task(
            to.task,
            kwargs={"progress": event.model_dump(mode="json")},
            queue=to.queue,
            task_id=f"progress-{uuid.uuid4().hex}",
            ignore_result=True,
            retry=False,
        )
        return True
