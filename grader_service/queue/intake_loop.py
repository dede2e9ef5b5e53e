"""Takes platform messages off Redis without a moment in which one could be lost.

Celery's own consumer pops a message first and remembers it afterwards; a worker that dies in between loses it. Here a
message moves atomically from its queue to a list of this worker's (`BLMOVE`), is handled, and only then removed. What a
dead worker's list holds goes back to the head of the queue.
"""

import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import structlog
from redis import Redis
from redis.exceptions import RedisError

from grader_service.errors import ConfigurationError, InfrastructureError
from grader_service.queue.envelope import Envelope, Unreadable, open_envelope

log = structlog.get_logger(__name__)

Purpose = Literal["live", "regrade"]
QUEUES: tuple[Purpose, ...] = ("live", "regrade")
# Celery keeps messages with a priority in lists of their own; these are the names of its default steps.
_STEPS = ("", "\x06\x163", "\x06\x166", "\x06\x169")
_PREFIX = "grader:intake"
_BLOCK_S = 1.0
_TRIES = 5
"""About six seconds; then other messages get their turn."""
_ASIDE = f"{_PREFIX}:aside"
_KEEP_ASIDE = 1000

Handler = Callable[[Envelope, Purpose], None]
Refuser = Callable[[Unreadable], None]


class IntakeLoop:
    """One consumer of the queues `live` and `regrade`.

    Args:
        redis: a client of its own.
        handle: takes a message in; raises `InfrastructureError` when it should be tried again.
        refuse: answers a message that is no Celery message, if it has a task id, and counts it.
        alive_s: a consumer that was not heard of for this long is taken for dead.
    """

    def __init__(
        self, redis: "Redis", handle: Handler, refuse: Refuser, *, alive_s: float = 30.0, name: str | None = None
    ) -> None:
        self._redis: Any = redis
        self._handle = handle
        self._refuse = refuse
        self.name = name or uuid.uuid4().hex
        self._stop = threading.Event()
        self._alive_s = alive_s
        self._next_beat = 0.0

    def stop(self) -> None:
        """Ends the loop after the message in hand."""
        self._stop.set()

    def run(self) -> None:
        """Consumes until stopped; survives a broker that goes away. What is in hand then goes back."""
        while not self._stop.is_set():
            try:
                self._beat()
                self.take_one(block_s=_BLOCK_S)
            except RedisError as error:
                log.warning("intake_broker_lost", error=str(error)[:200])
                self._stop.wait(1.0)
            except Exception:
                log.exception("intake_bug")
                self._stop.wait(1.0)
        try:
            for purpose in QUEUES:
                self._return(self._own(purpose), purpose)
        except RedisError as error:
            log.warning("intake_broker_lost", error=str(error)[:200])  # another consumer finds it

    def take_one(self, *, block_s: float = 0.0) -> bool:
        """Takes the next message: what is in hand already, then live, then regrade. False when there was none."""
        for purpose in QUEUES:
            raw = self._redis.lindex(self._own(purpose), -1)
            if raw is not None:
                return self._work(raw, purpose)
        for purpose in QUEUES:
            for step in _STEPS:
                raw = self._redis.lmove(f"{purpose}{step}", self._own(purpose), "RIGHT", "LEFT")
                if raw is not None:
                    return self._work(raw, purpose)
        if block_s > 0:
            # Waits on the queue that must be quick; the other is looked at once per wait.
            raw = self._redis.blmove("live", self._own("live"), block_s, "RIGHT", "LEFT")
            if raw is not None:
                return self._work(raw, "live")
        return False

    def recover(self) -> int:
        """Gives dead consumers' messages back to the head of their queue; returns how many."""
        moved = 0
        for key in self._redis.scan_iter(match=f"{_PREFIX}:work:*", count=1000):
            text = key.decode() if isinstance(key, bytes) else key
            name, _, purpose = text.removeprefix(f"{_PREFIX}:work:").rpartition(":")
            if purpose in QUEUES and name != self.name and not self._redis.exists(f"{_PREFIX}:alive:{name}"):
                moved += self._return(text, purpose)
        if moved:
            log.warning("intake_recovered", messages=moved)
        return moved

    def _return(self, key: str, purpose: str) -> int:
        moved = 0
        while self._redis.lmove(key, purpose, "LEFT", "RIGHT") is not None:
            moved += 1
        return moved

    def _work(self, raw: bytes, purpose: Purpose) -> bool:
        """Handles a message and removes it; one for which our side is not ready goes to the end of its queue."""
        try:
            envelope = open_envelope(raw)
        except Unreadable as problem:
            log.error("unreadable_message", task_id=problem.task_id, reason=str(problem), size=len(raw))  # noqa: TRY400
            if problem.task_id is None:
                self._put_aside(raw)
            done = self._tried(partial(self._refuse, problem), problem.task_id)
        else:
            try:
                done = self._tried(partial(self._handle, envelope, purpose), envelope.task_id)
            except RedisError:
                raise
            except Exception:
                # A bug of ours, which the same message would meet again: others must not wait behind it.
                log.exception("message_put_aside", task_id=envelope.task_id)
                self._put_aside(raw)
                bug = Unreadable("the grader failed on it, and kept it for its operator", envelope.task_id)
                done = self._tried(partial(self._refuse, bug), envelope.task_id)
        if done:
            self._redis.lrem(self._own(purpose), -1, raw)
        elif not self._stop.is_set():
            self._redis.lmove(self._own(purpose), purpose, "RIGHT", "LEFT")
        return done

    def _tried(self, work: Callable[[], None], task_id: str | None) -> bool:
        """Tries until our own failure has passed, for a while; the message stays in hand meanwhile."""
        wait_s = 0.2
        for _ in range(_TRIES):
            try:
                work()
            except (InfrastructureError, ConfigurationError) as error:
                log.warning("intake_waits", task_id=task_id, error=str(error)[:300])
                if self._stop.wait(wait_s):
                    return False
                wait_s *= 2
                self._beat()
            else:
                return True
        return False

    def _put_aside(self, raw: bytes) -> None:
        self._redis.lpush(_ASIDE, raw[: 4 << 20])
        self._redis.ltrim(_ASIDE, 0, _KEEP_ASIDE - 1)

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            self._redis.set(f"{_PREFIX}:alive:{self.name}", 1, px=int(self._alive_s * 1000))
            self.recover()
            self._next_beat = now + self._alive_s / 3

    def _own(self, purpose: Purpose) -> str:
        return f"{_PREFIX}:work:{self.name}:{purpose}"
