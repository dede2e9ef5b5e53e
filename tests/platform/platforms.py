"""The example platforms of docs/platforms.md, each as its own interpreter runs it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grader_service.model.verdict import Verdict
from grader_service.queue.app import make_answers_app
from grader_service.queue.outbox_relay import OutboxRelay
from grader_service.settings import Settings
from grader_service.store.engine import Store
from grader_service.store.outbox import OutboxMessage
from tests.conftest import missing
from tests.levels.parts import ROOT

PLATFORMS = ROOT / "examples" / "platforms"


@dataclass
class Platform:
    """A program that posts one submission and prints its verdict."""

    command: tuple[str, ...]
    folder: Path

    def run(
        self,
        redis_url: str | None,
        keys: str | None,
        *arguments: str,
        result_url: str | None = None,
        timeout_s: float = 150.0,
    ) -> Any:
        """The program after it ended; its arguments are a path, an id and steps. What is None is not set."""
        given = {"GRADER_REDIS_URL": redis_url, "GRADER_RESULT_URL": result_url, "GRADER_PUBLIC_KEYS": keys}
        environment = {**os.environ, **{name: value for name, value in given.items() if value is not None}}
        return subprocess.run(
            [*self.command, *arguments],
            cwd=self.folder, env=environment, check=False, capture_output=True, text=True, timeout=timeout_s,
        )  # fmt: skip

    def grade(
        self, redis_url: str, keys: str, *arguments: str, result_url: str | None = None, timeout_s: float = 150.0
    ) -> dict[str, Any]:
        """The verdict that it printed, with a signature that it has found to hold."""
        done = self.run(redis_url, keys, *arguments, result_url=result_url, timeout_s=timeout_s)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def tell(result_url: str, verdict: Verdict, *, task_id: str | None = None, queue: str | None = None) -> None:
    """Delivers an answer into this Redis as the service does: as the result of a task, to a queue, or both."""
    task = "lab.verdict_ready" if queue else None
    relay = OutboxRelay(Store("sqlite://"), make_answers_app(Settings(redis_url=result_url)), most_unread=100)
    relay.deliver(OutboxMessage(1, verdict.verdict_id, task_id, queue, task, verdict.model_dump_json(), 0))


@pytest.fixture(scope="session")
def python_platform():
    """With the client of the package."""
    return Platform((sys.executable, "python_client.py"), PLATFORMS)


@pytest.fixture(scope="session")
def php_platform():
    """With Debian's extension for Redis."""
    if shutil.which("php") is None:
        missing("PHP is not installed (apt-get install php-cli php-redis)")
    known = subprocess.run(["php", "-m"], check=True, capture_output=True, text=True).stdout.split()
    if not {"redis", "sodium"} <= set(known):
        missing("PHP has no extension `redis` or `sodium` (apt-get install php-redis)")
    return Platform(("php", "platform.php"), PLATFORMS / "php")


@pytest.fixture(scope="session")
def node_platform(tmp_path_factory):
    """With a public Celery client, installed from its lock file."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("Node.js and npm are not installed (apt-get install nodejs npm)")
    folder = tmp_path_factory.mktemp("node")
    for path in (PLATFORMS / "node").glob("*.js*"):
        shutil.copy(path, folder)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / "cache")],
        cwd=folder, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return Platform(("node", "platform.js"), folder)
