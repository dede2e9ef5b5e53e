"""Stores of SQLite, whose figures are those of any database."""

import pytest

from grader_service.store import operations
from tests.store.factories import migrated


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Events are counted as soon as they are there."""
    monkeypatch.setattr(operations, "_SETTLED_S", -1.0)


@pytest.fixture
def store(sqlite_url):
    """An empty one."""
    with migrated(sqlite_url) as opened:
        yield opened
