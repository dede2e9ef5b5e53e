"""A database of the first version, with everything in it, is brought to this version."""

import json
import zlib
from contextlib import nullcontext

import pytest
from sqlalchemy import text

from grader_service.model.evidence import Need, RunPlan
from grader_service.retry_policy import CANARIES
from grader_service.store import canaries, devices, migrating
from grader_service.store.engine import Store
from grader_service.store.noting import note_older
from tests.conftest import fresh_database

TABLES = ("submission", "run", "evidence", "verdict", "event")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def old_store(request, tmp_path):
    """A database with the schema of the first version."""
    database = nullcontext(f"sqlite:///{tmp_path}/migrated.db")
    if request.param == "postgres":
        database = fresh_database(request.getfixturevalue("postgres"), template="template1")
    with database as url:
        opened = Store(url)
        migrating.upgrade(opened.engine, "0001")
        yield opened
        opened.close()


def insert(connection, table, **values):
    """One row, of the columns that the first version had."""
    names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(text(f"insert into {table} ({names}) values ({marks})"), values)  # noqa: S608 - ours


def test_what_was_quarantined_before_there_were_canaries_gets_one_at_once(old_store):
    """Nobody waits for an operator any longer; what an operator had drained waits for him."""
    for name, state in (("GPU-a", devices.QUARANTINED), ("GPU-b", devices.DRAINING)):
        with old_store.transaction() as connection:
            insert(connection, "device", device_id=name, host="h", model="m", state=state, fence=0, seen_at=1.0)
    old_store.migrate()
    assert canaries.quarantine_of(old_store, "GPU-a").waited_s > CANARIES.longest_s
    assert canaries.quarantine_of(old_store, "GPU-b") is None


def test_a_filled_database_is_brought_to_this_version(old_store):
    """Submissions, runs, evidence and verdicts are all there afterwards, and refer to each other."""
    plan = RunPlan(needs=(Need.DISCOVERY,)).model_dump_json()
    with old_store.transaction() as connection:
        insert(
            connection, "submission", submission_id="s:1", lab="l", learner="ann", received_at=1.0, filename="f",
            sha256="0" * 64, size_bytes=1, steps="[]", content_key="k", queue="live",
        )  # fmt: skip
        insert(
            connection, "run", run_id="r", submission_id="s:1", learner="ann", purpose="live", priority=0, state="done",
            plan=plan, fence=1, attempts=0, not_before=1.0, created_at=1.0,
        )  # fmt: skip
        insert(
            connection, "evidence", run_id="r", fence=1, kind="evidence", sha256="0" * 64, size_bytes=1, document=b"x",
            created_at=1.0,
        )  # fmt: skip
        insert(
            connection, "verdict", verdict_id="v", submission_id="s:1", run_id="r", status="passed", mode="official",
            code="grade.passed", current=True, document="{}", created_at=1.0,
        )  # fmt: skip
        insert(connection, "event", at=1.0, kind="verdict", actor="a", submission_id="s:1", run_id="r", detail="{}")
        insert(
            connection, "run", run_id="r2", submission_id="s:1", learner="ann", purpose="live", priority=0,
            state="done", plan=plan, fence=1, attempts=0, not_before=1.0, created_at=1.0,
        )  # fmt: skip
        insert(connection, "blob", sha256="1" * 64, size_bytes=1, data=b"x")
        found = {"discovery": {"graphs": [{"sha256": "1" * 64}, {"sha256": "2" * 64}]}}
        insert(
            connection, "evidence", run_id="r2", fence=1, kind="evidence", sha256="0" * 64, size_bytes=1,
            document=zlib.compress(json.dumps(found).encode()), created_at=1.0,
        )  # fmt: skip
    old_store.migrate()
    old_store.check_schema()
    assert note_older(old_store, 1)
    assert not note_older(old_store, 1)
    with old_store.transaction() as connection:
        for table in TABLES:
            count = connection.execute(text(f"select count(*) from {table}")).scalar_one()  # noqa: S608 - ours
            assert count == (2 if table in {"run", "evidence"} else 1)
        if old_store.is_sqlite:
            assert connection.execute(text("pragma foreign_key_check")).all() == []
        noted = connection.execute(text("select run_id, sha256 from evidence_blob")).all()
        assert [tuple(row) for row in noted] == [("r2", "1" * 64)]  # what the other refers to is not there
        row = connection.execute(text("select current, batch_id, standing from verdict")).one()
        assert (bool(row.current), row.batch_id, row.standing) == (True, None, None)
