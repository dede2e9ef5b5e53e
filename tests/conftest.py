"""Fixtures for every tier. What is missing is skipped at home and fails with CI=true."""

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy
import structlog
from hypothesis import settings

from grader_service.errors import SandboxUnavailable
from grader_service.store import roles
from grader_service.store.engine import Store
from sandbox.broker.client import BrokerRunner
from sandbox.docker.runner import DockerRunner, connect_engine
from sandbox.process.runner import ProcessRunner
from tests.checks import declared_codes
from tests.kubernetes_api.cluster import OneNode
from tests.levels.dealing import pytest_xdist_make_scheduler  # noqa: F401 - a hook
from tests.levels.marking import pytest_collection_modifyitems  # noqa: F401 - a hook
from tests.sandbox.engine_proxy import EngineProxy
from tests.sandbox.pod_broker import serving
from tests.services.forked_runner import ForkedRunner
from tests.services.postgres_server import binaries, postgres_server
from tests.services.redis_server import redis_server
from tests.services.roles import PASSWORDS

LAB_IMAGE = os.environ.get("GRADER_LAB_IMAGE", "grader-lab")
settings.register_profile("grader", deadline=None)  # machines are shared: how long an example takes says nothing
settings.load_profile("grader")
_numbers = itertools.count()
declared_codes.watch()

# Nothing of the machine's own configuration reaches a test, but the lab image that somebody asks for.
for _name in [name for name in os.environ if name.startswith("GRADER_") and name != "GRADER_LAB_IMAGE"]:
    del os.environ[_name]
os.environ["GRADER_CONFORMANCE_SECRET"] = "must not reach a pod"  # noqa: S105


def missing(what: str) -> None:
    """Skips at home; with CI=true a missing component is a failure, never a silent skip."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{what}, and CI=true allows no skips")
    pytest.skip(what, allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported stays: looking through it for garbage, then or ever again, takes some percent of a run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """What a command wrote its log to in one test is closed in the next."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """No built-in check answers, in any test, with a code that it does not declare."""
    yield
    assert declared_codes.strangers() == []


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """A state folder of its own; it must be empty of runs again at the end."""
    path = Path(tempfile.mkdtemp(prefix="grader-test-", dir="/var/tmp"))
    yield path
    runs = path / "runs"
    left = list(runs.iterdir()) if runs.is_dir() else []
    shutil.rmtree(path)
    assert left == [], "a run left its folder behind"


@pytest.fixture(scope="session")
def engine():
    """A client of a Docker engine."""
    try:
        return connect_engine(30.0)
    except SandboxUnavailable as error:
        return missing(str(error))


@pytest.fixture(scope="session")
def lab_image(engine) -> str:
    """The lab image's name; `make test` builds it."""
    if not engine.images.list(name=LAB_IMAGE):
        missing("the lab image is not built (`grader images build lab`)")
    return LAB_IMAGE


@pytest.fixture
def docker_runner(lab_image, state_dir) -> DockerRunner:
    """A Docker runner with a state folder of its own."""
    return DockerRunner(lab_image, state_dir)


@pytest.fixture
def broker_runner(lab_image, state_dir, tmp_path) -> Iterator[BrokerRunner]:
    """A runner without an engine, whose pods a broker with the state folder starts."""
    with serving(lab_image, state_dir) as path:
        yield BrokerRunner(path, lab_image, tmp_path)


@pytest.fixture
def crun_runner(engine, lab_image, state_dir) -> DockerRunner:
    """The same with another OCI runtime."""
    if "crun" not in engine.info()["Runtimes"]:
        missing("the engine has no runtime crun (`runtimes` in daemon.json)")
    return DockerRunner(lab_image, state_dir, runtime="crun")


@pytest.fixture
def proxy(tmp_path):
    """An engine that can be made to fail."""
    made = EngineProxy(tmp_path)
    yield made
    made.heal()
    made.close()


@pytest.fixture
def kubernetes_cluster(engine, tmp_path):
    """A cluster of one node, whose pods are containers of the local engine."""
    with closing(OneNode(engine, tmp_path / "seccomp")) as cluster:
        yield cluster


@pytest.fixture
def kubernetes_runner(kubernetes_cluster, lab_image, state_dir):
    """A Kubernetes runner with a state folder and a cluster of its own."""
    if os.geteuid() != 0:
        missing("only root may mount scratch")
    return kubernetes_cluster.runner(lab_image, state_dir)


@pytest.fixture
def process_runner(state_dir) -> ProcessRunner:
    """A process runner with a state folder of its own."""
    return ProcessRunner(state_dir)


@pytest.fixture
def forked_runner(state_dir) -> ForkedRunner:
    """A process runner whose pods need not import torch, with a state folder of its own."""
    return ForkedRunner(state_dir)


@pytest.fixture(
    params=[
        pytest.param("process", id="process", marks=pytest.mark.integration),
        pytest.param("docker", id="docker", marks=pytest.mark.integration),
        pytest.param("broker", id="broker", marks=pytest.mark.integration),
    ]
)
def runner(request):
    """Each runner in turn."""
    return request.getfixturevalue(f"{request.param}_runner")


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL with a migrated template database; yields its URL pattern."""
    if binaries() is None:
        missing("PostgreSQL is not installed (apt-get install postgresql)")
    with postgres_server() as url:
        admin = sqlalchemy.create_engine(url.format(name="postgres"), isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.exec_driver_sql("create database template_grader")
        template = Store(url.format(name="template_grader"))
        template.migrate()
        roles.apply(template.engine, PASSWORDS)
        template.close()
        yield url, admin
        admin.dispose()


@pytest.fixture
def redis():
    """A Redis of the test's own, which it may kill and start again."""
    if shutil.which("redis-server") is None:
        missing("Redis is not installed (apt-get install redis-server)")
    with redis_server() as server:
        yield server


@contextmanager
def fresh_database(postgres, template="template_grader"):
    """The URL of a database of one's own, migrated unless another template is named; dropped at the end."""
    url, admin = postgres
    name = f"test_{next(_numbers)}"
    with admin.connect() as connection:
        connection.exec_driver_sql(f"create database {name} template {template}")
    yield url.format(name=name)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"drop database {name} with (force)")


@pytest.fixture
def postgres_url(postgres):
    """A fresh, migrated database."""
    with fresh_database(postgres) as url:
        yield url


@pytest.fixture
def postgres_store(postgres_url):
    """The store of one, for what only PostgreSQL does."""
    opened = Store(postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_url(tmp_path):
    """A fresh file."""
    return f"sqlite:///{tmp_path}/grader.db"


DATABASES = (
    pytest.param("sqlite", marks=pytest.mark.slow),
    pytest.param("postgres", marks=pytest.mark.integration),
)
"""Each database in turn, for what the store's own tests have tried on both: the service's own comes first."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def store_url(request):
    """Each database in turn."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def store(store_url):
    """A store with the current schema, on each database in turn."""
    opened = Store(store_url, pool_size=20)
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def chromium():
    """A Chromium that Playwright drives; missing, it is skipped at home and a failure with CI=true."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        missing("no Chromium on PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()
