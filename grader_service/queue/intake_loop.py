"""Takes platform messages off Redis without a moment in which one could be lost.

Celery's own consumer pops a message first and remembers it afterwards; a worker that dies in between loses it. Here a
message moves atomically from its queue to a list of this worker's (`BLMOVE`), is handled, and only then removed. What a
dead worker's list holds goes back to the head of the queue.
"""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
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
_BATCH = 32
_TRIES = 5
"""About six seconds; then other messages get their turn."""
_ASIDE = f"{_PREFIX}:aside"
_KEEP_ASIDE = 1000

Handler = Callable[[Sequence[Envelope], Purpose], None]
Refuser = Callable[[Unreadable], None]


class IntakeLoop:
    """One consumer of the queues `live` and `regrade`.

    Args:
        redis: a client of its own.
        handle: takes messages in; raises `InfrastructureError` when they should be tried again.
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
                self.take(block_s=_BLOCK_S)
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

    def take(self, *, block_s: float = 0.0) -> bool:
        """Takes what comes next: what is in hand already, then live, then regrade. False when nothing was handled."""
        for purpose in QUEUES:
            held = self._redis.lrange(self._own(purpose), 0, -1)
            if held:
                return self._work(held[::-1], purpose)
        for purpose in QUEUES:
            for step in _STEPS:
                moved = self._move(f"{purpose}{step}", purpose)
                if moved:
                    return self._work(moved, purpose)
        if block_s > 0:
            # Waits on the queue that must be quick; the other is looked at once per wait.
            raw = self._redis.blmove("live", self._own("live"), block_s, "RIGHT", "LEFT")
            if raw is not None:
                return self._work([raw], "live")
        return False

    def _move(self, queue: str, purpose: Purpose) -> list[bytes]:
        """Moves up to a batch into this consumer's hands, oldest first; each message in one atomic step."""
        first = self._redis.lmove(queue, self._own(purpose), "RIGHT", "LEFT")
        if first is None:
            return []
        pipeline = self._redis.pipeline(transaction=False)
        for _ in range(_BATCH - 1):
            pipeline.lmove(queue, self._own(purpose), "RIGHT", "LEFT")
        return [first, *(raw for raw in pipeline.execute() if raw is not None)]

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

    def _work(self, messages: Sequence[bytes], purpose: Purpose) -> bool:
        """Handles messages and removes them; those for which our side is not ready go to the end of their queue."""
        if len(messages) == 1:
            done = self._work_one(messages[0], purpose)
        else:
            try:
                self._handle([open_envelope(raw) for raw in messages], purpose)
                done = True
            except RedisError:
                raise
            except Exception as error:  # noqa: BLE001 - by itself, each message shows whether it is the one
                log.info("batch_taken_apart", messages=len(messages), error=f"{type(error).__name__}: {error}"[:200])
                singly = [self._work([raw], purpose) for raw in messages]
                return all(singly)
        for raw in messages:
            if done:
                self._redis.lrem(self._own(purpose), -1, raw)
            elif not self._stop.is_set():
                self._redis.lmove(self._own(purpose), purpose, "RIGHT", "LEFT")
        return done

    def _work_one(self, raw: bytes, purpose: Purpose) -> bool:
        try:
            envelope = open_envelope(raw)
        except Unreadable as problem:
            log.error("unreadable_message", task_id=problem.task_id, reason=str(problem), size=len(raw))  # noqa: TRY400
            if problem.task_id is None:
                self._put_aside(raw)
            return self._tried(partial(self._refuse, problem), problem.task_id)
        try:
            return self._tried(partial(self._handle, [envelope], purpose), envelope.task_id)
        except RedisError:
            raise
        except Exception:
            # A bug of ours, which the same message would meet again: others must not wait behind it.
            log.exception("message_put_aside", task_id=envelope.task_id)
            self._put_aside(raw)
            bug = Unreadable("the grader failed on it, and kept it for its operator", envelope.task_id)
            return self._tried(partial(self._refuse, bug), envelope.task_id)

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
