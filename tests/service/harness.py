"""The whole service as processes: real Redis, a database, real workers of both roles, a platform that posts."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil
from celery import Celery
from sqlalchemy import select

from grader_service.queue.app import make_answers_app, make_app
from grader_service.settings import Settings
from grader_service.store.engine import Store
from grader_service.store.tables import EventRow, OutboxRow, RunRow, VerdictRow
from tests.corpus.parts_texts import lists
from tests.factories import message
from tests.services import roles
from tests.services.redis_server import RedisServer
from tests.waiting import PATIENCE, wait_for

GRADER = str(Path(sys.executable).with_name("grader"))
QUICK = lists()
"""A submission whose step `reflection` passes, in about a second of run time."""
AT_WORK = "learner-at-work"
"""Name of the process of a learner, while its code sleeps."""
SLOW = f"import time\nopen('/proc/self/comm', 'w').write('{AT_WORK}')\ntime.sleep({{seconds}})\n{QUICK}"
_GATED = """
import os, time
open({begun!r}, "w").close()
while not os.path.exists({opened!r}):
    time.sleep(0.05)
"""
ServiceT = TypeVar("ServiceT", bound="Service")


def a_message(submission_id: str | None = None, source: str = QUICK, **changes: Any) -> dict[str, Any]:
    """A message as a platform posts it."""
    usual = {"learner": f"learner-{uuid.uuid4().hex[:8]}", "steps": ["reflection"]}
    return message(submission_id or f"t:{uuid.uuid4().hex[:12]}", source, **usual | changes)


@dataclass
class Worker:
    """One process of the service."""

    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        """Of the main process."""
        return self.process.pid

    def child(self) -> int:
        """Pid of the pool's child, once there is one."""
        return wait_for(lambda: next(iter(psutil.Process(self.pid).children()), None), 20).pid

    def send(self, number: int) -> None:
        """Sends a signal to the main process only."""
        os.kill(self.pid, number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and waits; returns the exit status."""
        if self.process.poll() is None:
            self.send(number)
        return self.process.wait(60)

    def said(self, event: str) -> list[dict[str, Any]]:
        """Log lines of this event; those that are no JSON are passed over."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return [line for line in found if isinstance(line, dict) and line.get("event") == event]


class Gate:
    """What a submission waits at until a test opens it; learner code of the process sandbox sees the same files."""

    def __init__(self, folder: Path) -> None:
        name = uuid.uuid4().hex
        self._begun = folder / f"gate-{name}-begun"
        self._opened = folder / f"gate-{name}-opened"

    @property
    def source(self) -> str:
        """Of a submission that passes once the gate is open."""
        return _GATED.format(begun=str(self._begun), opened=str(self._opened)) + QUICK

    def await_begun(self) -> None:
        """Waits until the submission stands before it."""
        wait_for(self._begun.exists, 30)

    def open(self) -> None:
        """Lets it go on."""
        self._opened.touch()


@dataclass
class Service:
    """A broker, a database, a state folder, and the workers that a test starts."""

    redis: RedisServer
    database_url: str
    state_dir: Path
    logs: Path
    environment: dict[str, str] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(self.database_url, pool_size=10)
        self.store.migrate()
        self.app: Celery = make_app(self.settings())
        self.answers: Celery = make_answers_app(self.settings())

    def env(self, **changes: str) -> dict[str, str]:
        """Environment of the service's processes; small times so that faults are noticed within a test."""
        return {
            **os.environ,
            "GRADER_STATE_DIR": str(self.state_dir),
            "GRADER_REDIS_URL": self.redis.url,
            "GRADER_DATABASE_URL": self.database_url,
            "GRADER_SANDBOX": "process",
            "GRADER_GPU": "none",
            "GRADER_LEASE_S": "5",
            "GRADER_SWEEP_S": "0.5",
            "GRADER_RETRY_DELAY_S": "0.2",
            "GRADER_SOFT_SHUTDOWN_S": "3",
            # What is prepared or measured between runs would take processors from other tests; see test_grading.py.
            "GRADER_WARM_RUNS": "0",
            "GRADER_REFERENCE_MINUTES": "0",
            **self.environment,
            **changes,
        }

    def settings(self) -> Settings:
        """The same, for code in this process."""
        return Settings(state_dir=self.state_dir, redis_url=self.redis.url, database_url=self.database_url)

    def env_of(self, command: tuple[str, ...], **changes: str) -> dict[str, str]:
        """The same for one command of the service, in the role of the database that it has with compose."""
        env = self.env(**changes)
        return env | roles.environment(env["GRADER_DATABASE_URL"], command)

    def start(self, *command: str, program: str = GRADER, role: str = "run", **environment: str) -> Worker:
        """Starts `grader …`, or another runner, or worker of another role, in its place, with its log in a file."""
        log = self.logs / f"{'-'.join([Path(program).name, *command])}-{len(self.workers)}.log".replace("/", "_")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, *command],
                env=self.env_of(command if program == GRADER else ("worker", role), **environment),
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        worker = Worker(process, log)
        self.workers.append(worker)
        return worker

    def command(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Runs `grader …` to its end, as an operator types it."""
        env = self.env_of(words, COLUMNS="160", **environment)
        return subprocess.run([GRADER, *words], env=env, check=False, capture_output=True, text=True, timeout=240)

    def judge(self, **environment: str) -> Worker:
        """Starts a judge."""
        return self.start("worker", "judge", **environment)

    def runner(self, slot: int = 0, **environment: str) -> Worker:
        """Starts a runner on a slot."""
        return self.start("worker", "run", "--slot", str(slot), **environment)

    def both(self) -> tuple[Worker, Worker]:
        """Starts a judge, and a runner."""
        return self.judge(), self.runner()

    def gate(self) -> Gate:
        """A new one."""
        return Gate(self.state_dir)

    def gated(self) -> tuple[Gate, str, str]:
        """Posts a submission and waits until it stands before its gate; returns that, its id and its task's id."""
        gate = self.gate()
        sent = self.post(self.message(source=gate.source))
        gate.await_begun()
        return gate, *sent

    message = staticmethod(a_message)

    def post(self, message: Any = None, queue: str = "live", task_id: str | None = None) -> tuple[str, str]:
        """Posts a message; returns the submission's id and the task's id."""
        message = self.message() if message is None else message
        sent = self.app.send_task("grader.grade", kwargs={"submission": message}, queue=queue, task_id=task_id)
        return (message["submission_id"] if isinstance(message, dict) else ""), sent.id

    def result(self, task_id: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """The result of a posted task."""
        return self.answers.AsyncResult(task_id).get(timeout=PATIENCE * timeout_s, interval=0.1)

    def rows(self, table: Any, *where: Any) -> list[Any]:
        """Rows of a table as mappings."""
        with self.store.transaction() as connection:
            return list(connection.execute(select(table.__table__).where(*where)).mappings())

    def runs(self, submission_id: str) -> list[Any]:
        """Runs of a submission."""
        return self.rows(RunRow, RunRow.submission_id == submission_id)

    def verdicts(self, submission_id: str) -> list[Any]:
        """Verdicts of a submission, current or not."""
        return self.rows(VerdictRow, VerdictRow.submission_id == submission_id)

    def events(self, submission_id: str) -> list[str]:
        """Kinds of its events, in order."""
        rows = self.rows(EventRow, EventRow.submission_id == submission_id)
        return [row["kind"] for row in sorted(rows, key=lambda row: row["id"])]

    def undelivered(self) -> list[Any]:
        """Answers that were not sent yet."""
        return self.rows(OutboxRow, OutboxRow.delivered_at.is_(None))

    def state(self, submission_id: str) -> str | None:
        """State of its newest run."""
        runs = sorted(self.runs(submission_id), key=lambda row: row["created_at"])
        return runs[-1]["state"] if runs else None

    def await_state(self, submission_id: str, *states: str, timeout_s: float = 60.0) -> str:
        """Waits until its newest run is in one of these states."""
        return wait_for(lambda: (found := self.state(submission_id)) in states and found, timeout_s)

    def one_verdict(self, submission_id: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """Waits for the verdict; there must be exactly one, in force, and it passed."""
        wait_for(lambda: self.verdicts(submission_id), timeout_s)
        found = self.verdicts(submission_id)
        assert [row["current"] for row in found] == [True]
        document = json.loads(found[0]["document"])
        assert document["status"] == "passed", document["feedback"]
        return document

    def stop(self) -> None:
        """Ends whatever still runs, children included."""
        for worker in self.workers:
            if worker.process.poll() is None:
                try:
                    os.killpg(worker.pid, signal.SIGKILL)
                except ProcessLookupError:
                    worker.process.kill()
                worker.process.wait(20)
        self.store.close()


@contextmanager
def served(redis: RedisServer, url: str, logs: Path, *, kind: type[ServiceT], **environment: str) -> Iterator[ServiceT]:
    """A service with a state folder of its own; the logs of its workers are shown when the test fails."""
    state_dir = Path(tempfile.mkdtemp(prefix="grader-svc-", dir="/var/tmp"))
    made = kind(redis, url, state_dir, logs, environment)
    try:
        yield made
    finally:
        made.stop()
        for worker in made.workers:
            print(f"--- {worker.log.name}\n{worker.log.read_text(errors='replace')[-4000:]}")
        shutil.rmtree(state_dir, ignore_errors=True)
