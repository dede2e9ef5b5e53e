"""Two instances of Redis, PostgreSQL and workers for measurements of the service; private, removed at the end."""

import base64
import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy
from celery import Celery

from grader_service.queue.app import make_answers_app, make_app
from grader_service.settings import Settings
from grader_service.store.engine import Store

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.services.postgres_server import PostgresServer, running_postgres
from tests.services.redis_server import RedisServer, redis_server

GRADER = str(Path(sys.executable).with_name("grader"))
_names = itertools.count()
_HERE = "/var/tmp"  # noqa: S108 - each server makes a folder of its own there


@dataclass
class Servers:
    """What the workers of one measurement share."""

    redis: RedisServer
    """The broker."""
    results: RedisServer
    """Where answers lie."""
    database_url: str
    folder: Path
    postgres: PostgresServer | None = None

    @property
    def environment(self) -> dict[str, str]:
        """For the processes of the service."""
        return {
            **os.environ,
            "GRADER_STATE_DIR": str(self.folder),
            "GRADER_REDIS_URL": self.redis.url,
            "GRADER_RESULT_URL": self.results.url,
            "GRADER_DATABASE_URL": self.database_url,
            "GRADER_GPU": "none",
            "GRADER_MAX_QUEUED": "1000000",
            "GRADER_LEARNER_PER_HOUR": "1000000",
        }

    def settings(self) -> Settings:
        """For code in this process."""
        return Settings(
            state_dir=self.folder,
            redis_url=self.redis.url,
            result_url=self.results.url,
            database_url=self.database_url,
            max_queued=1_000_000,
        )

    def store(self) -> Store:
        """A connection of this process's own."""
        return Store(self.database_url, pool_size=10)

    def app(self) -> Celery:
        """A Celery client that posts."""
        return make_app(self.settings())

    def answers(self) -> Celery:
        """A Celery client that reads results."""
        return make_answers_app(self.settings())

    @contextlib.contextmanager
    def process(self, *command: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A process of the service or of a measurement, ended with the block."""
        with (self.folder / f"{next(_names)}.log").open("wb") as log:
            running = subprocess.Popen(command, env={**self.environment, **environment}, stdout=log, stderr=log)
        try:
            yield running
        except BaseException:
            for path in sorted(self.folder.glob("*.log")):
                sys.stderr.write(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}\n")
            raise
        finally:
            running.terminate()
            try:
                running.wait(60)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def submission(submission_id: str, source: str, **other: object) -> dict[str, Any]:
    """What a platform posts: a small module in the message itself."""
    artifact = {"filename": "s.py", "inline": base64.b64encode(source.encode()).decode()}
    return {"submission_id": submission_id, "lab": "dali-pipelines", "artifact": artifact, **other}


@dataclass(frozen=True)
class Folders:
    """Below which the servers of one measurement keep what they keep."""

    state: str = _HERE
    redis: str = _HERE
    results: str = _HERE
    postgres: str = _HERE


@contextlib.contextmanager
def servers(database: str, appendfsync: str = "always", below: Folders | None = None) -> Iterator[Servers]:
    """Fresh servers; `database` is `postgresql` or `sqlite`, `appendfsync` when Redis waits for the disk."""
    below = below or Folders()
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="grader-bench-", dir=below.state))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        options = ("--appendonly", "yes", "--appendfsync", appendfsync, "--maxmemory-policy", "noeviction")
        redis, results = (
            stack.enter_context(redis_server(*options, below=place)) for place in (below.redis, below.results)
        )
        url, postgres = f"sqlite:///{folder / 'grader.db'}", None
        if database == "postgresql":
            postgres = stack.enter_context(running_postgres(below.postgres))
            engine = sqlalchemy.create_engine(postgres.url.format(name="postgres"), isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.exec_driver_sql("create database bench")
            engine.dispose()
            url = postgres.url.format(name="bench")
        made = Servers(redis, results, url, folder, postgres)
        store = made.store()
        store.migrate()
        store.close()
        yield made
