"""Roles of PostgreSQL: one for each service, with the rights that its statements need and no others.

A role is named after the owner of the tables: `grader_judge` where that is `grader`. SQLite has none.
"""

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from grader_service.errors import ConfigurationError, StoreUnavailable
from grader_service.store import rows
from grader_service.store.engine import NOT_PERMITTED, Store
from grader_service.store.migrating import alone
from grader_service.store.rights import RIGHTS

_WHERE = text("select current_user, current_database(), current_schema()")
_THERE = text("select rolname from pg_roles where rolname = any(:names)")
_OF_OTHERS = text(
    "select relname from pg_class where relname = any(:tables) and relnamespace = current_schema()::regnamespace "
    "and not pg_has_role(relowner, 'usage')"
)
_NUMBERED = text(
    "select table_name, pg_get_serial_sequence(quote_ident(table_name), column_name) as sequence "
    "from information_schema.columns where table_schema = current_schema() and table_name = any(:tables) "
    "and pg_get_serial_sequence(quote_ident(table_name), column_name) is not null"
)
_MIGHTY = text(
    "select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls from pg_roles "
    "where rolname = :name"
)
_MEMBER_OF = text("select pg_get_userbyid(roleid) from pg_auth_members where pg_get_userbyid(member) = :name")
_OUTSIDE_OF_TABLES = (
    ("has_database_privilege(:name, current_database(), 'connect')", "grant connect on database {database} to {role}"),
    ("has_schema_privilege(:name, current_schema(), 'usage')", "grant usage on schema {schema} to {role}"),
    (
        "not has_database_privilege(:name, current_database(), 'temporary')",
        "revoke temporary on database {database} from public, {role}",
    ),
    (
        "not has_schema_privilege(:name, current_schema(), 'create')",
        "revoke create on schema {schema} from public, {role}",
    ),
)
"""What is to hold for every role, and what brings it about where it does not: versions differ in what everybody may."""


def apply(engine: Engine, passwords: Mapping[str, str] | None = None) -> list[str]:
    """Gives each role its rights and takes away all others; safe to repeat, and beside services at work.

    It is one transaction, so that no role is without its rights in between. The server is sent SCRAM verifiers and no
    passwords: they stand in none of its logs.

    Args:
        engine: of the tables' owner; their schema is this version's.
        passwords: role, without the owner's name, to its password. Such roles are made where they are not there; of
            others only those get rights that an administrator made.

    Returns:
        Names of the roles that have rights now; none with SQLite.

    Raises:
        ConfigurationError: the owner may not do that, or it is not the owner who connects.
        StoreUnavailable: the database failed.
    """
    if engine.dialect.name == "sqlite":
        return []
    with alone(engine) as connection:
        try:
            with connection.begin():
                return _apply(connection, passwords or {})
        except DBAPIError as error:
            # Told without the statement, in which a verifier may stand.
            if getattr(error.orig, "sqlstate", None) == NOT_PERMITTED:
                raise _refused(engine.url.username, str(error.orig)) from None
            raise StoreUnavailable(f"the services' roles could not be set up: {str(error.orig)[:500]}") from None


def require_owner(store: Store) -> None:
    """Refuses a role that may not make tables.

    Raises:
        ConfigurationError: it is one of the services' roles.
        StoreUnavailable: the database does not answer.
    """
    if store.is_sqlite:
        return
    with store.transaction() as connection:
        if not connection.execute(text("select has_schema_privilege(current_schema(), 'create')")).scalar_one():
            raise ConfigurationError(
                f"{store.engine.url.username} may not make tables in this database; expected their owner in "
                "GRADER_DATABASE_URL. With compose: `images/compose.sh run --rm restore`"
            )


def _refused(owner: str | None, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"the database does not let {owner} set up the services' roles: {reason.strip()}. Expected is the owner of the "
        f"tables and of the database, who may make roles: `alter role {owner} createrole`, by an administrator, or let "
        "the administrator do it. With GRADER_DATABASE_ROLES_DIR unset no role is made, and services may all work as "
        f"{owner}"
    )


def _apply(connection: Connection, passwords: Mapping[str, str]) -> list[str]:
    owner, database, schema = connection.execute(_WHERE).one()
    names = {role: f"{owner}_{role}" for role in RIGHTS}
    there = set(connection.execute(_THERE, {"names": list(names.values())}).scalars())
    if not there and not passwords:
        return []
    tables = rows.there(connection)
    if of_others := connection.execute(_OF_OTHERS, {"tables": tables}).scalars().all():
        raise _refused(owner, f"these tables belong to another role: {', '.join(of_others)}")
    quote = connection.dialect.identifier_preparer.quote
    for role, password in passwords.items():
        verb = "alter" if names[role] in there else "create"
        verifier = _verifier(connection, names[role], password)
        connection.exec_driver_sql(f"{verb} role {quote(names[role])} login password '{verifier}'")
        there.add(names[role])
    numbered = {row.table_name: row.sequence for row in connection.execute(_NUMBERED, {"tables": tables})}
    for role, name in names.items():
        if name not in there:
            continue
        quoted = {"role": quote(name), "database": quote(database), "schema": quote(schema)}
        for statement in _bounded(connection, name, quoted):
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(f"revoke all on table {', '.join(map(quote, tables))} from {quote(name)}")
        if numbered:
            connection.exec_driver_sql(f"revoke all on sequence {', '.join(numbered.values())} from {quote(name)}")
        for table, rights in RIGHTS[role].items():
            if table not in tables:
                continue
            connection.exec_driver_sql(f"grant {rights} on table {quote(table)} to {quote(name)}")
            if table in numbered and "insert" in rights:
                connection.exec_driver_sql(f"grant usage on sequence {numbered[table]} to {quote(name)}")
    return sorted(there)


def _bounded(connection: Connection, name: str, quoted: Mapping[str, str]) -> Iterator[str]:
    """Statements after which a role has nothing beside its rights on tables."""
    given = {"name": name}
    if connection.execute(_MIGHTY, given).scalar_one():
        yield f"alter role {quoted['role']} nosuperuser nocreatedb nocreaterole noreplication nobypassrls"
    quote = connection.dialect.identifier_preparer.quote
    for other in connection.execute(_MEMBER_OF, given).scalars().all():
        yield f"revoke {quote(other)} from {quoted['role']}"
    for holds, statement in _OUTSIDE_OF_TABLES:
        if not connection.execute(text(f"select {holds}"), given).scalar_one():
            yield statement.format(**quoted)
            # Who does not own the database or the schema is warned, not refused.
            if not connection.execute(text(f"select {holds}"), given).scalar_one():
                raise _refused(connection.engine.url.username, f"`{statement.format(**quoted)}` had no effect")


def _verifier(connection: Connection, name: str, password: str) -> str:
    driver = connection.connection.driver_connection
    made: bytes = driver.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")  # type: ignore[union-attr]
    return made.decode()
