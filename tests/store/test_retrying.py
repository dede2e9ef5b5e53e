"""An operator gives runs that failed through us fresh tries."""

from grader_service.retry_policy import RetryPolicy
from grader_service.store import leases, operations, results
from tests.store.factories import a_submission, accept


def test_dead_lettered_runs_go_on_where_they_stopped(store):
    """One that has its evidence is judged, the other runs; both have fresh tries, and the audit trail says which."""
    for number in (1, 2):
        accept(store, a_submission(number, learner=None))
    executed, lost = (leases.claim(store, "run", "r", 60) for _ in range(2))
    results.store_evidence(store, executed, "evidence", b"{}", {})
    for claim in (leases.claim(store, "judge", "j", 60), lost):
        leases.fail(store, claim, "engine gone", RetryPolicy(max_attempts=1, delay_s=3600))
    assert operations.retry(store, "ann") == 2
    assert operations.retry(store, "ann") == 0
    for stage, run in (("judge", executed), ("run", lost)):
        again = leases.claim(store, stage, "w", 60)
        assert (again.run_id, again.attempts) == (run.run_id, 0)
        states = [
            event["detail"]["state"]
            for event in operations.whereabouts(store, run.submission_id).events
            if event["kind"] == "retried"
        ]
        assert states == [f"{stage}_queued"]
