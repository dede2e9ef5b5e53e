"""Migrations as a next version may bring them, for tests of what migrates: a column of evidence, and an index of it."""

import os
from pathlib import Path

from grader_service.store import engine, migrating
from grader_service.store.engine import SCHEMA

EXPANDED = "8999a"
"""Adds the column; it comes before the index, as `0018a` before `0019`."""
NEXT = "9000"
INDEX = "ix_evidence_more"
ADDS_COLUMN = 'op.execute("alter table evidence add column more text")'
_BUILDS_INDEX = f'build_index("{INDEX}", "evidence", ["run_id"], "more is null")'
_TEXT = """
from alembic import op

from grader_service.store.index_building import build_index

revision, down_revision = "{revision}", "{before}"


def upgrade():
    {does}
"""


def write_migrations(folder: Path, expands: str = ADDS_COLUMN) -> None:
    """Writes both.

    Args:
        folder: of migrations, or an empty one.
        expands: what the first of them does, in Python.
    """
    steps = (EXPANDED, SCHEMA, expands), (NEXT, EXPANDED, _BUILDS_INDEX)
    for revision, before, does in steps:
        (folder / f"{revision}.py").write_text(_TEXT.format(revision=revision, before=before, does=does))


def become_next(monkeypatch, folder: Path, expands: str = ADDS_COLUMN) -> None:
    """From here on the code of this process is the next version's, as far as databases are concerned."""
    write_migrations(folder, expands)
    ours = migrating.configuration

    def configuration():
        config = ours()
        places = Path(config.get_main_option("script_location"), "versions"), folder
        config.set_main_option("version_locations", os.pathsep.join(map(str, places)))
        return config

    monkeypatch.setattr(migrating, "configuration", configuration)
    monkeypatch.setattr(engine, "SCHEMA", NEXT)
