"""All rows of a database come back as they were, whichever database it is."""

import json

import pytest
from sqlalchemy import func, insert, select

from grader_service.backup import making
from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.store import backups, dead_letters, erasing, rows, workers
from grader_service.store.engine import SCHEMA, Store
from grader_service.store.tables import EventRow, SubmissionRow
from tests.backup.conftest import Owned
from tests.store.aged import a_batch, graded
from tests.store.factories import a_submission, accept, count
from tests.store.next_version import NEXT, become_next

LATER = {"event", "backup"}
"""Tables to which a restoration adds, or which say what came after a snapshot."""


def everything(store, without=()):
    """Every row of every table, as lines say it."""
    with store.snapshot() as connection:
        return {
            table.name: sorted(rows.lines(connection, table))
            for table in rows.tables(connection)
            if table.name not in without
        }


def fill(owned):
    """A row in nearly every table, with all kinds of values."""
    sha256 = owned.artifacts.put(b"x = 1")
    graded(owned.store, 1, graph=bytes(range(256)), sha256=sha256)
    graded(owned.store, 2, learner="Zoë \u2028 O'Neill", cohort=None, sha256=sha256)
    graded(owned.store, 3, learner="bob", sha256=sha256)
    a_batch(owned.store, "s:1", learners=["ann"])
    dead_letters.keep(owned.store, b"\x00\xff{", "live", None, "it cannot be read")
    erasing.erase(owned.store, "bob", "eve", lambda _: json.dumps({"of": "bob"}))
    accept(owned.store, a_submission(4, sha256=sha256))


def test_all_rows_come_back(owned, empty):
    """Texts, numbers, bytes, JSON and nothing at all; and ids go on after those that were given."""
    fill(owned)
    before = everything(owned.store, LATER)
    assert all(before[table] for table in ("submission", "run", "evidence", "blob", "verdict", "waiter", "outbox"))
    assert all(before[table] for table in ("regrade_batch", "regrade_item", "dead_letter", "erasure", "share"))
    manifest = owned.back_up()
    done = empty.restore()
    assert everything(empty.store, LATER) == before
    assert done.rows == sum(manifest.files[name].lines for name in manifest.tables.values())
    assert empty.store.schema() == SCHEMA
    with empty.store.transaction() as connection:
        newest = connection.execute(select(func.max(EventRow.id))).scalar_one()
        connection.execute(insert(EventRow).values(at=1.0, kind="k", actor="a", detail={}))
        assert connection.execute(select(func.max(EventRow.id))).scalar_one() == newest + 1
    graded(empty.store, 9, learner="cid")


@pytest.mark.integration
def test_a_backup_moves_from_one_database_to_the_other(place, tmp_path, postgres_url):
    """The embedded one grows into PostgreSQL, and back."""
    one, other = (Owned(Store(url), tmp_path / url[:4], place) for url in (f"sqlite:///{tmp_path}/a.db", postgres_url))
    one.store.migrate()
    fill(one)
    one.back_up()
    other.restore()
    assert everything(other.store, LATER) == everything(one.store, LATER)
    back = Owned(Store(f"sqlite:///{tmp_path}/b.db"), tmp_path / "back", place)
    other.back_up()
    back.restore()
    assert everything(back.store, LATER) == everything(one.store, LATER)
    for opened in (one, other, back):
        opened.store.close()


def test_a_backup_is_of_one_moment_and_holds_up_nobody(owned, empty, monkeypatch):
    """What is accepted while it is made is accepted at once, and is not in it."""
    owned.grade(1)
    lines = rows.lines

    def slow(connection, table):
        if table.name == "submission":
            accept(owned.store, a_submission(2))
        yield from lines(connection, table)

    monkeypatch.setattr(rows, "lines", slow)
    owned.back_up()
    assert count(owned.store, SubmissionRow) == 2
    empty.restore()
    assert set(empty.in_force()) == {"s:1"}
    assert count(empty.store, SubmissionRow) == 1


def test_one_of_an_older_schema_is_brought_to_this_one(owned, empty, monkeypatch, tmp_path):
    """It is filled in as it was, and migrated."""
    fill(owned)
    before = everything(owned.store, {*LATER, "evidence"})
    assert owned.back_up().database_schema == SCHEMA
    become_next(monkeypatch, tmp_path)
    empty.restore()
    assert empty.store.schema() == NEXT
    assert everything(empty.store, {*LATER, "evidence"}) == before


def test_one_of_a_schema_that_was_never_released_is_refused(owned, empty):
    """In words, and before anything is touched."""
    manifest = owned.back_up().model_copy(update={"database_schema": "0011"})
    owned.place.finish(manifest)
    with pytest.raises(
        ConfigurationError, match=f"the backup .* has schema 0011, which was never .* expected {SCHEMA}"
    ):
        empty.restore()
    assert empty.store.schema() is None


def test_one_with_columns_that_were_never_released_is_refused(owned, empty):
    """Its schema has the number of the first release; what is in the database stays."""
    with owned.store.transaction() as connection:
        connection.exec_driver_sql("alter table submission add column old_word text")
    owned.grade(1)
    owned.back_up()
    empty.store.migrate()
    empty.grade(2)
    with pytest.raises(ConfigurationError, match=r"never released: .* submission differs in old_word"):
        empty.restore(replace=True)
    assert set(empty.in_force()) == {"s:2"}


def test_a_damaged_one_is_refused_before_anything_is_touched(owned, empty, tmp_path):
    """A file that is gone, or was changed; the one before it can be restored."""
    owned.grade(1)
    older = owned.back_up()
    newer = owned.back_up()
    file = tmp_path / "backups" / "backups" / newer.name / "tables" / "verdict.jsonl.gz"
    for damage in (lambda: file.write_bytes(file.read_bytes()[:-1]), file.unlink):
        damage()
        with pytest.raises(InfrastructureError, match=r"damaged: tables/verdict\.jsonl\.gz"):
            empty.restore()
    assert empty.store.schema() is None
    empty.restore(older.name)
    assert empty.in_force() == owned.in_force()


def test_a_database_with_anything_in_it_is_kept(owned, empty):
    """Unless told otherwise; and never under workers that are at work."""
    owned.grade(1)
    owned.back_up()
    empty.store.migrate()
    kept = empty.grade(2)
    with pytest.raises(UsageError, match="is not empty"):
        empty.restore()
    assert empty.in_force()["s:2"][0] == kept
    identity = workers.Identity(workers.JUDGE, "host-1")
    workers.say(empty.store, identity, [])
    with pytest.raises(UsageError, match="judge/host-1; stop them first"):
        empty.restore(replace=True)
    workers.forget(empty.store, identity)
    empty.restore(replace=True)
    assert empty.in_force() == owned.in_force()


def test_workers_of_another_version_are_not_disturbed(owned, empty, monkeypatch, tmp_path):
    """Whatever the schema is, `--replace` does not delete under them."""
    owned.back_up()
    with monkeypatch.context() as patching:
        become_next(patching, tmp_path)
        empty.store.migrate()
    workers.say(empty.store, workers.Identity(workers.JUDGE, "host-1"), [])
    with pytest.raises(UsageError, match="judge/host-1; stop them first"):
        empty.restore(replace=True)


def test_tables_of_others_stay(owned, empty):
    """They are neither saved nor dropped."""
    for one in (owned, empty):
        with one.store.transaction() as connection:
            connection.exec_driver_sql("create table theirs (x integer)")
            connection.exec_driver_sql("insert into theirs values (7)")
    owned.grade(1)
    assert "theirs" not in owned.back_up().tables
    empty.restore()
    with empty.store.transaction() as connection:
        assert connection.exec_driver_sql("select x from theirs").scalar_one() == 7


def test_the_schema_is_that_of_the_rows(owned, empty, monkeypatch, tmp_path):
    """Also where the database is migrated while artifacts are copied."""
    copy = making._copy

    def slow(*arguments):
        become_next(monkeypatch, tmp_path)
        owned.store.migrate()
        return copy(*arguments)

    monkeypatch.setattr(making, "_copy", slow)
    assert owned.back_up().database_schema == SCHEMA
    assert owned.store.schema() == NEXT
    empty.restore()
    empty.grade(1)


def test_a_manifest_that_is_damaged_hides_no_other(owned, empty, tmp_path):
    """It is no whole backup."""
    owned.grade(1)
    older, newer = owned.back_up(), owned.back_up()
    (tmp_path / "backups" / "backups" / older.name / "manifest.json").write_bytes(b"")
    assert [one.name for one in owned.place.manifests()] == [newer.name]
    empty.restore()
    assert empty.in_force() == owned.in_force()


def test_one_at_a_time(owned):
    """Who makes one beside another would remove what that one needs."""
    with backups.alone(owned.store):
        assert owned.back_up()
        with (
            pytest.raises(UsageError, match="another backup of this database is being made"),
            backups.alone(owned.store),
        ):
            pass
    with backups.alone(owned.store):
        pass


def test_the_service_works_on_meanwhile(owned):
    """However long artifacts take to copy, runs are claimed, done and judged."""
    with backups.alone(owned.store):
        owned.grade(1)
    assert owned.in_force()


def test_one_that_broke_off_is_none(owned, monkeypatch):
    """It has no manifest, is not found, and goes with the next ones."""
    owned.grade(1)
    monkeypatch.setattr(owned.place, "finish", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(InfrastructureError, match="No space left on device"):
        owned.back_up()
    assert owned.place.manifests() == []
    assert backups.age_s(owned.store) is None
    with pytest.raises(UsageError, match="no whole backup 'newest'"):
        owned.restore(replace=True)
