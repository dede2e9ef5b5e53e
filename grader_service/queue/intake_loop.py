"""Takes platform messages off Redis without a moment in which one could be lost.

Celery's own consumer pops a message first and remembers it afterwards; a worker that dies in between loses it. Here a
message moves atomically from its queue to a list of this worker's (`BLMOVE`), is handled, and only then removed. What a
dead worker's list holds goes back to the head of the queue.

At the limit of its memory Redis moves nothing; it still shows and removes. Messages are handled where they lie then, so
that intake empties what is full. Other consumers may handle the same ones, which the store tells from new ones.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import structlog
from redis import Redis
from redis.exceptions import OutOfMemoryError, RedisError

from grader_service.errors import ConfigurationError, InfrastructureError
from grader_service.queue.envelope import Envelope, Unreadable, open_envelope
from grader_service.retry_policy import MESSAGES, GiveUp, RetryPolicy

log = structlog.get_logger(__name__)

Purpose = Literal["live", "regrade"]
QUEUES: tuple[Purpose, ...] = ("live", "regrade")
# Celery keeps messages with a priority in lists of their own; these are the names of its default steps.
_STEPS = ("", "\x06\x163", "\x06\x166", "\x06\x169")
_PREFIX = "grader:intake"
_BLOCK_S = 1.0
_BATCH = 32
_AWHILE_S = 0.25
"""Wait before the next look, where all that was found has to come again later."""
_IN_PLACE = threading.Lock()
"""At the limit, one consumer of a process is enough: they would handle the same messages."""

Handler = Callable[[Sequence[Envelope], Purpose], Sequence[bool]]
Refuser = Callable[[Unreadable], None]
KeepDeadLetter = Callable[[bytes, Purpose, str | None, str], None]


class IntakeLoop:
    """One consumer of the queues `live` and `regrade`.

    Args:
        redis: a client of its own.
        handle: takes messages in; says of each whether that is done, or it should come again later, and raises
            `InfrastructureError` when all of them should be tried again.
        refuse: answers a message that is no Celery message, if it has a task id, and counts it.
        keep: keeps a message that cannot be handled for an operator, with its queue, its task's id and the reason.
        alive_s: a consumer that was not heard of for this long is taken for dead.
    """

    def __init__(
        self,
        redis: "Redis",
        handle: Handler,
        refuse: Refuser,
        keep: KeepDeadLetter,
        *,
        alive_s: float = 30.0,
        name: str | None = None,
    ) -> None:
        self._redis: Any = redis
        self._handle = handle
        self._refuse = refuse
        self._keep = keep
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
        """Takes what is in hand, then live, then regrade, and waits for `block_s`; whether anything was handled."""
        try:
            return self._take_moved(block_s)
        except OutOfMemoryError:
            handled = self._take_in_place()
            if not handled:
                self._stop.wait(block_s)
            return handled

    def _take_moved(self, block_s: float) -> bool:
        for purpose in QUEUES:
            held = self._redis.lrange(self._own(purpose), 0, -1)
            if held:
                return self._work(held[::-1], purpose)
        later = False
        for purpose in QUEUES:
            for step in _STEPS:
                moved = self._move(f"{purpose}{step}", purpose)
                if moved and self._work(moved, purpose):
                    return True
                later |= bool(moved)
        if later:
            self._stop.wait(min(_AWHILE_S, block_s))
        elif block_s > 0:
            # Waits on the queue that must be quick; the other is looked at once per wait.
            raw = self._redis.blmove("live", self._own("live"), block_s, "RIGHT", "LEFT")
            if raw is not None:
                return self._work([raw], "live")
        return False

    def _take_in_place(self) -> bool:
        """Handles the oldest messages of the first list that has any which can be handled; False when none has."""
        with _IN_PLACE:
            for purpose in QUEUES:
                lists = [self._own(purpose), *self._of_the_dead(purpose), *(f"{purpose}{step}" for step in _STEPS)]
                if any(self._work_in_place(key, purpose) for key in lists):
                    return True
        return False

    def _work_in_place(self, key: str, purpose: Purpose) -> bool:
        once = replace(MESSAGES, max_attempts=1)
        left = 0  # at its end, for which our side is not ready
        while raws := self._redis.lrange(key, -left - _BATCH, -left - 1):
            handled = [raw for raw, done in self._handled(raws[::-1], purpose, once) if done]
            for raw in handled:
                self._redis.lrem(key, -1, raw)
            if handled:
                log.warning("intake_in_place", messages=len(handled), key=key)
                return True
            left += len(raws)
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
        moved = sum(self._return(key, purpose) for purpose in QUEUES for key in self._of_the_dead(purpose))
        if moved:
            log.warning("intake_recovered", messages=moved)
        return moved

    def _of_the_dead(self, purpose: Purpose) -> list[str]:
        """Lists of consumers that are gone."""
        found = []
        for key in self._redis.scan_iter(match=f"{_PREFIX}:work:*:{purpose}", count=1000):
            text = key.decode() if isinstance(key, bytes) else key
            name = text.removeprefix(f"{_PREFIX}:work:").removesuffix(f":{purpose}")
            if name != self.name and not self._redis.exists(f"{_PREFIX}:alive:{name}"):
                found.append(text)
        return found

    def _return(self, key: str, purpose: str) -> int:
        moved = 0
        while self._redis.lmove(key, purpose, "LEFT", "RIGHT") is not None:
            moved += 1
        return moved

    def _work(self, messages: Sequence[bytes], purpose: Purpose) -> bool:
        """Handles what is in hand and removes it, or puts it at the end of its queue; whether anything was done."""
        any_done = False
        for raw, done in self._handled(messages, purpose, MESSAGES):
            any_done |= done
            if done:
                self._redis.lrem(self._own(purpose), -1, raw)
            elif not self._stop.is_set():
                self._redis.lmove(self._own(purpose), purpose, "RIGHT", "LEFT")
        return any_done

    def _handled(
        self, messages: Sequence[bytes], purpose: Purpose, policy: RetryPolicy
    ) -> Iterator[tuple[bytes, bool]]:
        """Handles messages, together or else one by one; says of each whether that is done, in their order."""
        if len(messages) > 1:
            try:
                done = self._handle([open_envelope(raw) for raw in messages], purpose)
            except RedisError:
                raise
            except Exception as error:  # noqa: BLE001 - by itself, each message shows whether it is the one
                log.info("batch_taken_apart", messages=len(messages), error=f"{type(error).__name__}: {error}"[:200])
            else:
                yield from zip(messages, done, strict=True)
                return
        for raw in messages:
            yield raw, self._handled_one(raw, purpose, policy)

    def _handled_one(self, raw: bytes, purpose: Purpose, policy: RetryPolicy) -> bool:
        try:
            envelope = open_envelope(raw)
        except Unreadable as problem:
            log.error("unreadable_message", task_id=problem.task_id, reason=str(problem), size=len(raw))  # noqa: TRY400
            kept = raw if problem.task_id is None else None  # its sender is told
            return self._tried(partial(self._give_up, kept, purpose, problem), problem.task_id, policy)
        try:
            return self._tried(lambda: all(self._handle([envelope], purpose)), envelope.task_id, policy)
        except RedisError:
            raise
        except Exception as error:
            # A bug of ours, which the same message would meet again: others must not wait behind it.
            log.exception("message_given_up", task_id=envelope.task_id)
            reason = f"the grader failed on it, and kept it for its operator: {type(error).__name__}"
            bug = Unreadable(reason, envelope.task_id)
            return self._tried(partial(self._give_up, raw, purpose, bug), envelope.task_id, policy)

    def _give_up(self, raw: bytes | None, purpose: Purpose, problem: Unreadable) -> bool:
        if raw is not None:
            self._keep(raw, purpose, problem.task_id, str(problem))
        self._refuse(problem)
        return True

    def _tried(self, work: Callable[[], bool], task_id: str | None, policy: RetryPolicy) -> bool:
        """Tries for a while, until our own failure has passed; whether the work is done, or should come again."""
        failures = 0
        while True:
            try:
                return work()
            except (InfrastructureError, ConfigurationError) as error:
                log.warning("intake_waits", task_id=task_id, error=str(error)[:300])
            failures += 1
            decision = policy.decide(failures)
            if isinstance(decision, GiveUp) or self._stop.wait(decision.after_s):
                return False
            self._beat()

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            alive, until = f"{_PREFIX}:alive:{self.name}", int(self._alive_s * 1000)
            try:
                self._redis.set(alive, 1, px=until)
                self.recover()
            except OutOfMemoryError:  # see `_take_in_place`
                self._redis.pexpire(alive, until)
            self._next_beat = now + self._alive_s / 3

    def _own(self, purpose: Purpose) -> str:
        return f"{_PREFIX}:work:{self.name}:{purpose}"
