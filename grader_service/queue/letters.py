"""Delivers answers: the result of the platform's own task, and the message to the queue that it named."""

import json

import structlog
from celery import Celery, states
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from grader_service.queue.hints import holding
from grader_service.store import outbox
from grader_service.store.engine import Store
from grader_service.store.outbox import Letter

log = structlog.get_logger(__name__)


_MOST_ROUNDS = 10


def deliver_all(store: Store, app: Celery, limit: int = 100) -> int:
    """Sends what is due, a thousand answers at most; returns how many the broker took."""
    sent = 0
    for _ in range(_MOST_ROUNDS):  # a sweeper has other things to do as well
        done = deliver_due(store, app, limit)
        sent += done
        if done < limit:
            break
    return sent


def deliver_due(store: Store, app: Celery, limit: int = 100, *, verdict_id: str | None = None) -> int:
    """Sends what is due; returns how many answers the broker took. Each may be sent twice, never not at all.

    Args:
        store: with the answers.
        app: with the broker.
        limit: at most so many.
        verdict_id: only answers with this verdict.
    """
    sent = []
    for letter in outbox.due(store, limit, verdict_id=verdict_id):
        try:
            deliver(app, letter)
        except (OperationalError, RedisError, OSError) as error:
            outbox.postponed(store, letter, f"{type(error).__name__}: {error}")
            log.warning("answer_postponed", letter=letter.id, attempts=letter.attempts + 1, error=str(error)[:200])
            if holding(app) is None:
                break  # the broker is away: the other answers would only wait for it one after another
        else:
            sent.append(letter.id)
    outbox.delivered(store, sent)
    return len(sent)


def deliver(app: Celery, letter: Letter) -> None:
    """Sends one answer both ways that it names.

    Raises:
        OperationalError, RedisError, OSError: the broker did not take it.
    """
    verdict = json.loads(letter.document)
    if letter.task_id is not None:
        app.backend.forget(letter.task_id)  # a result that is there already would be kept: re-graded, there is another
        app.backend.store_result(letter.task_id, verdict, states.SUCCESS)
    if letter.reply_queue is not None and letter.reply_task is not None:
        app.send_task(
            letter.reply_task,
            kwargs={"verdict": verdict},
            queue=letter.reply_queue,
            # The same id every time: a receiver that sees it twice has the same verdict twice.
            task_id=f"verdict-{verdict['verdict_id']}",
            ignore_result=True,
            retry=False,
        )
