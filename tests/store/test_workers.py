"""What workers say of themselves, and how a run that failed on one host comes to another."""

import pytest
from sqlalchemy import update

from grader_service.retry_policy import RetryPolicy
from grader_service.store import devices, leases, operations, workers
from grader_service.store.tables import RunState, WorkerRow
from grader_service.store.workers import Identity
from tests.store.factories import a_submission, accept

HERE, THERE = "a/GPU-1/x", "b/GPU-2/y"


def runner(store, owner, *problems, labs_left=()):
    """A runner that has a device and says how it is."""
    host, device = owner.split("/")[:2]
    devices.see(store, device, host, "H100")
    identity = Identity(workers.RUN, host, device, labs_left)
    workers.say(store, identity, problems)
    return identity


def claims(store, owner):
    """Whether this runner gets the run that waits."""
    return leases.claim(store, "run", owner, 60) is not None


@pytest.fixture
def failed(store):
    """A run that failed on the first of two hosts."""
    runner(store, HERE)
    runner(store, THERE)
    accept(store, a_submission())
    leases.fail(store, leases.claim(store, "run", HERE, 60), "engine gone", RetryPolicy(max_attempts=3, delay_s=0.0))
    return store


def test_another_host_is_tried_before_the_one_where_it_failed(failed):
    """And once it has failed there, too, the first one may try again."""
    assert not claims(failed, HERE)
    second = leases.claim(failed, "run", THERE, 60)
    assert second.attempts == 1
    leases.fail(failed, second, "engine gone", RetryPolicy(max_attempts=3, delay_s=0.0))
    assert not claims(failed, THERE)
    assert claims(failed, HERE)


def leave_the_lab(store):
    runner(store, THERE, labs_left=("another", "dali-pipelines"))


def take_preflights_only(store):
    runner(store, THERE, labs_left=(workers.EVERY_LAB,))


def age(store):
    with store.transaction() as connection:
        gone = WorkerRow.device_id == "GPU-2"
        connection.execute(update(WorkerRow).where(gone).values(seen_at=WorkerRow.seen_at - 2 * workers.SILENT_S))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda store: runner(store, THERE, "run space: no space left"), id="is not ready"),
        pytest.param(leave_the_lab, id="is not fit for the lab"),
        pytest.param(take_preflights_only, id="takes preflights only"),
        pytest.param(lambda store: devices.set_state(store, "GPU-2", devices.DRAINING, None, "ann"), id="is drained"),
        pytest.param(lambda store: workers.forget(store, Identity(workers.RUN, "b", "GPU-2")), id="has ended"),
        pytest.param(age, id="is silent"),
    ],
)
def test_no_run_waits_for_a_host_that_would_not_take_it(failed, other):
    """With one host that can grade it, it goes on there."""
    assert not claims(failed, HERE)
    other(failed)
    assert claims(failed, HERE)


def test_a_lab_whose_id_begins_like_one_that_is_left(failed):
    """Is none of those: the other host takes it."""
    runner(failed, THERE, labs_left=("dali-pipelines-2", "dali"))
    assert not claims(failed, HERE)


def test_a_host_with_two_devices(store):
    """Tries the other one first, where there is no other host."""
    for owner in (HERE, "a/GPU-3/z"):
        runner(store, owner)
    accept(store, a_submission())
    leases.fail(store, leases.claim(store, "run", HERE, 60), "no CUDA", RetryPolicy(max_attempts=3, delay_s=0.0))
    assert not claims(store, HERE)
    assert claims(store, "a/GPU-3/z")


def test_an_operators_retry_forgets_where_it_failed(failed):
    """What broke there is mended by then."""
    leases.fail(failed, leases.claim(failed, "run", THERE, 60), "x", RetryPolicy(max_attempts=1, delay_s=0.0))
    assert operations.retry(failed, "ann") == 1
    assert claims(failed, THERE)


def test_a_failed_judging_keeps_no_host_from_the_run(store):
    """Where a run is judged says nothing of where it can be executed."""
    from grader_service.store import results

    runner(store, THERE)
    accept(store, a_submission())
    results.store_evidence(store, leases.claim(store, "run", HERE, 60), "evidence", b"{}", {})
    leases.fail(store, leases.claim(store, "judge", "a/judge/j", 60), "x", RetryPolicy(max_attempts=3, delay_s=0.0))
    assert not leases.failed_here(store, operations.whereabouts(store, "s:1").runs[0]["run_id"], HERE)
    assert operations.queue_state(store).counts == {(RunState.JUDGE_QUEUED.value, "live"): 1}


def test_a_worker_says_the_same_thing_once_and_its_successor_takes_its_place(store):
    """One row for each device's runner and each host's judge; it goes with an orderly end, and after a day."""
    identity = runner(store, HERE, "broker: Redis does not answer")
    workers.say(store, Identity(workers.JUDGE, "a"), ())
    runner(store, HERE, "broker: Redis does not answer")
    assert [(one.worker_id, one.state, one.reason) for one in workers.workers(store)] == [
        ("judge/a", "ready", None),
        ("run/GPU-1", "not_ready", "broker: Redis does not answer"),
    ]
    workers.forget(store, identity)
    with store.transaction() as connection:
        connection.execute(update(WorkerRow).values(seen_at=WorkerRow.seen_at - 2 * workers.SILENT_S))
    assert [one.state for one in workers.workers(store)] == ["silent"]
    with store.transaction() as connection:
        connection.execute(update(WorkerRow).values(seen_at=WorkerRow.seen_at - 86_400))
    runner(store, THERE)
    assert [one.worker_id for one in workers.workers(store)] == ["run/GPU-2"]
