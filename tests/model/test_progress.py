"""An event is one short line, however a learner's code writes."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from grader_service.model.progress import MAX_BYTES, MAX_LINE, ProgressEvent, one_line

EVENT = {
    "submission_id": "s" * 128,
    "run_id": "r" * 128,
    "stage": "x" * 40,
    "elapsed_s": 7199.9,
    "limit_s": 7200.0,
    "line": "",
    "at": datetime(2026, 11, 24, 10, 0, 0, 123456, tzinfo=UTC),
}


@given(st.text(max_size=2000))
def test_a_line_is_short_and_safe_and_stays_as_it_is(text):
    """At most 100 characters in one line, without what moves a cursor; done again, nothing changes."""
    line = one_line(text)
    assert len(line) <= MAX_LINE
    assert len(line.splitlines()) <= 1
    assert not any(character in line for character in "\x1b\x00\u202e\r\n\t")
    assert one_line(line) == line


@pytest.mark.parametrize("text", ["a" * 5000, "é" * 5000, "😀" * 5000, "\ud800" * 5000, '"\\' * 500, "\x00" * 5000])
def test_the_largest_event_is_small(text):
    """Also where each character is written as an escape."""
    event = ProgressEvent(**EVENT | {"line": one_line(text)})
    document = event.model_dump(mode="json")
    assert len(json.dumps(document)) <= MAX_BYTES
    assert len(event.model_dump_json().encode()) <= MAX_BYTES
    assert ProgressEvent.model_validate_json(json.dumps(document)) == event
    assert document["schema"] == "grader.progress/v1"


@pytest.mark.parametrize(
    "change",
    [
        {"line": "x" * 101},
        {"stage": "two words"},
        {"elapsed_s": -1.0},
        {"elapsed_s": float("nan")},
        {"at": "2026-11-24T10:00:00"},
        {"submission_id": "a b"},
        {"more": 1},
    ],
)
def test_what_is_no_event(change):
    """Is refused, by whoever reads one."""
    with pytest.raises(ValidationError):
        ProgressEvent(**EVENT | change)
