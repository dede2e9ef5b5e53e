"""Which items become runs, so that no device idles for runs that nobody can claim."""

from collections import Counter

import pytest

from grader_service.regrade.releasing import release_due
from grader_service.store import cancelling, devices, leases
from grader_service.store.ids import Named
from grader_service.store.tables import RunRow, SubmissionRow
from tests.regrade.deps import COUNT, in_force, overwrite, read, started

pytestmark = pytest.mark.slow

OTHER_LAB = "dali-classification-training"
DEVICES = 8
HALF = COUNT // 2


@pytest.fixture
def halves(deps):
    """The first and the second half of a cohort in which each submission is another learner's, and eight devices."""
    for number in range(DEVICES):
        devices.see(deps.store, f"GPU-{number}", "host", "H200")
    ids = sorted(in_force(deps))
    for number, submission_id in enumerate(ids):
        handed_in(deps, [submission_id], learner=f"learner {number}")
    return ids[:HALF], ids[HALF:]


def handed_in(deps, submission_ids, **changes):
    overwrite(deps.store, SubmissionRow, SubmissionRow.submission_id.in_(submission_ids), **changes)


def batch(deps, submission_ids, **changes):
    return started(deps, level="run", submissions=tuple(submission_ids), **changes)


def claimed(deps, *without_labs):
    """Claims of runners until there is nothing more for them."""
    labs = {"without_labs": without_labs}
    return list(iter(lambda: leases.claim(deps.store, "run", "host/GPU/runner", 60.0, **labs), None))


def released(deps):
    """Learner to how many runs were made for items of theirs."""
    rows = read(deps.store, RunRow.learner, where=[RunRow.item_id.is_not(None), RunRow.state != "cancelled"])
    return Counter(row.learner for row in rows)


def test_two_runs_for_each_device(deps, releasing, halves):
    """Whoever handed them in, of the batch that was started first; nothing more while they wait."""
    first, second = halves
    batch(deps, first)
    batch(deps, second)
    assert release_due(releasing) == 2 * DEVICES
    assert {claim.submission_id for claim in claimed(deps)} == set(first[: 2 * DEVICES])
    assert release_due(releasing) == 0


def test_one_learners_batch_leaves_devices_to_others(deps, releasing, halves):
    """Of whom one run at a time can be claimed, there is one more that waits; every device has its run."""
    first, second = halves
    handed_in(deps, first, learner="ann")
    batch(deps, first)
    batch(deps, second)
    assert release_due(releasing) == 2 * DEVICES
    assert released(deps)["ann"] == 2
    assert len(claimed(deps)) >= DEVICES


def test_repetitions_are_one_learners(deps, releasing, halves):
    """They leave room for the next submissions of their batch, and follow one another."""
    batch(deps, halves[0][:4], repeats=20)
    assert release_due(releasing) == 8
    assert set(released(deps).values()) == {2}
    assert release_due(releasing) == 0
    claim, *_ = claimed(deps)
    assert cancelling.cancel(deps.store, Named(claim.submission_id, claim.run_id), "", "op") == 1
    assert release_due(releasing) == 1


def test_who_is_not_named_is_nobody_else(deps, releasing, halves):
    """Submissions without a learner run side by side."""
    handed_in(deps, halves[0], learner=None)
    batch(deps, halves[0])
    assert release_due(releasing) == len(claimed(deps)) == 2 * DEVICES


def test_a_lab_that_nobody_serves_holds_up_no_other(deps, releasing, halves):
    """Its runs wait for a runner that takes them; those of the next batch are made and claimed, of its learners too."""
    first, second = halves
    handed_in(deps, first, lab=OTHER_LAB)
    handed_in(deps, second[:1], learner="learner 0")
    batch(deps, first)
    release_due(releasing)
    batch(deps, second)
    assert release_due(releasing) == 2 * DEVICES
    assert {claim.submission_id for claim in claimed(deps, OTHER_LAB)} == set(second[: 2 * DEVICES])
    assert len(claimed(deps)) == 2 * DEVICES - 1, "all but the one whose learner has a run"
