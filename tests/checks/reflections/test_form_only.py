"""The form of both lists, without what they mean."""

from checks.reflections.form_only import form_of
from checks.reflections.items import Side
from grader_service.model.feedback import Severity
from tests.factories import LOSES, WINS


def test_good_lists_count():
    """Every entry, and there is nothing to say."""
    found = form_of(WINS, LOSES)
    assert {side: (form.entries, form.counted, form.advice) for side, form in found.items()} == {
        Side.WINS: (3, 3, ()),
        Side.LOSES: (2, 2, ()),
    }


def test_entries_that_cannot_count_are_named():
    """A placeholder, a repetition, and one that stands in the other list, too."""
    found = form_of([WINS[0], "TODO", WINS[0]], [LOSES[0], WINS[0]])
    assert (found[Side.WINS].counted, found[Side.LOSES].counted) == (1, 1)
    codes = [[one.code for one in found[side].advice] for side in Side]
    assert codes == [["advice.entry_unfilled", "advice.entry_duplicate"], ["advice.entry_on_both_sides"]]


def test_doubts_count_and_are_told_as_notes():
    """Lists of questions are for a person to look at."""
    found = form_of(
        ["Is it the decoding?", "Is it the copying?", "Is it the workers?"], ["Is it text?", "Is it small?"]
    )
    assert found[Side.WINS].counted == 3
    assert {one.severity for one in found[Side.WINS].advice} == {Severity.NOTE}
    assert all("perhaps" in one.text for one in found[Side.WINS].advice)


def test_meaning_is_not_looked_at():
    """Well-formed nonsense has the right form: whether it counts is told when it is graded."""
    found = form_of(["The moon rises over the quiet harbour at night."], [])
    assert (found[Side.WINS].counted, found[Side.LOSES].entries) == (1, 0)
