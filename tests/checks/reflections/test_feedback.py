"""What the learner reads."""

import pytest

from checks.prose.copied import EXAMPLES
from checks.reflections.items import Side
from tests.checks.reflections.lists import LOSES, WINS, judge


def test_every_uncounted_item_is_named_with_its_reason():
    """By number and a short quote."""
    result = judge(wins=[WINS[0], "It is fast.", f"Again: {WINS[0]}"])
    feedback = result.feedback
    assert "2 more in where_dali_wins are needed" in result.parts.outcome
    assert "where_dali_wins has 3 entries; 1 of 3 needed count." in feedback
    assert 'entry 2 ("It is fast.")' in feedback
    assert "same situation as an earlier entry" in feedback


def test_quotes_are_short_and_safe():
    """A long hostile item is cut, and controls do not reach a terminal."""
    result = judge(wins=["\x1b[2J\u202e" + "x" * 8000] * 64, loses=[])
    assert len(result.feedback) < 8000
    assert "\x1b" not in result.feedback
    assert "\u202e" not in result.feedback
    assert "entries 2, 3, 4 and 60 more" in result.feedback


def test_what_feedback_says_is_no_answer():
    """Each short list comes with what is wanted and an example; handed in, neither passes."""
    feedback = judge(wins=[], loses=[]).feedback
    assert all(example in feedback for example in EXAMPLES.values())
    assert judge(wins=feedback.splitlines(), loses=feedback.splitlines()).outcome != "passed"
    assert judge(wins=[EXAMPLES[Side.WINS], *WINS[:2]]).code == "reflections.copied"


def test_waiting_for_a_person():
    """It says that nobody lost a point and what could be clearer, with an example, and accuses nobody."""
    result = judge(
        [
            "Audio classification with mel spectrograms computed during training.",
            "Sound classifiers that calculate log-mel features on the fly.",
            "Training audio models where each batch needs its spectrograms computed at train time.",
        ],
        ["Storage on a slow NFS share.", "GPU memory full, OOM through DALI buffers."],
    )
    assert (result.code, result.score) == ("reflections.needs_review", None)
    assert "A person will read both lists" in result.feedback
    assert "No points are lost" in result.feedback
    assert EXAMPLES[Side.WINS] in result.feedback


def test_details_are_for_staff():
    """One entry per item, JSON values only, and what was compared."""
    details = judge(loses=[*LOSES, "x"]).details
    assert [item["reason"] for item in details["where_dali_loses"]] == ["counted", "counted", "too_short"]
    assert details["figures"]["sum"] >= details["figures"]["good_from"]


def test_praise_mentions_extra_items_kindly():
    """They were not needed."""
    feedback = judge(wins=["It is fast.", *WINS]).feedback
    assert "not needed" in feedback
    assert "entry 1" in feedback


@pytest.mark.parametrize(
    ("wins", "loses", "cause"),
    [
        (LOSES, WINS, "The two lists look swapped"),
        (["It is fast.", "It is good.", "It is very quick."], LOSES, "Entries stay too general to count"),
        ([EXAMPLES[Side.WINS]], LOSES, "Entries repeat the lab's page or our example"),
        (WINS[:1], LOSES, "The lists need 2 more in where_dali_wins."),
    ],
)
def test_the_first_sentence_names_the_cause(wins, loses, cause):
    """Before what is lacking."""
    assert judge(wins=wins, loses=loses).parts.outcome.startswith(cause)
