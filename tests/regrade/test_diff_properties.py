"""What holds for the diff of any batch."""

from hypothesis import given, settings
from hypothesis import strategies as st

from grader_service.model.diff import CHANGED, Diff, Filter, Kind
from grader_service.model.regrade import ItemState
from grader_service.regrade.filters import kind_of, rows_of
from tests.regrade.makers import CHECKS, a_batch, a_change, a_diff, pending

OUTCOMES = st.sampled_from(["passed", "failed", "inconclusive", "unverified", "skipped", "error"])
SIDES = st.dictionaries(st.sampled_from([*CHECKS, "extra_check"]), OUTCOMES, max_size=5)


@st.composite
def batches(draw):
    """The submissions of a batch, in order, of all kinds."""
    changes = []
    for number in range(draw(st.integers(0, 12))):
        submission_id = f"s:{number:02d}"
        if draw(st.integers(0, 5)) == 0:
            changes.append(pending(submission_id, draw(st.sampled_from(ItemState))))
        else:
            outdated = draw(st.integers(0, 5)) == 0
            changes.append(a_change(submission_id, draw(SIDES), draw(SIDES), outdated=outdated))
    return changes


@settings(max_examples=100, deadline=None)
@given(batches())
def test_figures_add_up(changes):
    """Kinds to all submissions; the matrix and each side's scores to those compared; a check never to more."""
    diff = a_diff(changes)
    assert diff.count() == len(changes)
    assert sum(item.submissions for item in diff.statuses) == diff.compared
    assert sum(item.submissions for item in diff.statuses if item.old != item.new) <= diff.changed
    for side in (diff.before, diff.after):
        assert side.scored + side.without == diff.compared
        assert sum(side.histogram) == side.scored
    for part in (*diff.checks, *diff.steps):
        total = sum(item.submissions for item in part.transitions)
        assert total <= diff.compared
        assert sum(item.submissions for item in part.transitions if item.old != item.new) <= part.changed <= total
        assert part.passed_before <= part.decided_before <= total
        assert part.passed_after <= part.decided_after <= total
    assert len(diff.movers) == min(50, diff.changed)
    assert {mover.kind for mover in diff.movers} <= set(CHANGED)
    assert len(diff.newly_failing) == diff.count(Kind.NEWLY_FAILING)


@settings(max_examples=60, deadline=None)
@given(batches())
def test_the_other_way_round_is_the_matrix_transposed(changes):
    """Exchanging old and new verdicts exchanges every figure's sides, and who fails newly passes newly."""
    there = a_diff(changes)
    swapped = [
        change if change.new is None else change.model_copy(update={"old": change.new, "new": change.old})
        for change in changes
    ]
    back = a_diff(swapped)
    assert {(item.old, item.new): item.submissions for item in there.statuses} == {
        (item.new, item.old): item.submissions for item in back.statuses
    }
    assert (there.before, there.after) == (back.after, back.before)
    assert (there.changed, there.compared) == (back.changed, back.compared)


@settings(max_examples=60, deadline=None)
@given(batches(), st.sampled_from(Kind))
def test_a_kind_chosen_is_counted_alone(changes, kind):
    """Narrowed to one kind, a diff counts that kind as before and no other; the rows are those."""
    chosen = Filter(kinds=(kind,))
    whole, part = (a_diff(changes, chosen=c) for c in (None, chosen))
    assert part.kinds == {other: whole.kinds[other] if other is kind else 0 for other in Kind}
    assert [change for _, change in rows_of(changes, chosen)] == [c for c in changes if kind_of(c) is kind]


@settings(max_examples=60, deadline=None)
@given(batches())
def test_the_document_holds_the_diff(changes):
    """It is read back from JSON as it was, and the same submissions give the same document."""
    diff = a_diff(changes, a_batch(repeats=2))
    text = diff.model_dump_json()
    assert Diff.model_validate_json(text) == diff
    assert a_diff(iter(changes), a_batch(repeats=2)).model_dump_json() == text
