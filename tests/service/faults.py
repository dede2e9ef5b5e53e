"""Faults on purpose, at exactly one point: a table that takes no writes, a broker that is frozen, odd messages."""

import base64
import json
import signal
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import text

from grader_service.store.tables import EventRow
from tests.service.harness import Service
from tests.services.redis_server import RedisServer
from tests.waiting import wait_for

_AGAIN = {"running": "run_queued", "judging": "judge_queued"}
_STEPS = {
    "accepted": {"": "run_queued"},
    "run_claimed": {"run_queued": "running"},
    "run_done": {"running": "judge_queued"},
    "judge_claimed": {"judge_queued": "judging"},
    "verdict": {"judging": "done"},
    "failed_by_us": _AGAIN,
    "given_back": _AGAIN,
    "needs_attention": {"running": "needs_attention", "judging": "needs_attention"},
}
"""What each event makes of the states of a run in which it may happen."""


@contextmanager
def no_writes(service: Service, table: str) -> Iterator[None]:
    """Whoever writes to the table waits until the block ends; reading goes on."""
    with service.store.engine.connect() as connection, connection.begin():
        connection.execute(text(f'lock table "{table}" in share row exclusive mode'))
        yield


def writer_waits(service: Service, table: str) -> None:
    """Waits until somebody has been stopped by `no_writes`."""
    waiting = text(f"select count(*) from pg_locks where not granted and relation = '\"{table}\"'::regclass")  # noqa: S608 - the tests name the tables

    def look() -> int:
        with service.store.engine.connect() as connection:
            return connection.execute(waiting).scalar_one()

    wait_for(look, 20, every_s=0.03)


@contextmanager
def frozen(redis: RedisServer) -> Iterator[None]:
    """Redis neither answers nor refuses."""
    assert redis.process is not None
    redis.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        redis.process.send_signal(signal.SIGCONT)


def body(*args: Any, **kwargs: Any) -> str:
    """The body of a Celery message, in Base64."""
    return base64.b64encode(json.dumps([list(args), kwargs, {}]).encode()).decode()


def envelope(content: Any, **changes: Any) -> dict[str, Any]:
    """A Celery message as it lies in Redis; `changes` replace its parts, and None takes one out."""
    task_id = changes.pop("task_id", None) or uuid.uuid4().hex
    message = {
        "body": content,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"lang": "py", "task": changes.pop("task", "grader.grade"), "id": task_id},
        "properties": {"correlation_id": task_id, "body_encoding": "base64", "delivery_tag": uuid.uuid4().hex},
        **changes,
    }
    return {key: value for key, value in message.items() if value is not None}


def push(service: Service, message: Any, queue: str = "live") -> None:
    """Puts bytes on a queue past every client library."""
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    service.redis.client().lpush(queue, raw)


def scrape(port: int) -> dict[str, float]:
    """What `grader metrics` says, by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    pairs = [line.rpartition(" ") for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


def explained(service: Service, submission_id: str) -> list[str]:
    """The submission's events; they must lead from nothing to the state that its row says, step by step (G5)."""
    rows = sorted(service.rows(EventRow, EventRow.submission_id == submission_id), key=lambda row: row["id"])
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    state, fence = "", 0
    for row in rows:
        kind, detail = row["kind"], row["detail"]
        if kind == "retried":
            assert state == "needs_attention"
            state = detail["state"]
        elif kind not in {"repeated", "refused", "fenced_off"}:
            assert state in _STEPS[kind], f"{kind} in state {state!r}"
            state = _STEPS[kind][state]
        if kind in {"run_claimed", "judge_claimed"}:
            assert detail["fence"] == fence + 1, "each claim raises the fence by one"
            fence = detail["fence"]
    assert state == service.state(submission_id)
    return [row["kind"] for row in rows]
