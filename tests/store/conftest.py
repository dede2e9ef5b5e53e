"""Every test of the store runs on SQLite and on PostgreSQL."""

import pytest

from grader_service.store.engine import Store


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
