"""PostgreSQL finds runs by their indexes, also by plans that it made once and keeps for whatever comes."""

import pytest
from sqlalchemy import event

from grader_service.store import leases, results, sweep
from grader_service.store.engine import Store
from tests.store.test_store import a_submission, accept


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
