"""The database goes away while items are in hand: they are stored afterwards, or given back, and none loses a try."""

from contextlib import closing
from itertools import count

import pytest

from grader_service.model.regrade import ItemState
from grader_service.regrade import bulk
from grader_service.regrade.bulk import CHUNK, judge_chunk
from grader_service.store import regrade_states, regrades
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.tables import EventRow
from tests.regrade.conftest import OperatedService
from tests.regrade.deps import COUNT, counts, overwrite, read, started
from tests.regrade.stored import fill
from tests.service.faults import no_writes, writer_waits
from tests.service.harness import served
from tests.service.test_outages import Away
from tests.services.stream_proxy import before_postgres
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


def attempts(store):
    return {row.attempts for row in read(store, RegradeItemRow.attempts)}


def test_items_in_hand_wait_for_the_database(deps, monkeypatch):
    """It fails when their labs are read, when what was judged is stored, and when the rest is given back."""
    batch_id = started(deps)
    for module, name in ((regrades, "batch"), (bulk, "store_answers"), (bulk, "give_back")):
        Away(monkeypatch, module, name, 1)
    asked = count()
    assert judge_chunk(deps, lambda: next(asked) == 2, size=10) == 2
    assert counts(deps, batch_id) == {ItemState.DONE: 2, ItemState.WAITING: COUNT - 2}
    assert attempts(deps.store) == {0}


@pytest.mark.integration
def test_items_outlive_a_database_that_is_away_for_longer_than_their_lease(redis, postgres_url, tmp_path):
    """It ends meanwhile, and what was judged is stored when the database is back: by the same claim, at no try."""
    made, url = before_postgres(postgres_url, tmp_path)
    times = {"GRADER_LEASE_S": "60", "GRADER_SWEEP_S": "0.1"}
    with (
        closing(made) as database,
        served(redis, postgres_url, tmp_path, kind=OperatedService, GRADER_DATABASE_URL=url, **times) as operated,
    ):
        fill(operated.store, CHUNK, signer=operated.signer())
        before, batch_id = (operated.plan()["batch_id"] for _ in range(2))
        regrade_states.start(operated.store, before, "operator")
        worker = operated.regrade_worker()
        operated.await_batch(before, "finished")  # it is up
        with no_writes(operated, "verdict"):
            regrade_states.start(operated.store, batch_id, "operator")
            writer_waits(operated, "verdict")
            database.go_away()
        # The sixth try comes seconds after the fifth; by then the worker has long looked for leases that have ended.
        wait_for(lambda: len(worker.said("result_waits_for_the_database")) == 5, 20)
        overwrite(operated.store, RegradeItemRow, RegradeItemRow.lease_owner.is_not(None), lease_until=0.0)
        database.come_back()
        operated.await_batch(batch_id, "finished")
        assert counts(operated, batch_id) == {ItemState.DONE: CHUNK}
        assert attempts(operated.store) == {0}
        assert operated.rows(EventRow, EventRow.kind == "regrade_failed_by_us") == []
