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


def deliver_due(store: Store, app: Celery, limit: int = 100) -> int:
    """Sends what is due; returns how many answers the broker took. Each may be sent twice, never not at all."""
    sent = []
    for letter in outbox.due(store, limit):
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
