"""What is offered to be run is what is run."""

import pytest

from grader_service.errors import UsageError
from grader_service.model.regrade import BatchState, Level
from grader_service.regrade.escalating import escalate
from grader_service.regrade.filters import lost_a_decision
from grader_service.store import regrade_apply, regrades
from grader_service.store.tables import SubmissionRow
from tests.regrade.deps import diff, overwrite, rewrite, state, undecided, worked_off


def test_as_many_are_run_as_the_diff_says(deps, stricter):
    """Whatever a check came to in place of a decision; not those that were open before, nor those that are outdated."""
    batch_id = worked_off(deps, stricter)
    changes = list(regrades.changes(deps.store, batch_id))
    noisy = [change for change in changes if lost_a_decision(change)]
    steady = [change for change in changes if change.old.status == change.new.status == "passed"]
    assert len(noisy) > 1
    rewrite(
        deps.store,
        undecided(steady[0].new, "unverified"),
        undecided(steady[1].old, "unverified"),
        undecided(steady[1].new, "inconclusive"),
    )
    outdated = noisy[0].submission_id
    regrade_apply.apply(deps.store, worked_off(deps, submissions=(outdated,)), "ann")
    expected = {change.submission_id for change in (*noisy[1:], steady[0])}
    assert diff(deps, batch_id).undecided_by_evidence == len(expected)
    assert escalate(deps.store, batch_id, "ann") == len(expected)
    run = {change.submission_id for change in regrades.changes(deps.store, batch_id) if change.level is Level.RUN}
    assert run == expected


def test_nothing_is_run_for_what_apply_would_leave_aside(deps, stricter):
    """Every submission that lost a decision got another verdict meanwhile."""
    batch_id = worked_off(deps, stricter)
    lost = tuple(change.submission_id for change in regrades.changes(deps.store, batch_id) if lost_a_decision(change))
    regrade_apply.apply(deps.store, worked_off(deps, submissions=lost), "ann")
    assert diff(deps, batch_id).undecided_by_evidence == 0
    with pytest.raises(UsageError, match="nothing to run"):
        escalate(deps.store, batch_id, "ann")
    assert state(deps, batch_id) is BatchState.FINISHED


def test_what_is_not_kept_any_more_is_not_run(deps, stricter):
    """Those of which it is are; where there is none, it says so."""
    batch_id = worked_off(deps, stricter)
    lost = [change.submission_id for change in regrades.changes(deps.store, batch_id) if lost_a_decision(change)]
    overwrite(deps.store, SubmissionRow, SubmissionRow.submission_id.in_(lost), artifact_removed_at=1.0)
    with pytest.raises(UsageError, match=r"of no such submission .* the artifact is kept"):
        escalate(deps.store, batch_id, "ann")
    overwrite(deps.store, SubmissionRow, SubmissionRow.submission_id == lost[0], artifact_removed_at=None)
    assert escalate(deps.store, batch_id, "ann") == 1
    run = {change.submission_id for change in regrades.changes(deps.store, batch_id) if change.level is Level.RUN}
    assert run == {lost[0]}
