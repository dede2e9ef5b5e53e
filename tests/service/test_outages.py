"""The database goes away, or a disk is full: what was worked on is stored afterwards, and nobody's try is used up."""

import os
from types import SimpleNamespace

import pytest

from grader_service.errors import StoreUnavailable
from grader_service.retry_policy import RetryPolicy
from grader_service.service import judge, runner
from grader_service.service.expiring import Expiry
from grader_service.service.pipeline import StageEnd
from grader_service.service.readiness import DATABASE
from grader_service.service.run_spaces import HostFitness, WatchedHost
from grader_service.store import leases, sweep
from grader_service.store.tables import RunState
from sandbox.process.runner import ProcessRunner
from tests.hand_clock import HandClock
from tests.service.faults import explained, no_writes, writer_waits
from tests.service.harness import QUICK
from tests.services.disk import disk
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

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
    def expiry(self, local, readiness, clock):
        """Beside a run whose lease has ended."""
        local.submission_id = local.submit()
        assert leases.claim(local.store, "run", "host/device/gone", lease_s=-1.0) is not None
        return Expiry(
            lambda: sweep.expire_leases(local.store, RetryPolicy(max_attempts=3, delay_s=0.0)),
            LEASE_S,
            readiness,
            clock,
        )

    def looks(self, expiry, clock, seconds):
        """Every five seconds, for so long."""
        for _ in range(int(seconds / 5)):
            clock.now += 5
            expiry.look()

    def state(self, local):
        row = local.run(local.submission_id)
        return row.state, row.attempts

    def test_one_that_nobody_renewed_ends(self, local, expiry, clock):
        """After as long as a lease lasts, in which its holder would have renewed it."""
        self.looks(expiry, clock, LEASE_S - 5)
        assert self.state(local) == (RunState.RUNNING, 0)
        self.looks(expiry, clock, 5)
        assert self.state(local) == (RunState.RUN_QUEUED, 1)

    def test_none_ends_for_a_database_that_was_away(self, local, expiry, readiness, clock):
        """The time counts from when it was back."""
        self.looks(expiry, clock, LEASE_S - 5)
        readiness.missing = {DATABASE: "it does not answer"}
        self.looks(expiry, clock, 3 * LEASE_S)
        readiness.missing = {}
        self.looks(expiry, clock, LEASE_S - 5)
        assert self.state(local) == (RunState.RUNNING, 0)
        self.looks(expiry, clock, 5)
        assert self.state(local) == (RunState.RUN_QUEUED, 1)

    def test_none_ends_while_nobody_looked(self, local, expiry, clock):
        """On a host that slept with all that ran on it, every lease is old when it wakes."""
        self.looks(expiry, clock, LEASE_S - 5)
        clock.now += 3600
        expiry.look()
        assert self.state(local) == (RunState.RUNNING, 0)


def test_a_run_outlives_a_database_that_is_away_for_longer_than_its_lease(service, database):
    """It ends meanwhile, and its result is stored when the database is back: the same claim, and no try used up."""
    service.environment["GRADER_LEASE_S"] = "3"
    service.judge()
    runners = [service.runner(slot=slot) for slot in range(2)]  # one that could take it over
    gate, submission_id, task_id = service.gated()
    database.go_away()
    gate.open()
    # The sixth try comes seconds after the fifth; by then others have long looked for leases that have ended.
    wait_for(lambda: any(len(runner.said("result_waits_for_the_database")) == 5 for runner in runners), 20)
    database.come_back()
    service.one_verdict(submission_id)
    (run,) = service.runs(submission_id)
    assert (run["attempts"], run["fence"]) == (0, 2)
    assert explained(service, submission_id) == ["accepted", "run_claimed", "run_done", "judge_claimed", "verdict"]
    assert service.result(task_id)["status"] == "passed"


def test_a_verdict_outlives_a_database_that_is_away_for_longer_than_its_lease(service, database):
    """Judged once: the verdict is stored when the database is back, by the same claim, and no try is used up."""
    service.environment["GRADER_LEASE_S"] = "3"
    judges = [service.judge() for _ in range(2)]  # one that could take it over
    service.runner()
    with no_writes(service, "verdict"):
        submission_id, task_id = service.post()
        writer_waits(service, "verdict")
        database.go_away()
    wait_for(lambda: any(len(one.said("result_waits_for_the_database")) == 5 for one in judges), 20)
    database.come_back()
    service.one_verdict(submission_id)
    (run,) = service.runs(submission_id)
    assert (run["attempts"], run["fence"]) == (0, 2)
    assert not {"failed_by_us", "given_back"} & set(explained(service, submission_id))
    assert service.result(task_id)["status"] == "passed"


class Away:
    """In place of a function that asks the database: it is away for some calls, and then there again."""

    def __init__(self, monkeypatch, module, name, calls):
        self._real, self._left = getattr(module, name), calls
        monkeypatch.setattr(module, name, self)

    def __call__(self, *args, **options):
        if self._left:
            self._left -= 1
            raise StoreUnavailable("the database failed: the server closed the connection unexpectedly")
        return self._real(*args, **options)


def test_a_run_for_which_the_database_failed_before_it_was_begun_costs_no_try(local, monkeypatch):
    """Four times, more often than tries are allowed; it is given back once the database takes that."""
    Away(monkeypatch, runner, "load_submission", 4)
    Away(monkeypatch, leases, "give_back", 2)
    submission_id = local.submit()
    assert local.run_all(local.deps()) == [StageEnd.GIVEN_BACK] * 4 + [StageEnd.STORED]
    assert local.run(submission_id).attempts == 0
    events = local.events(submission_id)
    assert [kind for kind, _ in events].count("given_back") == 4
    assert "the database failed before it was begun" in next(
        told["why"] for kind, told in events if kind == "given_back"
    )


def test_nor_does_a_judging(local, monkeypatch):
    """What is to be judged is read again when the database is back."""
    submission_id = local.submit()
    local.run_all(local.deps())
    Away(monkeypatch, judge, "load_submission", 4)
    Away(monkeypatch, leases, "give_back", 2)
    assert [local.judge() for _ in range(4)] == [None] * 4
    assert local.judge().status == "passed"
    assert local.run(submission_id).attempts == 0
    assert [kind for kind, _ in local.events(submission_id)].count("given_back") == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a disk of its own")
def test_a_disk_without_room_for_the_artifact_costs_no_try(local):
    """There is room for a folder, none for what was handed in: the host is found unfit, and the run waits for room."""
    submission_id = local.submit(source=f"{QUICK}# {'x' * 500_000}\n")
    with disk("host", 64) as host:
        sandbox, fitness = ProcessRunner(host.folder), HostFitness()
        deps = local.deps(sandbox=sandbox, state_dir=host.folder, host=WatchedHost(fitness, sandbox, host.folder))
        fitness.trust()
        with host.nearly_full(100_000):
            assert local.run_all(deps) == [StageEnd.GIVEN_BACK]
            assert local.run_all(deps) == []
        run = local.run(submission_id)
        assert (run.state, run.attempts, run.failed_host) == ("run_queued", 0, None)
        fitness.trust()
        assert local.run_all(deps) == [StageEnd.STORED]
