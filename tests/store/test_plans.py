"""Databases find runs and items by their indexes; PostgreSQL also by plans that it made once and keeps for all."""

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from grader_service.store import leases, regrade_runs, regrade_work, results, review_work, reviews, sweep
from grader_service.store.engine import Store
from grader_service.store.regrade_tables import RegradeBatchRow
from tests.store.factories import a_submission, accept


@pytest.fixture
def store(postgres_url):
    """A store whose plans are all kept ones, and which reads a whole table only where no index serves."""
    opened = Store(postgres_url)

    @event.listens_for(opened.engine, "connect")
    def keep_plans(connection, _):
        connection.execute("set plan_cache_mode = force_generic_plan")
        connection.execute("set enable_seqscan = off")
        connection.commit()

    yield opened
    opened.close()


@pytest.fixture
def whole_reads(store):
    """How often all runs were read, told at the end of each transaction."""
    found = []

    @event.listens_for(store.engine, "commit")
    def look(connection):
        asked = "select seq_scan from pg_stat_xact_user_tables where relname = 'run'"
        found.append(connection.exec_driver_sql(asked).scalar_one())

    return found


def test_the_way_of_a_run_reads_no_whole_table(store, whole_reads):
    """What waits is found by its state, and states stand in the statements: a kept plan can use a partial index."""
    for number in range(3):
        accept(store, a_submission(number, learner=f"l{number}"))
    assert len(sweep.to_announce(store, silent_s=60.0)) == 3
    run = leases.claim(store, "run", "runner", 60)
    assert results.store_evidence(store, run, "evidence", b"{}", {})
    assert leases.claim(store, "judge", "judge", 60).run_id == run.run_id
    assert set(whole_reads) == {0}


def test_what_waits_for_a_person_is_found_by_an_index(store):
    """However many verdicts there are; each scrape of the figures asks."""
    asked = []
    event.listen(store.engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    assert reviews.open_cases(store) == []
    assert reviews.waiting(store) == (0, 0.0)
    assert review_work.decided_cases(store, 9) == []
    plans = []
    with store.engine.connect() as connection:
        for sql, values in tuple(asked):
            plans.append("\n".join(connection.exec_driver_sql(f"explain {sql}", values).scalars()))
    assert len(plans) == 3
    for plan in plans:
        assert "ix_verdict_needs_review" in plan


def a_batch(store):
    """One that runs, and has no items."""
    values = dict.fromkeys(("reason", "author", "note"), "") | {"selection": {}, "estimate": {}, "repeats": 1}
    batch = RegradeBatchRow(batch_id="b", state="running", level="auto", labs=[{"lab": "l"}], created_at=0.0, **values)
    with Session(store.engine) as session:
        session.add(batch)
        session.commit()


@pytest.mark.parametrize(
    "look",
    [
        lambda store: regrade_runs.due_items(store, in_flight=2, actor="worker"),
        lambda store: regrade_work.claim_chunk(store, "worker", 60.0, 25),
    ],
    ids=["to run", "to judge"],
)
def test_sqlite_finds_waiting_items_in_their_order(sqlite_url, look):
    """However many of a batch are done, or wait: it sorts none of them."""
    store, asked = Store(sqlite_url), []
    store.migrate()
    a_batch(store)
    event.listen(store.engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    assert not look(store)
    items = [one for one in asked if "FROM regrade_item" in one[0]]
    with store.engine.connect() as connection:
        plans = [connection.exec_driver_sql(f"explain query plan {sql}", values).all() for sql, values in items]
    store.close()
    assert plans
    for steps in ([step[3] for step in plan] for plan in plans):
        assert "ix_regrade_item_open (batch_id=? AND state=? AND level=?" in steps[0]
        assert not any("ORDER BY" in step for step in steps)
