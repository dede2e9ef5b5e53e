"""Announces waiting runs on the queue. A hint that is lost is sent again by the sweeper."""

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from grader_service.queue.tasks import JUDGE_TASK, RUN_TASK
from grader_service.store.sweep import Hint

log = structlog.get_logger(__name__)
_TASKS = {"run": RUN_TASK, "judge": JUDGE_TASK}


def announce(app: Celery, hint: Hint) -> bool:
    """Sends one hint; False when the broker did not take it, which costs a moment and nothing else."""
    try:
        app.send_task(
            _TASKS[hint.stage],
            args=(hint.run_id,),
            queue=f"grader.{hint.stage}.{hint.purpose}",
            ignore_result=True,
            retry=False,
        )
    except (OperationalError, OSError) as error:
        log.warning("hint_not_sent", run_id=hint.run_id, error=str(error)[:200])
        return False
    return True
