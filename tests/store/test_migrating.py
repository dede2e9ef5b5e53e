"""A migration of PostgreSQL beside others: it never makes them wait for long, and nothing of it is ever half done."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from grader_service.errors import StoreUnavailable
from grader_service.store import engine as engine_module
from grader_service.store import migrating
from grader_service.store.engine import SCHEMA, Store
from tests.conftest import fresh_database
from tests.store.next_version import EXPANDED, INDEX, NEXT, become_next
from tests.store.threads import at_once
from tests.waiting import wait_for

pytestmark = pytest.mark.integration
VALID = text(f"select indisvalid from pg_index where indexrelid = to_regclass('{INDEX}')")  # noqa: S608 - ours


@pytest.fixture
def store(postgres_url, monkeypatch, tmp_path):
    """A database of this version with runs and evidence; the code is the next one's. Statements of the service may take
    half a second."""
    monkeypatch.setattr(engine_module, "_OPTIONS", "-c statement_timeout=500")
    monkeypatch.setattr(migrating, "_OPTIONS", migrating._OPTIONS.replace("lock_timeout=3s", "lock_timeout=100ms"))
    opened = Store(postgres_url)
    with opened.transaction() as connection:
        insert(
            connection, "submission", submission_id="s:1", lab="l", learner="ann", received_at=1.0, filename="f",
            sha256="0" * 64, size_bytes=1, steps="[]", content_key="k", queue="live",
        )  # fmt: skip
        for run_id in ("a", "b", "c"):
            insert(
                connection, "run", run_id=run_id, submission_id="s:1", purpose="live", priority=0, state="done",
                plan="{}", fence=1, attempts=0, not_before=1.0, created_at=1.0,
            )  # fmt: skip
    for run_id in ("a", "b"):
        store_evidence(opened, run_id)
    become_next(monkeypatch, tmp_path)
    yield opened
    opened.close()


def insert(connection, table, **values):
    """One row, of columns that this version knows."""
    names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(text(f"insert into {table} ({names}) values ({marks})"), values)  # noqa: S608 - ours


def store_evidence(store, run_id):
    with store.transaction() as connection:
        insert(
            connection, "evidence", run_id=run_id, fence=1, kind="evidence", sha256="0" * 64, size_bytes=1,
            document=b"x", created_at=1.0,
        )  # fmt: skip


@contextmanager
def in_use(store):
    """A transaction that has written to evidence and stays open; yields what ends it."""
    with store.engine.connect() as connection:
        connection.execute(text("update evidence set size_bytes = 2 where run_id = 'a'"))
        yield connection.rollback


def test_a_table_in_use_is_left_to_others_and_taken_later(store, monkeypatch):
    """The migration lets go of its place in line, waits, and tries again."""
    with in_use(store) as end:
        paused = []

        def pause(_):
            paused.append(store.schema())
            store_evidence(store, "c")  # nobody stands in line before it
            end()

        monkeypatch.setattr(migrating, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=pause))
        store.migrate()
    assert paused == [SCHEMA]
    assert store.schema() == NEXT


def test_what_cannot_be_locked_is_told_and_nothing_is_half_done(store, monkeypatch):
    """With who is in the way, and the same command again once he is not."""
    monkeypatch.setattr(migrating, "_PATIENCE_S", 0.0)
    with in_use(store) as end:
        with pytest.raises(
            StoreUnavailable, match=r"pid \d+ \(idle in transaction.*pg_terminate_backend.*store migrate"
        ):
            store.migrate()
        assert store.schema() == SCHEMA
        assert "more" not in {column["name"] for column in inspect(store.engine).get_columns("evidence")}
        end()
    store.migrate()
    store.check_schema()


def test_writers_go_on_while_an_index_is_built(store):
    """Its build waits for an older transaction, for longer than a statement of the service may take."""
    migrating.upgrade(store.engine, EXPANDED)
    building = threading.Thread(target=store.migrate)
    long = text("select 1 from pg_stat_activity where query like 'CREATE INDEX%' and now() - query_start > '1 s'")
    with in_use(store) as end:
        building.start()
        wait_for(lambda: seen(store, long), 20)
        store_evidence(store, "c")
        end()
    building.join(60)
    assert (store.schema(), seen(store, VALID)) == (NEXT, True)


def test_an_index_whose_build_broke_off_is_built_again(store):
    """PostgreSQL leaves one behind that finds nothing and costs each write."""
    migrating.upgrade(store.engine, EXPANDED)
    with (
        store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(DBAPIError, match="could not create unique index"),
    ):
        connection.execute(text(f"create unique index concurrently {INDEX} on evidence (fence)"))
    assert seen(store, VALID) is False
    store.migrate()
    assert seen(store, VALID) is True
    with store.transaction() as connection:
        made = connection.execute(text(f"select pg_get_indexdef('{INDEX}'::regclass)")).scalar_one()
    assert "(run_id) WHERE (more IS NULL)" in made


def test_several_may_migrate_at_once(postgres, monkeypatch):
    """From nothing; one does it, the others wait for it and find it done."""
    monkeypatch.setattr(migrating, "_PAUSE_S", 0.1)
    with fresh_database(postgres, template="template1") as url:
        stores = [Store(url) for _ in range(4)]
        at_once(4, lambda number: stores[number].migrate())
        for store in stores:
            store.check_schema()
            store.close()


def seen(store, statement):
    with store.transaction() as connection:
        return connection.execute(statement).scalar()
