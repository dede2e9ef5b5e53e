"""From which schemas a database is brought to this version, and what it holds meanwhile."""

import pytest
from sqlalchemy import text

from grader_service.errors import ConfigurationError
from grader_service.store.engine import SCHEMA
from grader_service.store.tables import SubmissionRow
from tests.store.aged import OF_SUBMISSIONS, graded
from tests.store.factories import count
from tests.store.next_version import NEXT, become_next


@pytest.mark.parametrize("found", ["0001", "0013a", "0016", "0017"])
def test_a_schema_that_was_never_released_is_refused(store, found):
    """In words, by workers and by the command that migrates; nothing of it is changed."""
    with store.transaction() as connection:
        connection.execute(text("update alembic_version set version_num = :found"), {"found": found})
    said = f"the database has schema {found}, which was never released; expected {SCHEMA} or newer: start with an empty"
    for refused in (store.check_schema, store.migrate):
        with pytest.raises(ConfigurationError, match=said):
            refused()
    assert store.schema() == found


def test_a_filled_database_is_brought_to_the_next_version(store, tmp_path, monkeypatch):
    """Submissions, runs, evidence and verdicts are all there afterwards, and refer to each other."""
    graded(store, 1)
    before = [count(store, table) for table in OF_SUBMISSIONS]
    become_next(monkeypatch, tmp_path)
    with pytest.raises(ConfigurationError, match=f"has schema {SCHEMA}, this grader needs {NEXT}: run `grader store"):
        store.check_schema()
    store.migrate()
    store.check_schema()
    assert [count(store, table) for table in OF_SUBMISSIONS] == before
    graded(store, 2, learner="bob")
    assert count(store, SubmissionRow) == 2
    if store.is_sqlite:
        with store.transaction() as connection:
            assert connection.execute(text("pragma foreign_key_check")).all() == []
