"""Addresses and filters take what the command line takes: a run's id, and the beginning of an id."""

import pytest

from grader_service.store.events import record
from tests.web.stock import SCRIPT

RUN = "f" * 32
"""Of the fifth submission of the stock."""


@pytest.mark.parametrize("text", [RUN, RUN[:9], "autumn:1:000004"[:-1]])
def test_another_id_leads_to_the_submission(place, visitor, text):
    """By its own address; where several begin so, by a page that links to some of them."""
    answer = visitor.get(f"/submissions/{text}")
    if text in RUN:
        assert (answer.status, answer.headers["location"]) == (303, f"/submissions/{place.seen['ids'][4]}")
        assert visitor.get(answer.headers["location"]).status == 200
        return
    assert (answer.status, answer.headers["location"]) == (300, None)
    for shown, submission_id in enumerate(place.seen["ids"][:10]):
        assert (f'href="/submissions/{submission_id}"' in answer.text) is (shown < 5)
    assert "some of them" in answer.text
    found = visitor.get(f"/submissions?q={text}").text
    assert all(submission_id in found for submission_id in place.seen["ids"][:10])


@pytest.mark.parametrize("text", ["fff", "nobody", "autumn:1:0000041"])
def test_what_nothing_is_called_is_not_found(visitor, text):
    """Too little of an id, or none."""
    answer = visitor.get(f"/submissions/{text}")
    assert (answer.status, f"no submission and no run {text}" in answer.text) == (404, True)


def test_the_audit_log_takes_them_and_knows_what_was_refused(place, visitor):
    """An id that events have stands for itself, also where an accepted one begins so."""
    submission_id = place.seen["ids"][4]
    shown = visitor.get(f"/audit?submission={RUN[:9]}").text
    assert f'name="submission" value="{submission_id}"' in shown
    assert f'href="/submissions/{submission_id}"' in shown
    with place.store.transaction() as connection:
        record(connection, "refused", "intake", submission_id="autumn:1", feedback=SCRIPT)
    shown = visitor.get("/audit?submission=autumn:1").text
    assert "<code>refused</code>" in shown
    assert SCRIPT not in shown
    assert visitor.get("/audit?submission=autumn").status == 300
    assert "No event is like this" in visitor.get("/audit?submission=nobody%00").text
