"""How fast a batch goes, and how long it will take."""

import pytest

from grader_service.store import regrades
from grader_service.store.clock import db_now
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from tests.regrade.deps import COUNT, in_force, overwrite, read, started


def one_a_minute(deps, submission_ids, now):
    """Lets the items of these have ended in the last minutes, one in each."""
    for number, submission_id in enumerate(submission_ids, 1):
        of_one = RegradeItemRow.submission_id == submission_id
        overwrite(deps.store, RegradeItemRow, of_one, state="done", finished_at=now - 60.0 * number)


def test_the_rate_of_runs_that_take_a_minute(deps):
    """It comes from the last ones that ended, since hardly one ended in the last seconds."""
    batch_id = started(deps)
    ids = sorted(in_force(deps))
    ((now,),) = read(deps.store, db_now())
    overwrite(deps.store, RegradeBatchRow, started_at=now - 3600.0)
    one_a_minute(deps, ids[:3], now)
    assert regrades.progress(deps.store, batch_id).rate == pytest.approx(3 / 3600, rel=0.01)
    one_a_minute(deps, ids[:12], now)
    found = regrades.progress(deps.store, batch_id)
    assert found.rate == pytest.approx(9 / 600, rel=0.02)
    assert found.eta_s == pytest.approx((COUNT - 12) * 600 / 9, rel=0.02)
