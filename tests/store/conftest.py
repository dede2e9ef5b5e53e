"""Every test of the store runs on SQLite and on PostgreSQL."""

import itertools

import pytest
import sqlalchemy

from grader_service.store.engine import Store
from tests.conftest import missing
from tests.services.postgres_server import binaries, postgres_server

_numbers = itertools.count()


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
        template.close()
        yield url, admin
        admin.dispose()


@pytest.fixture
def postgres_url(postgres):
    """A fresh, migrated database."""
    url, admin = postgres
    name = f"test_{next(_numbers)}"
    with admin.connect() as connection:
        connection.exec_driver_sql(f"create database {name} template template_grader")
    yield url.format(name=name)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"drop database {name} with (force)")


@pytest.fixture
def sqlite_url(tmp_path):
    """A fresh file."""
    return f"sqlite:///{tmp_path}/grader.db"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request):
    """Each database in turn."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def store(store_url):
    """A store with the current schema."""
    opened = Store(store_url, pool_size=20)
    opened.migrate()
    yield opened
    opened.close()
