"""`grader reviews`: what waits is listed and shown, decided once with a reason, and exported."""

import json

import pytest

from grader_service.errors import UsageError
from grader_service.store.review_tables import ReviewCaseRow
from grader_service.store.tables import VerdictRow
from tests import command_line
from tests.regrade.deps import overwrite
from tests.reviewing import CHECK, LAB, a_judge, check_of, decisions, handed_in, in_force, install, look
from tests.store.aged import age
from tests.store.factories import migrated

WHY = "It names a real bottleneck."


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """A judge whose store has two submissions that wait, the second one longer, and one that does not."""
    install(tmp_path / "installed", monkeypatch)
    with migrated(f"sqlite:///{tmp_path / 'grader.db'}") as store:
        made = a_judge(store)
        for number, first in ((1, "perhaps"), (2, "\u202eperhaps"), (3, "good")):
            handed_in(made, number, first)
        age(store, ReviewCaseRow, "opened_at", 2.0, ReviewCaseRow.submission_id == "s:2")
        yield made


@pytest.fixture
def typed(judge, tmp_path):
    """What came of a command."""
    return command_line.by_operator(tmp_path, "reviews", name="eve")


def test_the_oldest_is_listed_first(typed):
    """With lab and hours; what does not wait is not there, nor what is of another lab."""
    said = typed("list")
    assert [line.split()[0] for line in said.stdout.splitlines()[1:]] == ["s:2", "s:1"]
    assert said.stdout.splitlines()[1].split()[-1] == "48.0"
    assert "waiting: 2" in said.stderr
    listed = json.loads(typed("list", "--json", "--limit", "1").stdout)
    assert [(case["submission_id"], case["check_id"], case["lab"]) for case in listed] == [("s:2", CHECK, LAB)]
    assert json.loads(typed("list", "--json", "--lab", "another").stdout) == []


def test_shown_with_what_the_check_saw(judge, typed):
    """In words and as JSON; a verdict that cannot be read hides nothing else."""
    said = typed("show", "s:1", CHECK).stdout
    assert 'é "is" text' in said
    assert "A person will look at it." in said
    shown = json.loads(typed("show", "s:2", "--json").stdout)
    assert shown["seen"]["words"][0] == "\ufffdperhaps"
    assert (shown["answer"]["details"], shown["decision"], shown["notes"]) == ({"counted": 2}, None, [])
    overwrite(judge.store, VerdictRow, document="{")
    said = typed("show", "s:1").stdout
    assert "cannot be read" in said
    assert 'é "is" text' in said
    assert len(typed("list").stdout.splitlines()) == 3


def test_decided_with_a_reason(judge, typed):
    """Under the operator's name, or for somebody; the verdict follows, and a second decision is refused."""
    assert "its verdict follows" in typed("accept", "s:1", "--reason", WHY).stdout
    typed("reject", "s:2", "-m", WHY, "--check", CHECK, "--by", "Ann\x1b Lee")
    assert look(judge) == 2
    assert [check_of(in_force(judge.store, one))[1] for one in ("s:1", "s:2")] == ["passed", "failed"]
    assert decisions(judge.store) == {"s:1": (True, "operator:eve"), "s:2": (False, "operator:eve for Ann\ufffd Lee")}
    assert "waiting: 0" in typed("list").stderr
    assert "accepted by operator:eve at 20" in typed("show", "s:1").stdout
    with pytest.raises(UsageError, match="already decided by operator:eve at 20"):
        typed("reject", "s:1", "--reason", WHY)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("accept", "s:1", "--reason", "no"), "3 to 2000 characters"),
        (("accept", "s:3", "--reason", WHY), "never waited"),
        (("accept", "s:1", "--reason", WHY, "--check", "another"), "never waited"),
        (("accept", "nobody", "--reason", WHY), "no submission and no run"),
        (("show", "s:3"), "never waited"),
        (("export", "--since", "lately"), "2026-09-21"),
    ],
)
def test_what_cannot_be_done_is_told(judge, typed, words, told):
    """And nothing is decided."""
    with pytest.raises(UsageError, match=told):
        typed(*words)
    assert decisions(judge.store) == {}


def test_decisions_are_exported_as_examples(typed):
    """A line of JSON each, in ASCII, with labels; nothing of the learner."""
    typed("accept", "s:1", "--reason", WHY)
    typed("reject", "s:2", "--reason", WHY)
    said = typed("export")
    examples = [json.loads(line) for line in said.stdout.splitlines()]
    assert [(one["label"], one["kind"], one["words"][1]) for one in examples] == [
        ("good", "reviewed", 'é "is" text'),
        ("bad", "reviewed", 'é "is" text'),
    ]
    assert said.stdout.isascii()
    assert "ann" not in said.stdout
    assert typed("export", "--since", "2999-01-01").stdout == ""
