"""What the learner reads."""

from tests.checks.reflections.lists import LOSES, WINS, judge


def test_every_uncounted_item_is_named_with_its_reason():
    """By number and a short quote."""
    feedback = judge(wins=[WINS[0], "It is fast.", f"Again: {WINS[0]}"]).feedback
    assert "1 of at least 3" in feedback
    assert 'entry 2 ("It is fast.")' in feedback
    assert "same situation as entry 1" in feedback
    assert "where_dali_loses: 2 entries count" in feedback


def test_quotes_are_short_and_safe():
    """A long hostile item is cut, and controls do not reach a terminal."""
    result = judge(wins=["\x1b[2J\u202e" + "x" * 8000] * 64, loses=[])
    assert len(result.feedback) < 8000
    assert "\x1b" not in result.feedback
    assert "\u202e" not in result.feedback
    assert "and 56 more" in result.feedback


def test_feedback_does_not_list_what_is_looked_for():
    """No terms that would make a pass when pasted."""
    feedback = judge(wins=[], loses=[]).feedback.lower()
    for term in ("jpeg", "nvdec", "video", "token", "tabular", "core", "imagenet", "bert"):
        assert term not in feedback
    assert judge(wins=feedback.splitlines(), loses=feedback.splitlines()).outcome == "failed"


def test_details_are_for_staff():
    """One entry per item, JSON values only."""
    details = judge(loses=[*LOSES, "x"]).details
    assert details["where_dali_loses"][2] == {"index": 3, "counted": False, "reason": "not_needed"}


def test_praise_mentions_extra_items_kindly():
    """They were not needed."""
    feedback = judge(wins=["It is fast.", *WINS]).feedback
    assert "not needed" in feedback
    assert "entry 1" in feedback
