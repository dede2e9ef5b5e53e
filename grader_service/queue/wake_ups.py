"""Announces waiting runs on the queue. A wake-up that is lost is sent again by the sweeper."""

from collections.abc import Sequence

import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from grader_service.queue.tasks import JUDGE_TASK, RUN_TASK
from grader_service.store.lease import Stage
from grader_service.store.sweep import WakeUp
from grader_service.store.tables import PRIORITY

log = structlog.get_logger(__name__)
_TASKS = {"run": RUN_TASK, "judge": JUDGE_TASK}
_PLENTY = 64
_STAGES: tuple[Stage, ...] = ("run", "judge")
_KINDS = tuple((stage, purpose) for stage in _STAGES for purpose in PRIORITY)


def announce(app: Celery, wake_up: WakeUp) -> bool:
    """Sends one wake-up; False when the broker did not take it, which costs a moment and nothing else."""
    try:
        app.send_task(
            _TASKS[wake_up.stage],
            args=(wake_up.run_id,),
            queue=_queue(wake_up.stage, wake_up.purpose),
            ignore_result=True,
            retry=False,
        )
    except (OperationalError, RedisError, OSError) as error:
        log.warning("wake_up_not_sent", run_id=wake_up.run_id, error=str(error)[:200])
        return False
    return True


def holding(app: Celery) -> list[tuple[Stage, str]] | None:
    """Stages and purposes whose queue holds wake-ups that nobody took yet; None when the broker does not answer."""
    try:
        lengths = _lengths(app, [_queue(*kind) for kind in _KINDS])
    except (OperationalError, RedisError, OSError) as error:
        log.warning("broker_away", error=str(error)[:200])
        return None
    return [kind for kind, length in zip(_KINDS, lengths, strict=True) if length]


def lying(app: Celery, queues: Sequence[str]) -> int | None:
    """How many wake-ups lie in these queues; None when the broker does not answer."""
    try:
        return sum(_lengths(app, queues))
    except (OperationalError, RedisError, OSError):
        return None


def plenty(app: Celery, stage: Stage, purpose: str) -> bool:
    """Whether enough wake-ups are queued: no more are sent then, since each run that ends announces what waits."""
    return (lying(app, [_queue(stage, purpose)]) or 0) >= _PLENTY


def _lengths(app: Celery, queues: Sequence[str]) -> list[int]:
    """How many wake-ups lie in each of these queues."""
    with (
        app.connection_or_acquire() as connection,
        connection.default_channel.client.pipeline(transaction=False) as pipe,
    ):
        for queue in queues:
            pipe.llen(queue)
        return [int(length) for length in pipe.execute()]


def _queue(stage: Stage, purpose: str) -> str:
    return f"grader.{stage}.{purpose}"
