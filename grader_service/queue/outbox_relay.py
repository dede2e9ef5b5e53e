"""Delivers answers: the result of the platform's own task, and the message to the queue that it named."""

import json
import time
from collections.abc import Callable, Sequence

import structlog
from celery import Celery, states
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from grader_service.backup.journal import Journal
from grader_service.store import outbox
from grader_service.store.engine import Store
from grader_service.store.outbox import OutboxMessage

log = structlog.get_logger(__name__)


_MOST_ROUNDS = 10
_AT_ONCE = 100


class Unread(Exception):
    """So many answers lie in the platform's queue that nobody seems to read them; the task's result was stored."""

    def __init__(self, queue: str, lying: int) -> None:
        super().__init__(f"{lying} answers lie unread in the queue {queue}")
        self.queue = queue


class OutboxRelay:
    """Sends answers.

    Args:
        app: of `make_answers_app`.
        most_unread: answers that may lie in one queue; further ones wait in the database.
        journal: keeps each answer before it is sent.
    """

    def __init__(
        self,
        store: Store,
        app: Celery,
        most_unread: int,
        journal: Journal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._store = store
        self._journal = journal
        self._app = app
        self._most_unread = most_unread

    def deliver_all(self, limit: int = _AT_ONCE) -> int:
        """Sends what is due, a thousand answers at most; returns how many Redis took.

        Raises:
            InfrastructureError: they cannot be kept in the journal, and wait.
        """
        sent = 0
        for _ in range(_MOST_ROUNDS):  # a sweeper has other things to do as well
            due = outbox.due(self._store, limit)
            done, there = self._deliver(due)
            sent += done
            if len(due) < limit or not there:
                break
        return sent

    def deliver_due(self, *, verdict_id: str | None = None) -> int:
        """Sends some of what is due, or of one verdict; returns how many answers Redis took. Each may be sent twice.

        Raises:
            InfrastructureError: they cannot be kept in the journal, and wait.
        """
        return self._deliver(outbox.due(self._store, _AT_ONCE, verdict_id=verdict_id))[0]

    def _deliver(self, messages: Sequence[OutboxMessage]) -> tuple[int, bool]:
        """How many of them were sent, and whether Redis was there."""
        if self._journal is not None and messages:
            began = self._clock()
            self._journal.keep(messages)
            if self._clock() - began > outbox.HELD_S:
                return 0, True  # it hung: they are others' by now, may have been changed, and are read again
        sent, there = [], True
        full: set[str] = set()
        for message in messages:
            if message.reply_queue in full and message.task_id is None:
                continue
            try:
                self.deliver(message)
            except Unread as unread:
                outbox.unread(self._store, message, str(unread))
                if unread.queue not in full:
                    full.add(unread.queue)
                    outbox.none_for(self._store, unread.queue, str(unread))
                    log.warning("answers_unread", queue=unread.queue, reason=str(unread))
            except (OperationalError, RedisError, OSError) as error:
                outbox.postponed(self._store, message, f"{type(error).__name__}: {error}")
                log.warning(
                    "answer_postponed", message=message.id, attempts=message.attempts + 1, error=str(error)[:200]
                )
                there = self._answers()
                if not there:
                    break  # the other answers would only wait for it one after another
            except Exception as error:
                # A row that we cannot make a message of: it is tried again, seldom, and holds up no other.
                outbox.postponed(self._store, message, f"{type(error).__name__}: {error}")
                log.exception("answer_unsendable", message=message.id)
            else:
                sent.append(message.id)
        outbox.delivered(self._store, sent)
        return len(sent), there

    def deliver(self, message: OutboxMessage) -> None:
        """Sends one answer both ways that it names.

        Raises:
            Unread: the queue is full of others.
            OperationalError, RedisError, OSError: Redis did not take it.
        """
        verdict = json.loads(message.document)
        if message.task_id is not None:
            # A result that is there already would be kept: re-graded, there is another.
            self._app.backend.forget(message.task_id)
            self._app.backend.store_result(message.task_id, verdict, states.SUCCESS)
        if message.reply_queue is not None and message.reply_task is not None:
            lying = self._app.backend.client.llen(message.reply_queue)
            if lying >= self._most_unread:
                raise Unread(message.reply_queue, lying)
            self._app.send_task(
                message.reply_task,
                kwargs={"verdict": verdict},
                queue=message.reply_queue,
                # The same id every time: a receiver that sees it twice has the same verdict twice.
                task_id=f"verdict-{verdict['verdict_id']}",
                ignore_result=True,
                retry=False,
            )

    def _answers(self) -> bool:
        try:
            return bool(self._app.backend.client.ping())
        except (RedisError, OSError):
            return False
