"""The diff on a terminal: what stands in it, and that a learner's text stays text."""

import io

import pytest
from rich.console import Console

from grader_service.cli.diff_text import show_diff, show_flakes
from grader_service.model.regrade import BatchState, ItemState
from grader_service.regrade.flakes import flakes_of
from tests.regrade.makers import LOST, NOISY, a_batch, a_change, a_check, a_diff, a_summary, pending, repeated

HOSTILE = "[bold red]x[/] [link=http://evil.example]Zoë[/link] \x1b[2J"


def shown(changes, *, limit=10, width=120, **batch):
    """What is printed."""
    console = Console(file=io.StringIO(), width=width)
    show_diff(console, a_diff(changes, a_batch(**batch)), limit)
    return console.file.getvalue()


def test_learners_text_is_neither_markup_nor_control():
    """Brackets stay brackets; an escape character was taken out of the model already."""
    summaries = [a_summary(outcomes=outcomes, learner=HOSTILE) for outcomes in ({}, LOST)]
    text = shown([a_change("s:1", *summaries)])
    assert "[bold red]x[/] [link=http://evil.example]Zoë[/link] \ufffd[2J: passed → failed, 100 → 75" in text
    assert "\x1b" not in text
    console = Console(file=io.StringIO(), width=120)
    show_flakes(console, flakes_of(2, [repeated("s:1", *summaries, old=summaries[0])]), 10)
    assert "[link=http://evil.example]Zoë[/link] \ufffd[2J" in console.file.getvalue()


@pytest.mark.parametrize(
    ("state", "words"), [(BatchState.FINISHED, "1 would change"), (BatchState.APPLIED, "1 changed")]
)
def test_tense_follows_the_state(state, words):
    """What is in force is not told as if it were to come."""
    assert f"2 submissions, {words}\n" in shown([a_change("s:1"), a_change("s:2", {}, LOST)], state=state)


def test_lists_are_cut_and_say_so():
    """At the limit; a limit of 0 leaves them out."""
    changes = [a_change(f"s:{n}", {}, LOST) for n in range(5)]
    assert shown(changes, limit=2).count("passed → failed, 100 → 75") == 2
    assert "… and 3 more" in shown(changes, limit=2)
    assert "…" not in shown(changes, limit=5)
    assert "s:0" not in shown(changes, limit=0)


def test_steps_are_shown_where_they_are_more_than_their_check():
    """A step with one check would say the same twice."""
    assert "reflection " not in shown([a_change()])
    two = a_summary(checks=(a_check("jpeg_dataset"), a_check("other", step="baseline")))
    assert "baseline " in shown([a_change(old=two, new=two)])


def test_every_kind_has_words():
    """Each with its count, those without anybody left out."""
    changes = [
        a_change("s:1", LOST, {}),
        a_change("s:2", {}, {"cuda_batch": "error"}),
        a_change("s:3", {}, LOST, outdated=True, newer=1),
        *(pending(f"s:{n}", state) for n, state in enumerate(ItemState, 4) if state is not ItemState.DONE),
    ]
    text = shown(changes)
    for words in (
        "1  newly passing",
        "1  no longer decided",
        "1  outdated: another verdict came in force meanwhile",
        "2  without a new verdict yet",
        "1  without a new verdict: our failures used up the tries",
        "1  without a new verdict: cancelled",
        "1  with a check that stored evidence leaves open",
    ):
        assert words in text
    assert "newly failing" not in text
    assert "handed in" not in text


def test_warnings_and_flakes_stand_at_the_end():
    """What makes the figures doubtful, and where to look."""
    noisy = [repeated("s:1", {}, NOISY), a_change("s:2", new=a_summary(gpu="other"))]
    text = shown(noisy, repeats=2)
    assert "1 of 1 vary over their repetitions: grader regrade flakes b-20260921-1" in text
    assert "attention: 1 new verdicts come from another model of GPU than the old ones" in text


def test_nobody_and_nothing_to_compare_are_shown_too():
    """Without tables of nothing."""
    assert "0 submissions, 0 would change" in shown([])
    text = shown([pending()])
    assert "before ↓" not in text


@pytest.mark.parametrize("width", [40, 80])
def test_narrow_terminals_lose_no_word(width):
    """Lines are folded, never cut."""
    text = shown([a_change("s:1", {}, LOST)], width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "throughput_ratio.too_low" in "".join(line.strip() for line in text.splitlines())
