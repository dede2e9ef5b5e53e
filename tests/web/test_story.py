"""An operator re-grades a cohort by clicking: plan, look, start, watch, diff, apply, revert."""

import pytest

from checks.reflections.check import reflections
from grader_service.model.regrade import BatchState
from grader_service.regrade.bulk import judge_chunk
from grader_service.store import regrade_apply, regrade_states, regrades
from grader_service.web.queries import EventFilter, SubmissionFilter, events, submissions
from tests.regrade.deps import judge_all, planned, some_deps, worked_off
from tests.regrade.kinds import kinds, transitions
from tests.regrade.stored import changed_lab, fill
from tests.web.client import OPERATOR_TOKEN, Client, served

pytestmark = [pytest.mark.integration, pytest.mark.slow]
COUNT = 80
BACK = sum(kind in {"between", "near"} for kind in kinds(COUNT))
"""Submissions that pass at 1.1 and did not at 1.3."""


@pytest.fixture
def graded(store, tmp_path):
    """A cohort that was graded at 1.3 by mistake: what the installed lab says is 1.1."""
    fill(store, COUNT)
    deps = some_deps(store)
    regrade_apply.apply(store, worked_off(deps, changed_lab(tmp_path)), "operator:tests", notify="none")
    return deps


def statuses(store):
    """Submission to the status in force, and the verdict that gives it."""
    return {
        line.submission_id: (line.status, line.verdict_id) for line in submissions(store, SubmissionFilter(), size=999)
    }


def waits_for(window, text):
    """Until the page says so by itself."""
    window.page.locator(".batch-line .chip", has_text=text).first.wait_for()
    window.page.wait_for_load_state()  # in another state it was loaded anew


def matrix(window):
    """(before, after) to the number in the cell."""
    news = window.page.locator(".matrix thead th").all_inner_texts()[1:]
    found = {}
    for row in window.page.locator(".matrix tbody tr").all():
        old = row.locator("th").inner_text()
        for new, cell in zip(news, row.locator("td").all_inner_texts(), strict=True):
            if cell != "–":
                found[old, new] = int(cell)
    return found


def test_the_whole_story_by_clicking(graded, store, visit):
    """Exact transitions, nothing in force before apply, everything back after revert, every step under one name."""
    before = statuses(store)
    with served(store) as port:
        window = visit(port).sign_in(name="Zoë")
        batch_id = planned_by_clicking(window, store)
        worked_off_under_watch(window, store, graded, batch_id)
        assert statuses(store) == before, "nothing is in force before it is applied"
        expected = {(new, old): n for (old, new), n in transitions(COUNT).items()}
        assert matrix(window) == expected
        assert window.page.locator(".kind-newly_passing .tile-number").inner_text() == str(BACK)
        a_mistyped_id_applies_nothing(window, batch_id)
        assert statuses(store) == before
        applied_by_clicking(window, batch_id)
        after = statuses(store)
        changed = {key for key in before if before[key][0] != after[key][0]}
        assert len(changed) == sum(n for (old, new), n in expected.items() if old != new)
        assert not {verdict for _, verdict in before.values()} & {verdict for _, verdict in after.values()}
        window.go(f"/submissions/{min(changed)}")
        assert window.page.get_by_text(f"of batch {batch_id}").is_visible()
        reverted_by_clicking(window, batch_id)
        assert statuses(store) == before
        assert window.console == ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]
    done = {line.actor for line in events(store, EventFilter(batch=batch_id), size=999)}
    assert {actor for actor in done if not actor.startswith(graded.owner)} == {"web:Zoë"}


def planned_by_clicking(window, store):
    """From the list of cohorts, over a look at what would happen; returns the batch's id."""
    known = len(regrades.batches(store))
    window.go("/cohorts")
    window.page.get_by_role("link", name="Re-grade autumn, dali-pipelines").click()
    assert window.page.get_by_label("autumn").is_checked()
    window.page.get_by_label("Reason").fill("graded at 1.3 by mistake")
    window.press("Show what would happen")
    preview = window.page.locator(".preview").inner_text()
    assert f"{COUNT} new verdicts for {COUNT} selected submissions" in preview
    assert "cohort autumn" in preview
    assert len(regrades.batches(store)) == known, "looking stores nothing"
    window.press("Create this batch")
    batch = regrades.batches(store)[0]
    assert len(regrades.batches(store)) == known + 1
    assert (batch.state, batch.author, batch.reason) == ("planned", "web:Zoë", "graded at 1.3 by mistake")
    return batch.batch_id


def worked_off_under_watch(window, store, deps, batch_id):
    """The bar follows the worker without a click; in between the batch is paused and resumed."""
    window.press("Start")
    shown = "done => document.querySelector('[role=progressbar]').getAttribute('aria-valuenow') === String(done)"
    for reached in (20, 40, 60):
        judge_chunk(deps, size=20)
        assert regrades.progress(store, batch_id).done == reached
        window.page.wait_for_function(shown, arg=reached)
    window.press("Pause")
    waits_for(window, "paused")
    assert judge_chunk(deps) is None
    window.press("Resume")
    judge_all(deps)
    waits_for(window, "finished")


def a_mistyped_id_applies_nothing(window, batch_id):
    """And says what was expected."""
    window.press("Apply …", "link")
    consequences = window.page.locator(".consequences").inner_text()
    assert f"{COUNT} new verdicts come in force" in consequences
    assert f"{BACK} newly passing" in consequences
    window.page.get_by_label("Type").fill("rg-something")
    window.press(f"Apply {batch_id}")
    assert f"'{batch_id}' was expected, 'rg-something' came" in window.page.locator("main").inner_text()


def applied_by_clicking(window, batch_id):
    """With the id typed, and nobody told."""
    window.go(f"/batches/{batch_id}")
    window.press("Apply …", "link")
    window.page.get_by_label("nobody").check()
    window.page.get_by_label("Type").fill(batch_id)
    window.press(f"Apply {batch_id}")
    waits_for(window, "applied")


def reverted_by_clicking(window, batch_id):
    """And the batch's log tells the whole story."""
    window.go(f"/batches/{batch_id}")
    window.press("Revert …", "link")
    assert "come in force again" in window.page.locator(".consequences").inner_text()
    window.press(f"Revert {batch_id}")
    waits_for(window, "reverted")
    shown = [row.locator("td").nth(1).inner_text() for row in window.page.locator("table.log tbody tr").all()]
    done = ("planned", "started", "paused", "resumed", "applied", "reverted")
    assert [kind for kind in shown if kind != "regrade_finished"] == [f"regrade_{word}" for word in done]


def test_cancel_discard_and_an_unfinished_batch(graded, store, visit):
    """Each asks first and says what is lost; an unfinished batch is applied only when told so."""
    with served(store) as port:
        window = visit(port).sign_in()
        batch = planned(graded, statuses=("failed",))
        total = batch.estimate.items
        regrade_states.start(store, batch.batch_id, "operator:tests")
        judge_chunk(graded, size=5)
        window.go(f"/batches/{batch.batch_id}")
        window.press("Cancel …", "link")
        assert (
            f"{total - 5} of {total} items will not be graded again"
            in window.page.locator(".consequences").inner_text()
        )
        window.page.get_by_role("link", name="Back").click()
        assert regrades.batch(store, batch.batch_id).state == BatchState.RUNNING
        window.press("Cancel …", "link")
        window.press("Cancel rg-")
        waits_for(window, "cancelled")
        window.press("Apply …", "link")
        assert f"{total - 5} submissions have no new verdict" in window.page.locator(".notice").inner_text()
        window.page.get_by_label("Type").fill(batch.batch_id)
        window.page.get_by_role("button", name="Apply rg-").click()  # which the browser refuses
        assert window.page.locator("input[name=unfinished]:invalid").count() == 1
        assert regrades.batch(store, batch.batch_id).state == BatchState.CANCELLED, "the box has to be ticked"
        window.page.get_by_label("Apply the others all the same").check()
        window.press("Apply rg-")
        waits_for(window, "applied")

        other = planned(graded, statuses=("rejected",))
        window.go(f"/batches/{other.batch_id}")
        window.press("Discard …", "link")
        window.press("Discard rg-")
        waits_for(window, "discarded")
        assert window.page.locator(".actions").count() == 0
        assert window.console == []


def test_two_operators_do_not_act_on_the_same_state(graded, store, visit):
    """The second one is told what the state is now, and nothing happens twice."""
    with served(store) as port:
        batch = planned(graded, statuses=("rejected",))
        first, second = (visit(port).sign_in(name=name) for name in ("Ann", "Ben"))
        for window in (first, second):
            window.go(f"/batches/{batch.batch_id}")
        first.press("Start")
        second.press("Start")
        said = second.page.locator("main").inner_text()
        assert "Not now" in said
        assert f"batch {batch.batch_id} is running" in said
    kinds_of = [event.kind for event in regrades.events(store, batch.batch_id)]
    assert kinds_of == ["regrade_planned", "regrade_started"]


def test_confirmations_cannot_be_skipped(graded, store):
    """A form made by hand without the confirmation, the id or a choice is refused, and changes nothing."""
    batch_id = worked_off(graded, statuses=("rejected",))
    before = statuses(store)
    with served(store) as port:
        client = Client(port)
        client.sign_in(OPERATOR_TOKEN)
        here = f"/batches/{batch_id}/do"
        for path, fields, status in (
            (f"{here}/apply", {"notify": "none", "confirmed": "yes"}, 400),
            (f"{here}/apply", {"notify": "none", "confirmed": "yes", "typed": batch_id.upper()}, 400),
            (f"{here}/apply", {"notify": "none", "typed": batch_id}, 400),
            (f"{here}/apply", {"notify": "some", "confirmed": "yes", "typed": batch_id}, 400),
            (f"{here}/apply", {"confirmed": "yes", "typed": batch_id}, 400),
            (f"{here}/discard", {}, 400),
            (f"{here}/revert", {"notify": "none", "confirmed": "yes"}, 409),
            (f"{here}/cancel", {"confirmed": "yes"}, 409),
            (f"{here}/start", {}, 409),
            (f"{here}/retry", {"extra": "x"}, 303),
            (f"{here}/explode", {"confirmed": "yes"}, 404),
            ("/batches/none/do/start", {}, 404),
        ):
            assert client.act(path, **fields).status == status, (path, fields)
    assert regrades.batch(store, batch_id).state == BatchState.FINISHED
    assert statuses(store) == before


FORMS = [
    ({"reason": ""}, "say why"),
    ({"level": "none"}, "the level is one of"),
    ({"repeats": "0"}, "repetitions are a number from 1 to 20"),
    ({"repeats": "21"}, "repetitions are"),
    ({"repeats": "x"}, "repetitions are"),
    ({"gpu_budget_h": "-1"}, "GPU budget"),
    ({"gpu_budget_h": "nan"}, "GPU budget"),
    ({"statuses": "good"}, "good"),
    ({"checks": "throughput_ratio=good"}, "good"),
    ({"checks": "a b"}, "checks"),
    ({"codes": "UPPER"}, "codes"),
    ({"submissions": "a b"}, "submissions"),
    ({"received_from": "yesterday"}, "received from is a time"),
    ({"cohorts": "nobody"}, "selected"),
    ({"learners": "\x00"}, "selected"),
]


@pytest.mark.parametrize(("fields", "said"), FORMS, ids=lambda value: None if isinstance(value, dict) else value)
def test_a_wrong_form_says_what_is_wrong(place, operator, fields, said):
    """It comes back as it was filled in, and nothing is stored."""
    before = len(regrades.batches(place.store))
    for do in ("preview", "create"):
        answer = operator.act("/batches/new", **({"reason": "<b>why</b>", "do": do} | fields))
        assert answer.status == 400
        assert said in answer.text
        assert "&lt;b&gt;why&lt;/b&gt;" in answer.text or not fields.get("reason", "x")
    assert len(regrades.batches(place.store)) == before


def test_every_condition_of_the_form_reaches_the_batch(quick_store):
    """And comes back in words."""
    ids = fill(quick_store, 30)
    with served(quick_store) as port:
        client = Client(port)
        client.sign_in(OPERATOR_TOKEN)
        answer = client.act(
            "/batches/new",
            do="create",
            reason="many conditions",
            cohorts=["autumn", "spring"],
            labs="dali-pipelines",
            submissions="\r\n".join(ids[:20]) + f", {ids[20]}",
            statuses=["passed", "failed"],
            checks="throughput_ratio, reflections=passed\r\nreflections=failed",
            check_versions=f"reflections=1.0.0, reflections={reflections.version}",
            received_from="2020-01-01T00:00",
            received_before="2100-01-01T00:00",
            latest_only="1",
            level="judge",
            repeats="2",
            gpu_budget_h="1.5",
        )
        assert answer.status == 303, answer.text
        (batch,) = regrades.batches(quick_store)
        assert answer.headers["location"] == f"/batches/{batch.batch_id}"
        chosen = batch.selection
        assert chosen.cohorts == ("autumn", "spring")
        assert chosen.submissions == tuple(ids[:21])
        assert chosen.statuses == ("passed", "failed")
        assert dict(chosen.checks) == {"throughput_ratio": (), "reflections": ("passed", "failed")}
        assert dict(chosen.check_versions) == {"reflections": ("1.0.0", reflections.version)}
        assert (chosen.received_from, chosen.received_before) == (1577836800.0, 4102444800.0)
        assert chosen.latest_only
        assert (batch.level, batch.repeats, batch.gpu_budget_s) == ("judge", 2, 5400.0)
        page = client.get(answer.headers["location"]).text
        assert "received from 2020-01-01 00:00 UTC on" in page
        assert "only the latest submission" in page
