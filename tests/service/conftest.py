"""A service per test: its own Redis, its own PostgreSQL database, its own state folder."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.service.harness import Service
from tests.services.redis_server import redis_server


@pytest.fixture
def redis():
    """A Redis of the test's own, which it may kill and start again."""
    if shutil.which("redis-server") is None:
        missing("Redis is not installed (apt-get install redis-server)")
    with redis_server() as server:
        yield server


@pytest.fixture
def service(redis, postgres_url, tmp_path, request):
    """A service without workers; the logs of those that a test starts are shown when it fails."""
    state_dir = Path(tempfile.mkdtemp(prefix="grader-svc-", dir="/var/tmp"))
    made = Service(redis, postgres_url, state_dir, tmp_path)
    yield made
    made.stop()
    for worker in made.workers:
        print(f"--- {worker.log.name}\n{worker.log.read_text(errors='replace')[-4000:]}")
    shutil.rmtree(state_dir, ignore_errors=True)
