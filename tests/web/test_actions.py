"""What an operator says when something is done with a batch, and what its pages cost; on both databases."""

import pytest
from sqlalchemy import Engine, event

from grader_service.model.regrade import BatchState, ItemState
from grader_service.regrade.bulk import judge_chunk
from grader_service.regrade.releasing import ReleaseDeps, release_due
from grader_service.store import regrade_apply, regrade_states, regrades
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.web.queries import SubmissionFilter, submissions
from tests.regrade.deps import overwrite, planned, read, some_deps, started, worked_off
from tests.regrade.stored import changed_lab, fill
from tests.web.client import served
from tests.web.stock import SCRIPT

COUNT = 20


@pytest.fixture
def deps(store):
    """Judges batches over a small cohort."""
    fill(store, COUNT)
    return some_deps(store)


@pytest.fixture
def port(deps, store):
    """Of the page over that cohort."""
    with served(store) as found:
        yield found


def act(operator, batch_id, action, **fields):
    """Sends the form of an action, confirmed where that is asked for."""
    asked = {"confirmed": "yes", "typed": batch_id, "notify": "none"}
    return operator.act(f"/batches/{batch_id}/do/{action}", **(asked | fields))


def last(store, batch_id):
    """The last event of a batch."""
    return regrades.events(store, batch_id)[-1]


@pytest.mark.parametrize("action", ["pause", "cancel", "discard", "apply", "revert"])
def test_a_reason_reaches_the_audit_log(operator, store, deps, action):
    """Each form of these kinds has the field; what was said stands on the batch's page as text, and as it was said."""
    batch_id = started(deps) if action in {"pause", "cancel"} else worked_off(deps)
    if action == "revert":
        regrade_apply.apply(store, batch_id, "operator:tests")
    form = operator.get(f"/batches/{batch_id}/do/{action}").text
    assert 'name="reason"' in form
    assert 'maxlength="200"' in form
    before = regrades.batch(store, batch_id).state
    refused = act(operator, batch_id, action, reason="x" * 201)
    assert refused.status == 400
    assert "a reason has at most 200 characters, this one has 201" in refused.text
    assert regrades.batch(store, batch_id).state is before
    assert act(operator, batch_id, action, reason=f"why {SCRIPT}").status == 303
    done = last(store, batch_id)
    assert (done.actor, done.detail["note" if action == "pause" else "reason"]) == ("web:Zoë", f"why {SCRIPT}")
    shown = operator.get(f"/batches/{batch_id}").text
    assert SCRIPT not in shown
    assert "why &lt;script&gt;" in shown


def test_what_needs_no_reason_takes_none(operator, store, deps):
    """A pause is one click, and its page with a reason is there only while it can be paused."""
    batch_id = started(deps)
    assert f'href="/batches/{batch_id}/do/pause"' in operator.get(f"/batches/{batch_id}").text
    assert operator.act(f"/batches/{batch_id}/do/pause").status == 303
    assert (last(store, batch_id).kind, last(store, batch_id).detail["note"]) == ("regrade_paused", "")
    assert operator.get(f"/batches/{batch_id}/do/pause").status == 303
    assert operator.get(f"/batches/{batch_id}/do/resume").status == 303


@pytest.fixture
def spent(store, deps, tmp_path):
    """A batch that stopped since its GPU budget is spent, and what stops such batches."""
    batch_id = started(deps, level="run", gpu_budget_s=3600.0)
    first = (RegradeItemRow.batch_id == batch_id, RegradeItemRow.repetition == 1)
    overwrite(store, RegradeItemRow, *first, gpu_s=3700.0 / COUNT)
    releasing = ReleaseDeps(store, ArtifactStore(f"file://{tmp_path}/artifacts"), deps.registry, "worker")
    assert release_due(releasing) == 0
    assert regrades.batch(store, batch_id).state is BatchState.PAUSED
    return batch_id, releasing


def test_a_spent_budget_is_raised_on_the_page(operator, store, spent):
    """Without more hours it would only stop again, and is not begun; with more it goes on."""
    batch_id, releasing = spent
    page = operator.get(f"/batches/{batch_id}").text
    assert "the GPU budget is spent" in page
    assert "For the whole batch: 1 h 1 min of 1 h used." in page
    refused = act(operator, batch_id, "resume", gpu_hours="")
    assert refused.status == 409
    assert "has spent 1.03 of 1 h" in refused.text
    assert regrades.batch(store, batch_id).state is BatchState.PAUSED
    assert act(operator, batch_id, "resume", gpu_hours=" 2.5 ").status == 303
    assert regrades.batch(store, batch_id).gpu_budget_s == 9000.0
    assert last(store, batch_id).detail == {"gpu_budget_s": 9000.0}
    assert release_due(releasing) > 0
    assert regrades.batch(store, batch_id).state is BatchState.RUNNING


def test_hours_that_are_none_are_refused(operator, store, spent):
    """With what came and what was expected; the batch stays as it was."""
    batch_id, _ = spent
    for hours in ("-1", "nan", "inf", "1e7", "two", "1,5", "<b>"):
        refused = act(operator, batch_id, "resume", gpu_hours=hours)
        assert refused.status == 400, hours
        assert "the GPU budget is a number of hours from 0 to a million such as 2.5, got" in refused.text
        assert "<b>" not in refused.text
        assert regrades.batch(store, batch_id).state is BatchState.PAUSED
        assert regrades.batch(store, batch_id).gpu_budget_s == 3600.0


def test_running_the_undecided_can_have_a_budget(operator, store, deps, tmp_path):
    """The form asks for one, a wrong one changes nothing, and the batch gets it."""
    batch_id = worked_off(deps, changed_lab(tmp_path))
    assert 'name="gpu_hours"' in operator.get(f"/batches/{batch_id}/do/escalate").text
    assert act(operator, batch_id, "escalate", gpu_hours="much").status == 400
    assert regrades.batch(store, batch_id).state is BatchState.FINISHED
    assert act(operator, batch_id, "escalate", gpu_hours="0.5").status == 303
    found = regrades.batch(store, batch_id)
    assert (found.state, found.gpu_budget_s) == (BatchState.RUNNING, 1800.0)


@pytest.fixture
def statements():
    """What the database is asked, in whatever role."""
    asked = []

    @event.listens_for(Engine, "before_cursor_execute")
    def look(connection, cursor, statement, *_):
        asked.append(statement)

    yield asked
    event.remove(Engine, "before_cursor_execute", look)


@pytest.mark.parametrize(
    ("action", "compares"),
    [("cancel", False), ("discard", False), ("pause", False), ("apply", True), ("escalate", True)],
)
def test_only_what_touches_verdicts_compares_them(operator, deps, statements, action, compares):
    """Comparing all of a large batch takes long, and giving it up says nothing of its verdicts."""
    batch_id = started(deps) if action in {"cancel", "pause"} else worked_off(deps)
    judge_chunk(deps, size=5)
    statements.clear()
    assert operator.get(f"/batches/{batch_id}/do/{action}").status == 200
    assert statements
    assert any("verdict" in one.lower().partition("from")[2] for one in statements) == compares


def more_batches(deps, count):
    """As many batches as given, of one item each."""
    ids = [line.submission_id for line in submissions(deps.store, SubmissionFilter())]
    return [started(deps, submissions=(ids[number % COUNT],)) for number in range(count)]


@pytest.mark.parametrize("path", ["/batches", "/live/queue"])
def test_lists_of_batches_ask_no_more_for_many(operator, store, deps, statements, path):
    """The number of questions does not grow with the number of batches, at work or at rest."""

    def asked():
        statements.clear()
        assert operator.get(path).status == 200
        return len(statements)

    batches = more_batches(deps, 6)
    regrade_states.cancel(store, batches[0], "operator:tests")
    before = asked()
    for batch_id in more_batches(deps, 6)[:3]:
        regrade_states.cancel(store, batch_id, "operator:tests")
    assert asked() == before


def test_the_list_of_batches_is_right(operator, store, deps):
    """What is done of how many, at work and at rest, also after something moved."""
    done, at_work, waits = worked_off(deps), started(deps), planned(deps).batch_id

    def shown():
        text = operator.get("/batches").text
        assert text.index(waits) < text.index(at_work) < text.index(done)
        return [text.split(batch_id)[2].partition("</tr>")[0] for batch_id in (done, at_work, waits)]

    first, second, third = shown()
    assert f"{COUNT} of {COUNT}" in first
    assert f"0 of {COUNT}" in second
    assert f"0 of {COUNT}" in third
    judge_chunk(deps, size=7)
    regrade_states.discard(store, waits, "operator:tests")
    first, second, third = shown()
    assert f"{COUNT} of {COUNT}" in first
    assert f"7 of {COUNT}" in second
    assert "discarded" in third


def dead_lettered(store, batch_id, repetition, count):
    """So many items of one repetition fail through us."""
    of_them = [RegradeItemRow.batch_id == batch_id, RegradeItemRow.repetition == repetition]
    rows = sorted(read(store, RegradeItemRow.submission_id, RegradeItemRow.id, where=of_them))
    failed = {"state": ItemState.NEEDS_ATTENTION.value, "verdict_id": None, "last_error": f"pod died {SCRIPT}"}
    overwrite(store, RegradeItemRow, RegradeItemRow.id.in_([row.id for row in rows[:count]]), **failed)


def test_later_repetitions_that_need_attention_are_on_the_page(operator, store, deps):
    """With their number and their failure, bounded; the list of changes leads there."""
    batch_id = worked_off(deps, repeats=4)
    assert "Needs attention" not in operator.get(f"/batches/{batch_id}").text
    dead_lettered(store, batch_id, 2, 1)
    page = operator.get(f"/batches/{batch_id}").text
    section = page.partition('id="attention"')[2].partition("</section>")[0]
    assert section.count("<tr>") == 2
    assert '2<span class="muted"> / 4</span>' in section
    assert "pod died &lt;script&gt;" in section
    assert f'href="/batches/{batch_id}#attention"' in operator.get(f"/batches/{batch_id}/changes").text
    for repetition in (2, 3, 4):
        dead_lettered(store, batch_id, repetition, COUNT)
    section = operator.get(f"/batches/{batch_id}").text.partition('id="attention"')[2].partition("</section>")[0]
    assert section.count("<tr>") == 51
    assert f"And {3 * COUNT - 50} more." in section


@pytest.mark.integration
def test_the_fields_are_there_for_everybody(store, port, spent, visit):
    """By their labels, without scripts; what was said is on the page afterwards."""
    batch_id, _ = spent
    window = visit(port, 360, java_script_enabled=False).sign_in()
    window.go(f"/batches/{batch_id}")
    hours = window.page.get_by_label("New GPU budget, hours")
    assert hours.get_attribute("aria-describedby") == "gpu_hours-hint"
    hours.fill("2.5")
    window.press("Resume")
    window.page.get_by_role("link", name="Pause with a reason …").click()
    window.page.get_by_label("Reason, optional").fill("the cluster is needed")
    window.press(f"Pause {batch_id}")
    assert window.page.locator(".notice").inner_text() == "the cluster is needed"
    assert regrades.batch(store, batch_id).gpu_budget_s == 9000.0
    assert window.console == []
