"""Who did what with a batch, and why: what stands in the audit trail; on both databases."""

import pytest

from grader_service.errors import UsageError
from grader_service.model.regrade import BatchState
from grader_service.store import regrade_apply, regrades
from grader_service.store.regrade_apply import MOST_REASON, checked_reason
from grader_service.store.tables import EventRow
from tests.regrade.deps import COUNT, in_force, read, state, worked_off


def last_event(deps, batch_id):
    """What was done last with a batch: kind, who, why."""
    event = regrades.events(deps.store, batch_id)[-1]
    return event.kind, event.actor, event.detail["reason"]


def of_a_submission(deps, batch_id):
    """What the first submission's own history says of the batch, but for what was judged aside."""
    of_one = (EventRow.submission_id == min(in_force(deps)), EventRow.batch_id == batch_id)
    kinds = EventRow.kind.in_(("regraded", "regrade_undone"))
    rows = read(deps.store, EventRow.id, EventRow.kind, EventRow.actor, EventRow.detail, where=[*of_one, kinds])
    return [(kind, actor, detail) for _, kind, actor, detail in sorted(rows, key=lambda row: row.id)]


def test_apply_and_revert_say_why(deps):
    """With the batch, and with each of its submissions; without a reason nothing is made up."""
    batch_id = worked_off(deps)
    regrade_apply.apply(deps.store, batch_id, "ann", reason="  the course decided so\u202e ")
    assert last_event(deps, batch_id) == ("regrade_applied", "ann", "the course decided so\ufffd")
    regrade_apply.revert(deps.store, batch_id, "bob", reason="the wrong day")
    assert last_event(deps, batch_id) == ("regrade_reverted", "bob", "the wrong day")
    regrade_apply.apply(deps.store, batch_id, "ann")
    assert last_event(deps, batch_id) == ("regrade_applied", "ann", "")
    assert of_a_submission(deps, batch_id) == [
        ("regraded", "ann", {"reason": "the course decided so\ufffd"}),
        ("regrade_undone", "bob", {"reason": "the wrong day"}),
        ("regraded", "ann", {}),
    ]


def test_a_reason_is_short(deps):
    """One that is too long is refused with both lengths, before anything happens."""
    assert len(checked_reason("x" * MOST_REASON)) == MOST_REASON
    batch_id = worked_off(deps)
    too_long = "x" * (MOST_REASON + 1)
    with pytest.raises(UsageError, match=f"at most {MOST_REASON} characters, this one has {MOST_REASON + 1}"):
        regrade_apply.apply(deps.store, batch_id, "ann", reason=too_long)
    assert state(deps, batch_id) is BatchState.FINISHED
    assert regrade_apply.apply(deps.store, batch_id, "ann").in_force == COUNT
    with pytest.raises(UsageError, match="at most"):
        regrade_apply.revert(deps.store, batch_id, "ann", reason=too_long)
    assert state(deps, batch_id) is BatchState.APPLIED
