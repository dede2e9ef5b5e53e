"""Items that need attention are named, whichever repetition of their submission they are; on both databases."""

from grader_service.model.regrade import ItemState
from grader_service.regrade.bulk import judge_chunk
from grader_service.store.regrade_parked import parked
from tests.regrade.desk import COUNT, counts, in_force, judge_all, lose, started


def test_later_repetitions_that_need_attention_are_named(desk):
    """In order, with the failure; no more than asked for, and none of another batch."""
    first, second = sorted(in_force(desk))[:2]
    batch_id, other = started(desk, repeats=3), started(desk)
    assert judge_chunk(desk, size=COUNT) == COUNT
    assert counts(desk, batch_id) == {ItemState.DONE: COUNT, ItemState.WAITING: 2 * COUNT}
    lose(desk, first, second)
    judge_all(desk)
    found = parked(desk.store, batch_id)
    assert [(item.submission_id, item.repetition) for item in found] == [
        (first, 2),
        (first, 3),
        (second, 2),
        (second, 3),
    ]
    assert all(item.attempts == 2 and "not stored any more" in item.error for item in found)
    assert parked(desk.store, batch_id, limit=3) == found[:3]
    assert [(item.submission_id, item.repetition) for item in parked(desk.store, other)] == [(first, 1), (second, 1)]
