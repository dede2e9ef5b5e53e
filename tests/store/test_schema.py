"""Which schema a grader works with: its own, and a newer one that allows it; a foreign one is refused."""

import pytest
from sqlalchemy import update

from grader_service.errors import ConfigurationError
from grader_service.store import engine, leases, results
from grader_service.store.engine import Store
from grader_service.store.tables import CompatibilityRow
from tests.store.factories import a_submission, accept


def test_migrating_twice_changes_nothing(store):
    """Several processes may start at once."""
    store.migrate()
    store.check_schema()


def test_a_foreign_schema_is_refused(tmp_path):
    """A database without our tables names the command that makes them."""
    with pytest.raises(ConfigurationError, match="grader store migrate"):
        Store(f"sqlite:///{tmp_path}/empty.db").check_schema()


def test_a_schema_of_a_newer_grader_is_left_alone(tmp_path):
    """Migrating would not help: nobody here knows what is in it."""
    store = Store(f"sqlite:///{tmp_path}/newer.db")
    store.migrate()
    with store.transaction() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
        connection.exec_driver_sql("update compatibility set oldest = '9998'")
    for refused in (store.check_schema, store.migrate):
        with pytest.raises(ConfigurationError, match=r"schema 9999, for graders of 9998 .* is the older one"):
            refused()
    assert store.schema() == "9999"


def test_a_newer_schema_that_says_so_is_worked_on(store):
    """Workers of the version before go on, and can be started, until the last of them is replaced."""
    with store.transaction() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
        connection.execute(update(CompatibilityRow).values(oldest=engine.SCHEMA))
    store.check_schema()
    store.migrate()
    assert store.schema() == "9999"


def test_a_version_that_the_schema_left_behind_finishes_and_claims_nothing(store):
    """Its readiness says so; it is newer workers that claim."""
    accept(store, a_submission(1))
    accept(store, a_submission(2, learner="bob"))
    running = leases.claim(store, "run", "r", 60)
    with store.transaction() as connection:
        connection.execute(update(CompatibilityRow).values(oldest="9998"))
    assert leases.claim(store, "run", "r", 60) is None
    assert results.store_evidence(store, running, "evidence", b"{}", {})
    assert leases.claim(store, "judge", "j", 60) is None
    with store.transaction() as connection:
        connection.execute(update(CompatibilityRow).values(oldest=engine.SCHEMA))
    assert leases.claim(store, "judge", "j", 60).submission_id == "s:1"
    assert leases.claim(store, "run", "r", 60).submission_id == "s:2"


def test_the_version_that_is_asked_for_is_that_of_the_newest_migration(store):
    """It is written down a second time, so that asking for it loads no migration."""
    from alembic.script import ScriptDirectory

    from grader_service.store import migrating

    assert ScriptDirectory.from_config(migrating.configuration()).get_current_head() == engine.SCHEMA == store.schema()


def test_the_schema_is_that_of_the_tables(store):
    """Migrations and models agree: nothing is left to generate."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from grader_service.store.tables import Base

    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, Base.metadata) == []
