"""The newest verdict of each submission is exported, under a name that no file system misreads."""

from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grader_service.exports.choosing import file_names, held_back, newest
from grader_service.exports.reading import Found
from grader_service.model.verdict import Mode, Status
from tests.exports.corpus import CORPUS
from tests.report.factories import verdict

MORNING = datetime(2026, 11, 21, 8, tzinfo=UTC)


def at(hours, **changes):
    made = MORNING + timedelta(hours=hours)
    return Found("f", verdict(created_at=made, verdict_id=f"v{hours}", **changes))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((at(1), at(2)), "v2"),
        ((at(1), at(2, status=Status.FAILED)), "v2"),
        ((at(1), at(2, status=Status.ERROR)), "v1"),
        ((at(1, status=Status.ERROR), at(2, status=Status.ERROR)), "v2"),
        ((at(1), at(2, mode=Mode.REHEARSAL)), "v1"),
        ((at(1, status=Status.ERROR), at(2, mode=Mode.REHEARSAL)), "v1"),
    ],
)
def test_one_verdict_for_each_submission(items, expected):
    """The newest, in whatever order they come; our failures and rehearsals never replace a result."""
    for order in (items, items[::-1]):
        assert [item.verdict_id for item in newest(order)] == [expected]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_preflight_is_never_exported(allowed):
    """Whatever is allowed of rehearsals."""
    refused = held_back(at(1, mode=Mode.PREFLIGHT), allow_rehearsal=allowed, max_score=None)
    assert "a preflight is no grade" in refused.problem


def test_a_time_without_a_zone_is_utc():
    """Both kinds compare."""
    naive = Found("f", verdict(created_at=datetime(2026, 11, 21, 9), verdict_id="naive"))  # noqa: DTZ001
    assert [item.verdict_id for item in newest([at(0), naive, at(-1)])] == ["naive"]


def test_some_of_the_steps_are_not_the_whole_lab():
    """Full points of two steps are held back where the lab's points are given; no points at all are not."""
    assert "on 50 points, expected 100" in held_back(at(0), allow_rehearsal=False, max_score=100).problem
    assert held_back(at(0), allow_rehearsal=False, max_score=50) is None
    assert held_back(Found("f", CORPUS["queue_full"]), allow_rehearsal=False, max_score=100) is None


@example({":" * 128, ":" * 127 + "."})
@example({"a", "A", "a."})
@given(st.sets(st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True), min_size=1, max_size=8))
def test_file_names_are_safe_and_different(ids):
    """One component on any system, never hidden, never a way out, no two alike where case is ignored."""
    names = file_names(list(ids), ".json")
    assert names.keys() == ids
    assert len({name.casefold() for name in names.values()}) == len(ids)
    for name in names.values():
        assert PurePosixPath(name).name == PureWindowsPath(name).name == name
        assert not name.startswith(".")
        assert not set(name) & set('<>:"/\\|?*')
        assert len(name) <= 255


@pytest.mark.parametrize(
    ("submission_id", "name"),
    [("..", "%2E%2E.json"), (".", "%2E.json"), ("lms:47.11", "lms%3A47.11.json"), ("a.", "a%2E.json")],
)
def test_dots_and_colons(submission_id, name):
    """Names that mean something to a file system are spelled out."""
    assert file_names([submission_id], ".json") == {submission_id: name}
