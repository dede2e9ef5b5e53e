"""Roles of PostgreSQL: rights that are given and taken, what is refused, and owners who may not make roles."""

import re
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from grader_service.cli.app import app
from grader_service.errors import ConfigurationError, StoreUnavailable
from grader_service.settings import Settings
from grader_service.store import roles
from grader_service.store.engine import Store
from grader_service.store.rights import RIGHTS
from grader_service.store.tables import Base
from tests.conftest import fresh_database
from tests.services.roles import PASSWORDS, as_role
from tests.waiting import wait_for

_READERS = ("web", "metrics", "backup")
_WORKERS = ("judge", "runner", "regrade", "operator")
_DDL = (
    "create table mine (id integer)",
    "create temporary table mine (id integer)",
    "create schema mine",
    "alter table verdict add column mine text",
    "drop table verdict",
    "truncate verdict",
    "create index mine on verdict (status)",
    "create function mine() returns integer language sql as 'select 1'",
    "create trigger mine before insert on verdict execute function suppress_redundant_updates_trigger()",
    "create role mine",
    "alter role grader password 'mine'",
    "set role grader",
    "copy (select 1) to program 'true'",
    "select pg_read_file('postgresql.conf')",
    "update alembic_version set version_num = '0001'",
    "update compatibility set oldest = '0001'",
    "select setval('event_id_seq', 1)",
)
_FORBIDDEN = {
    "judge": (
        "update verdict set document = '{}'",
        "update verdict set status = 'passed'",
        "insert into evidence (run_id) values ('r')",
        "update device set state = 'ready'",
        "insert into regrade_batch (batch_id) values ('b')",
        "update run set learner = 'another'",
        "update second_opinion set opinion = '{}'",
    ),
    "runner": (
        "select document from verdict",
        "select * from verdict",
        "insert into verdict (verdict_id) values ('v')",
        "update verdict set current = true",
        "delete from verdict",
        "update submission set learner = 'another'",
        "insert into submission (submission_id) values ('s')",
        "update run set learner = 'another'",
        "update run set plan = '{}'",
        "update evidence set document = ''",
        "delete from evidence",
        "select * from outbox",
        "select * from waiter",
        "select * from dead_letter",
        "delete from event",
        "update event set actor = 'another'",
        "select detail from event",
        "update share set weight = 100",
        "update regrade_batch set labs = '[]'",
    ),
    "regrade": (
        "update verdict set current = true",
        "delete from verdict",
        "insert into outbox (id) values (1)",
        "select * from waiter",
        "insert into evidence (run_id) values ('r')",
        "update device set state = 'ready'",
        "update regrade_item set applied = true",
        "delete from second_opinion",
        "delete from review_decision",
    ),
    "operator": (
        "update review_decision set accepted = true",
        "delete from review_decision",
        "insert into review_case (verdict_id) values ('v')",
        "insert into verdict (verdict_id) values ('v')",
        "update verdict set document = '{}'",
        "delete from verdict",
        "delete from submission",
        "delete from event",
        "insert into evidence (run_id) values ('r')",
    ),
    "metrics": (
        "select document from verdict",
        "select seen from review_case",
        "select reason from review_decision",
        "select * from submission",
        "select * from evidence",
        "select document from outbox",
        "select data from dead_letter",
    ),
    "web": ("insert into review_decision (reason) values ('r')", "select * from evidence", "select * from dead_letter"),
    "backup": ("update backup set name = 'another'", "delete from backup"),
}


@pytest.fixture
def owner(postgres_store):
    """The owner's store, whose roles have their rights."""
    roles.apply(postgres_store.engine)
    return postgres_store


def refused(url, role, statement):
    """Whether a role may not do this; that it fails otherwise is no refusal."""
    engine = sqlalchemy.create_engine(as_role(url, role), poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        try:
            connection.execute(sqlalchemy.text(statement) if isinstance(statement, str) else statement)
        except DBAPIError as failed:
            return failed.orig.sqlstate == "42501"
    return False


def may(owner, role, table, right):
    """Whether a role has a right on a table, or on one of its columns."""
    asked = sqlalchemy.text(
        "select has_table_privilege(:role, :table, :right) or has_any_column_privilege(:role, :table, :right)"
    )
    with owner.transaction() as connection:
        return connection.execute(asked, {"role": f"grader_{role}", "table": table, "right": right}).scalar_one()


@pytest.mark.parametrize("role", RIGHTS)
@pytest.mark.integration
def test_what_no_role_may(owner, postgres_url, role):
    """Nobody but the owner changes the schema, the database's other roles, or the server."""
    assert [statement for statement in _DDL if not refused(postgres_url, role, statement)] == []


@pytest.mark.parametrize("role", RIGHTS)
@pytest.mark.integration
def test_what_is_not_a_services_business(postgres_url, role):
    """Rows that a service has no need to read, to write or to rewrite."""
    statements = list(_FORBIDDEN[role])
    if role in _READERS:
        for table in Base.metadata.sorted_tables:
            nothing = dict.fromkeys(table.primary_key.columns)
            written = (table.update().values(nothing), table.delete())
            added = () if (role, table.name) == ("backup", "backup") else (table.insert().values(nothing),)
            statements += [*written, *added]
    assert [statement for statement in statements if not refused(postgres_url, role, statement)] == []


def test_rights_are_of_tables_and_columns_that_there_are():
    """And every table has somebody who uses it: a new one fails here until its rights are written down."""
    tables = {name: set(table.columns.keys()) for name, table in Base.metadata.tables.items()}
    tables["alembic_version"] = {"version_num"}
    for role, rights in RIGHTS.items():
        for table, granted in rights.items():
            assert re.fullmatch(r"(?:(?:select|insert|update|delete)(?: \([a-z_, ]+\))?(?:, |$))+", granted), (
                role,
                table,
            )
            for columns in re.findall(r"\(([^)]*)\)", granted):
                assert set(columns.split(", ")) <= tables[table], (role, table)
    used = {table for role, rights in RIGHTS.items() if role != "backup" for table in rights}
    assert used == set(tables)


@pytest.mark.integration
def test_backup_reads_all(owner, postgres_url):
    """Every table that there is, so that none is left out of a backup."""
    with Store(as_role(postgres_url, "backup")).transaction() as connection:
        for table in (*Base.metadata.tables, "alembic_version"):
            connection.execute(sqlalchemy.select(sqlalchemy.text("*")).select_from(sqlalchemy.table(table)))


@pytest.mark.integration
def test_what_a_role_had_is_taken_away(owner, postgres_url):
    """Rights on tables, columns, sequences, the schema; membership and attributes too. Twice changes nothing."""
    with owner.transaction() as connection:
        for statement in (
            "grant all on all tables in schema public to grader_metrics",
            "grant select (document) on verdict to grader_runner",
            "grant all on all sequences in schema public to grader_metrics",
            "grant create on schema public to grader_metrics",
            "grant temporary on database " + owner.engine.url.database + " to grader_metrics",
            "create role grader_mighty",
            "grant grader_mighty to grader_metrics",
            "alter role grader_metrics createdb",
        ):
            connection.exec_driver_sql(statement)
    try:
        assert may(owner, "metrics", "evidence", "delete")
        for _ in range(2):
            assert roles.apply(owner.engine) == sorted(f"grader_{role}" for role in RIGHTS)
            assert not may(owner, "metrics", "evidence", "select")
            assert refused(postgres_url, "runner", "select document from verdict")
            for statement in (*_DDL, "set role grader_mighty"):
                assert refused(postgres_url, "metrics", statement), statement
            assert may(owner, "metrics", "run", "select")
    finally:
        with owner.transaction() as connection:
            connection.exec_driver_sql("drop role grader_mighty")


@pytest.fixture
def plain(postgres):
    """The URL of a database whose owner may not make roles."""
    _, admin = postgres
    with admin.connect() as connection:
        connection.exec_driver_sql("create role plain login")
    try:
        with fresh_database(postgres, "template1") as made:
            parsed = sqlalchemy.make_url(made)
            with admin.connect() as connection:
                connection.exec_driver_sql(f"alter database {parsed.database} owner to plain")
            yield parsed.set(username="plain").render_as_string()
    finally:
        with admin.connect() as connection:
            connection.exec_driver_sql("drop role if exists plain_judge")
            connection.exec_driver_sql("drop role plain")


@pytest.mark.integration
def test_an_owner_who_may_not_make_roles(postgres, plain):
    """Is told so, without a password; all go on as the owner. Roles that an administrator made get their rights."""
    _, admin = postgres
    store = Store(plain)
    store.migrate()
    with pytest.raises(ConfigurationError) as refusal:
        roles.apply(store.engine, PASSWORDS)
    assert "alter role plain createrole" in str(refusal.value)
    assert "GRADER_DATABASE_ROLES_DIR" in str(refusal.value)
    assert not any(secret in str(refusal.value) for secret in (*PASSWORDS.values(), "SCRAM"))
    assert roles.apply(store.engine) == []
    store.check_schema()
    with admin.connect() as connection:
        connection.exec_driver_sql("create role plain_judge login")
    assert roles.apply(store.engine) == ["plain_judge"]
    judge = Store(as_role(plain, "judge"))
    judge.check_schema()
    for opened in (judge, store):
        opened.close()


@pytest.mark.integration
def test_rights_are_given_by_the_owner_alone(postgres_url):
    """Another role is told whose settings are expected."""
    judge = Store(as_role(postgres_url, "judge"))
    with pytest.raises(ConfigurationError, match="belong to another role"):
        roles.apply(judge.engine, PASSWORDS)
    judge.close()


@pytest.fixture
def guarded(postgres):
    """A database that asks each role for its password and logs each statement, and the server's log."""
    _, admin = postgres
    with fresh_database(postgres) as made, admin.connect() as connection:
        name = sqlalchemy.make_url(made).database
        rules = Path(connection.exec_driver_sql("show hba_file").scalar_one())
        before = rules.read_text()
        rules.write_text(f"local {name} grader trust\nlocal {name} all scram-sha-256\n{before}")
        connection.exec_driver_sql("select pg_reload_conf()")
        connection.exec_driver_sql(f"alter database {name} set log_statement = 'all'")
        try:
            yield made, rules.parent.parent / "log"
        finally:
            rules.write_text(before)
            connection.exec_driver_sql("select pg_reload_conf()")


def opens(url, password):
    """Whether a password opens the database for the judge."""
    parsed = sqlalchemy.make_url(as_role(url, "judge")).set(password=password)
    store = Store(parsed.render_as_string(hide_password=False))
    try:
        return store.schema() is not None
    except StoreUnavailable:
        return False
    finally:
        store.close()


@pytest.mark.integration
def test_passwords_open_the_database_and_stand_in_no_log(guarded):
    """The right one does, another does not; a new one takes the place of the old one."""
    url, log = guarded
    owner = Store(url)
    wait_for(lambda: not opens(url, "wrong"), 20)
    for password in ("first-of-judge", PASSWORDS["judge"]):
        roles.apply(owner.engine, {"judge": password})
        assert (opens(url, password), opens(url, "wrong")) == (True, False)
    assert not opens(url, "first-of-judge")
    text = log.read_text(errors="replace")
    assert "SCRAM-SHA-256$" in text
    assert not any(secret in text for secret in ("first-of-judge", *PASSWORDS.values()))
    owner.close()


def test_sqlite_has_none(tmp_path):
    """Nothing is done, and that is said."""
    for role in RIGHTS:
        (tmp_path / f"postgres_{role}").write_text("password\n")
    env = {"GRADER_STATE_DIR": str(tmp_path), "GRADER_DATABASE_ROLES_DIR": str(tmp_path)}
    done = CliRunner().invoke(app, ["store", "migrate"], env=env)
    assert (done.exit_code, "SQLite has none" in done.stdout) == (0, True), done.output


def test_a_password_that_is_missing_is_named(tmp_path):
    """With its file."""
    with pytest.raises(ConfigurationError, match=f"{tmp_path}/postgres_judge"):
        Settings(database_roles_dir=tmp_path).role_passwords(RIGHTS)
