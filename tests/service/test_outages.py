"""The database is away for longer than a lease: what was worked on meanwhile is stored, and nobody's try is used up."""

from types import SimpleNamespace

import pytest

from grader_service.service.expiring import Expiry
from grader_service.service.readiness import DATABASE
from grader_service.service.retry import RetryPolicy
from grader_service.store import leases
from grader_service.store.tables import RunState
from tests.hand_clock import HandClock
from tests.service.faults import explained
from tests.services.stream_proxy import before_postgres
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

LEASE_S = 60.0


class TestExpiry:
    """Leases end only where their holders could have renewed them."""

    @pytest.fixture
    def clock(self):
        return HandClock()

    @pytest.fixture
    def readiness(self):
        """What was missing in the last look."""
        return SimpleNamespace(missing={})

    @pytest.fixture
    def expiry(self, bench, readiness, clock):
        """Beside a run whose lease has ended."""
        bench.submission_id = bench.submit()
        assert leases.claim(bench.store, "run", "host/device/gone", lease_s=-1.0) is not None
        return Expiry(bench.store, RetryPolicy(3, delay_s=0.0), LEASE_S, readiness, clock)

    def looks(self, expiry, clock, seconds):
        """Every five seconds, for so long."""
        for _ in range(int(seconds / 5)):
            clock.now += 5
            expiry.look()

    def state(self, bench):
        row = bench.run(bench.submission_id)
        return row.state, row.attempts

    def test_one_that_nobody_renewed_ends(self, bench, expiry, clock):
        """After as long as a lease lasts, in which its holder would have renewed it."""
        self.looks(expiry, clock, LEASE_S - 5)
        assert self.state(bench) == (RunState.RUNNING, 0)
        self.looks(expiry, clock, 5)
        assert self.state(bench) == (RunState.RUN_QUEUED, 1)

    def test_none_ends_for_a_database_that_was_away(self, bench, expiry, readiness, clock):
        """The time counts from when it was back."""
        self.looks(expiry, clock, LEASE_S - 5)
        readiness.missing = {DATABASE: "it does not answer"}
        self.looks(expiry, clock, 3 * LEASE_S)
        readiness.missing = {}
        self.looks(expiry, clock, LEASE_S - 5)
        assert self.state(bench) == (RunState.RUNNING, 0)
        self.looks(expiry, clock, 5)
        assert self.state(bench) == (RunState.RUN_QUEUED, 1)

    def test_none_ends_while_nobody_looked(self, bench, expiry, clock):
        """On a host that slept with all that ran on it, every lease is old when it wakes."""
        self.looks(expiry, clock, LEASE_S - 5)
        clock.now += 3600
        expiry.look()
        assert self.state(bench) == (RunState.RUNNING, 0)


def test_a_run_outlives_a_database_that_is_away_for_longer_than_its_lease(service, tmp_path):
    """It ends meanwhile, and its result is stored when the database is back: the same claim, and no try used up."""
    folder = tmp_path / "pg"
    folder.mkdir()
    database, url = before_postgres(service.database_url, folder)
    service.environment |= {"GRADER_DATABASE_URL": url, "GRADER_LEASE_S": "3"}
    try:
        service.judge()
        runners = [service.runner(slot=slot) for slot in range(2)]  # one that could take it over
        gate, submission_id, task_id = service.gated()
        database.go_away()
        gate.open()
        # The sixth try comes seconds after the fifth; by then others have long looked for leases that have ended.
        wait_for(lambda: any(len(runner.said("result_waits_for_the_database")) == 5 for runner in runners), 20)
        database.come_back()
        service.one_verdict(submission_id)
    finally:
        database.close()
    (run,) = service.runs(submission_id)
    assert (run["attempts"], run["fence"]) == (0, 2)
    assert explained(service, submission_id) == ["accepted", "run_claimed", "run_done", "judge_claimed", "verdict"]
    assert service.result(task_id)["status"] == "passed"
