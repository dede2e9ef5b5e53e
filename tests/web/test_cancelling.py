"""An operator cancels a submission on its page; on both databases."""

import pytest
from sqlalchemy import select

from grader_service.store.tables import EventRow, RunRow
from tests.store.factories import a_submission, accept
from tests.web.client import Client, served
from tests.web.stock import SCRIPT

PAGE, FORM = "/submissions/s:1", "/submissions/s:1/cancel"


@pytest.fixture
def port(store):
    """Of the page over one submission that waits."""
    accept(store, a_submission())
    with served(store) as found:
        yield found


def run_of(store):
    with store.transaction() as connection:
        return connection.execute(select(RunRow.state, RunRow.cancelled)).one()


def test_it_asks_first_and_says_what_will_happen(operator, store):
    """From the submission's page, with a reason that the learner reads."""
    assert f'href="{FORM}"' in operator.get(PAGE).text
    form = operator.get(FORM)
    assert form.status == 200
    assert "which waits for a device, ends" in form.text
    assert "submission.cancelled" in form.text
    assert "The learner reads it" in form.text
    refused = operator.act(FORM, reason="why")
    assert (refused.status, "asks first" in refused.text) == (400, True)
    assert run_of(store).cancelled is None


def test_it_is_done_under_the_operators_name(operator, store):
    """Once; the page then offers it no more, and says what was said as text."""
    assert operator.act(FORM, confirmed="yes", reason=f"why {SCRIPT}").status == 303
    assert run_of(store) == ("judge_queued", f"why {SCRIPT}")
    with store.transaction() as connection:
        assert connection.execute(select(EventRow.actor).where(EventRow.kind == "cancelled")).scalars().all() == [
            "web:Zoë"
        ]
    shown = operator.get(PAGE).text
    assert FORM not in shown
    assert SCRIPT not in shown
    assert operator.get(FORM).status == 303, "nothing is left to cancel"
    late = operator.act(FORM, confirmed="yes")
    assert (late.status, "nothing was left to cancel" in late.text) == (400, True)


def test_a_reader_may_not(port, store):
    """Neither is it offered, nor is it done."""
    reader = Client(port)
    assert FORM not in reader.get(PAGE).text
    assert reader.get(FORM).status == 403
    assert reader.act(FORM, confirmed="yes").status == 403
    assert run_of(store).state == "run_queued"


def test_what_is_not_there(operator):
    """A submission that nobody knows."""
    assert operator.get("/submissions/nobody/cancel").status == 404
    assert operator.act("/submissions/nobody/cancel", confirmed="yes").status == 404


def test_a_reason_is_short(operator, store):
    """As elsewhere."""
    refused = operator.act(FORM, confirmed="yes", reason="x" * 201)
    assert (refused.status, "at most 200 characters" in refused.text) == (400, True)
    assert run_of(store).cancelled is None
