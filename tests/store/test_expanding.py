"""Migrations only add, so that workers of the version before go on; one that removes something says who can go on."""

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, text

from grader_service.store import migrating
from grader_service.store.engine import FIRST, Store
from tests.conftest import fresh_database
from tests.store.expanding import disturbing
from tests.store.next_version import ADDS_COLUMN, become_next


@pytest.fixture
def database(postgres):
    """A store without tables."""
    with fresh_database(postgres, template="template1") as url:
        opened = Store(url)
        yield opened
        opened.close()


def schema_of(store):
    found = MetaData()
    with store.engine.connect() as connection:
        found.reflect(connection)
    return found


def oldest(store):
    with store.engine.connect() as connection:
        return connection.execute(text("select oldest from compatibility")).scalar_one()


def expand_only(database):
    """What each migration removes, the version before does not use any more: see docs/operations.md."""
    scripts = ScriptDirectory.from_config(migrating.configuration())
    migrating.upgrade(database.engine, FIRST)
    for script in reversed(list(scripts.iterate_revisions("head", FIRST))):
        before, works = schema_of(database), oldest(database)
        migrating.upgrade(database.engine, script.revision)
        now = oldest(database)
        if works == now:
            found = disturbing(before, schema_of(database))
            assert found == [], f"{script.path}: raise `oldest` in the table `compatibility`, or add only"
        else:
            assert works < now <= script.down_revision, f"{script.path}: the version before cannot go on beside it"


def test_each_migration_lets_the_version_before_go_on(database):
    """From the first one on."""
    expand_only(database)


def test_a_migration_that_only_adds_is_let_through(database, monkeypatch, tmp_path):
    """With the index that comes after it."""
    become_next(monkeypatch, tmp_path)
    expand_only(database)


_LEAVES_BEHIND = "op.execute(\"update compatibility set oldest = '8999a'\")"


@pytest.mark.parametrize(
    ("also", "what"),
    [
        ("pass", "raise `oldest` in the table `compatibility`, or add only"),
        (_LEAVES_BEHIND, "the version before cannot go on beside it"),
    ],
    ids=["unsaid", "from_itself_on"],
)
def test_a_migration_that_removes_what_is_in_use_is_found(database, monkeypatch, tmp_path, also, what):
    """Said or not: the version before works on beside it."""
    become_next(monkeypatch, tmp_path, f"{ADDS_COLUMN}; op.execute('alter table run drop column held_s'); {also}")
    with pytest.raises(AssertionError, match=what):
        expand_only(database)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("drop table erasure", "erasure: the table is gone"),
        ("alter table run rename column turn to place", "run.turn: the column is gone"),
        ("alter table run drop column held_s", "run.held_s: the column is gone"),
        ("alter table run add column more integer not null", "run.more: new, and older workers give it no value"),
        ("alter table run alter column learner type varchar(20)", "run.learner: was VARCHAR(200), is VARCHAR(20)"),
        ("alter table run alter column learner set not null", "run.learner: older workers may leave it null"),
        ("alter table run alter column turn drop default", "run.turn: has no default any more"),
        ("create unique index one on run (submission_id)", "a new rule: unique submission_id"),
        ("alter table run add check (attempts < 5)", "run: older workers do not keep to a new rule: check"),
        ("create table note (run_id varchar(32) references run (run_id))", "note: older workers know nothing"),
        ("alter table outbox add foreign key (verdict_id) references verdict (verdict_id)", "reference to verdict"),
    ],
)
def test_what_would_disturb_is_named(postgres_url, change, what):
    """By table and column."""
    store = Store(postgres_url)
    before = schema_of(store)
    with store.transaction() as connection:
        connection.exec_driver_sql(change)
    assert any(what in said for said in disturbing(before, schema_of(store)))
    store.close()


def test_what_only_adds_disturbs_nobody(postgres_url):
    """Tables, columns that may be null or have a default, indexes, more room."""
    store = Store(postgres_url)
    before = schema_of(store)
    with store.transaction() as connection:
        for change in (
            "create table note (run_id varchar(32) references run (run_id) on delete cascade, at integer not null)",
            "alter table run add column more integer",
            "alter table run add column most integer not null default 0",
            "create index ix_more on run (more)",
            "alter table run alter column learner type varchar(400)",
        ):
            connection.exec_driver_sql(change)
    assert disturbing(before, schema_of(store)) == []
    store.close()
