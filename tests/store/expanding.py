"""What of a change of the schema would disturb workers of the version before."""

from collections.abc import Iterator

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

_LETS_GO = {"CASCADE", "SET NULL"}


def disturbing(before: MetaData, after: MetaData) -> list[str]:
    """What is gone, narrower, or asks more of those who write; empty where something was only added.

    Args:
        before: the schema, as reflected.
        after: the same one later.
    """
    return [*_of_tables(before, after), *_of_references(before, after)]


def _of_tables(before: MetaData, after: MetaData) -> Iterator[str]:
    for name, old in before.tables.items():
        new = after.tables.get(name)
        if new is None:
            yield f"{name}: the table is gone"
            continue
        for column in old.columns:
            if column.name not in new.columns:
                yield f"{name}.{column.name}: the column is gone"
            else:
                yield from _of_column(column, new.columns[column.name])
        for column in new.columns:
            if column.name not in old.columns and not column.nullable and column.server_default is None:
                yield f"{name}.{column.name}: new, and older workers give it no value; it needs a default of the server"
        for rule in sorted(_rules(new) - _rules(old)):
            yield f"{name}: older workers do not keep to a new rule: {rule}"


def _of_column(old: "Column[object]", new: "Column[object]") -> Iterator[str]:
    name = f"{old.table.name}.{old.name}"
    if str(old.type) != str(new.type) and not _wider(old, new):
        yield f"{name}: was {old.type}, is {new.type}"
    if old.nullable and not new.nullable:
        yield f"{name}: older workers may leave it null"
    if old.server_default is not None and new.server_default is None and not new.nullable:
        yield f"{name}: has no default any more, and older workers give it no value"


def _wider(old: "Column[object]", new: "Column[object]") -> bool:
    if not (isinstance(old.type, String) and isinstance(new.type, String)):
        return False
    return new.type.length is None or (old.type.length is not None and old.type.length <= new.type.length)


def _rules(table: Table) -> set[str]:
    """What must hold of its rows."""
    unique = [index.columns for index in table.indexes if index.unique]
    unique += [rule.columns for rule in table.constraints if isinstance(rule, (UniqueConstraint, PrimaryKeyConstraint))]
    checks = {f"check {rule.sqltext}" for rule in table.constraints if isinstance(rule, CheckConstraint)}
    return {f"unique {', '.join(column.name for column in columns)}" for columns in unique} | checks


def _of_references(before: MetaData, after: MetaData) -> Iterator[str]:
    """Older workers delete rows to which a new table refers, and write into old tables what refers to nothing."""
    for table in after.tables.values():
        known = before.tables.get(table.name)
        there = set() if known is None else {_reference(key) for key in known.foreign_key_constraints}
        for key in table.foreign_key_constraints:
            to = key.referred_table.name
            harmless = known is None and (to not in before.tables or (key.ondelete or "").upper() in _LETS_GO)
            if _reference(key) not in there and not harmless:
                yield f"{table.name}: older workers know nothing of the new reference to {to}"


def _reference(key: ForeignKeyConstraint) -> tuple[str, ...]:
    return (*key.column_keys, key.referred_table.name)
