"""A service per test: its own Redis, its own PostgreSQL database, its own state folder."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.conftest import fresh_database, missing
from tests.service.harness import Service, served
from tests.service.local_service import LocalService, containers_of, volumes_of
from tests.services.chat_server import chat_server
from tests.services.redis_server import redis_server
from tests.services.stream_proxy import before_postgres


@pytest.fixture
def service(redis, postgres_url, tmp_path):
    """A service without workers."""
    with served(redis, postgres_url, tmp_path, kind=Service) as made:
        yield made


@pytest.fixture
def docker_service(service, engine, lab_image):
    """The same with pods in containers; whatever a failed test leaves of them is removed."""
    service.environment |= {"GRADER_SANDBOX": "docker", "GRADER_LAB_IMAGE": lab_image}
    yield service
    service.stop()
    for container in containers_of(engine, service.state_dir):
        container.remove(force=True)
    for volume in volumes_of(engine, service.state_dir):
        volume.remove(force=True)


@pytest.fixture
def local(tmp_path):
    """Intake and judging in this process, for tests that bring runners of their own."""
    state_dir = Path(tempfile.mkdtemp(prefix="grader-local-", dir="/var/tmp"))
    made = LocalService(state_dir)
    yield made
    made.store.close()
    shutil.rmtree(state_dir, ignore_errors=True)


@pytest.fixture(scope="module")
def graded(postgres, tmp_path_factory):
    """A service with a judge and a runner, for all tests of a module that break nothing."""
    if shutil.which("redis-server") is None:
        missing("Redis is not installed (apt-get install redis-server)")
    logs = tmp_path_factory.mktemp("logs")
    with fresh_database(postgres) as url, redis_server() as redis, served(redis, url, logs, kind=Service) as made:
        made.environment["GRADER_ARTIFACT_SOURCES"] = f"file://{made.state_dir}/outbox/"
        made.environment["GRADER_LEASE_S"] = "60"  # nobody waits for the end of one; a lost one would be a try more
        made.both()
        yield made


@pytest.fixture
def database(service, tmp_path):
    """A proxy before the database, through which every worker goes."""
    folder = tmp_path / "pg"
    folder.mkdir()
    made, url = before_postgres(service.database_url, folder)
    service.environment["GRADER_DATABASE_URL"] = url
    yield made
    made.close()


@pytest.fixture
def server():
    """A chat model that finds everything good."""
    with chat_server() as made:
        yield made
