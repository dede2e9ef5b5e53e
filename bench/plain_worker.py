"""A plain Celery worker, as a yardstick: hops of a chain that do nothing, or write one durable row each.

    python bench/plain_worker.py HOP [HOP ...]

It takes the queues of these hops in Redis' database 1, so that it shares the server with the service and no key. It has
one child and otherwise Celery's defaults: messages are acknowledged before their work, four are fetched ahead.
"""

import os
import sys
from functools import cache
from typing import Any

from celery import Celery, chain

from grader_service.store.engine import Store
from grader_service.store.events import record

HOPS = ("intake", "run", "judge")
"""As many as a submission takes through the service, each on a queue of its own; then comes the reply."""
EVENT = "bench"
REPLIES = "plain.replies"


def make_app(redis_url: str) -> Celery:
    """An application on the same server as the service, in a database of its own."""
    url = f"{redis_url.rpartition('/')[0]}/1"
    app = Celery("plain", broker=url, backend=url)

    @app.task(name="plain.nothing")
    def nothing(subject: Any) -> str:
        """Hands on what the hop before it handed on; the first one gets the whole message."""
        return str(subject["submission_id"] if isinstance(subject, dict) else subject)

    @app.task(name="plain.row")
    def row(subject: Any) -> str:
        """The same, with one committed row."""
        submission_id = nothing(subject)
        with store().transaction() as connection:
            record(connection, EVENT, "plain", submission_id=submission_id)
        return str(submission_id)

    return app


def through(app: Celery, task: str, message: dict[str, Any]) -> chain:
    """The hops and the reply, which nobody but the platform takes; as in the service, one result is kept: the last."""
    *early, last = HOPS
    steps = [app.signature(task, queue=f"plain.{hop}", ignore_result=True) for hop in early]
    steps.append(app.signature(task, queue=f"plain.{last}"))
    steps[0] = steps[0].clone(args=(message,))
    return chain(*steps, app.signature("platform.graded", queue=REPLIES, ignore_result=True))


@cache
def store() -> Store:
    """Of this child: opened for its first row, with the service's own pool."""
    return Store(os.environ["GRADER_DATABASE_URL"], pool_size=10)


if __name__ == "__main__":
    hops = sys.argv[1:]
    plain = make_app(os.environ["GRADER_REDIS_URL"])
    names = [f"plain.{hop}" for hop in hops]
    plain.Worker(
        hostname=f"plain-{'-'.join(hops)}@%h", queues=names, concurrency=1, loglevel="ERROR", quiet=True
    ).start()
