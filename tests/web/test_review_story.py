"""From a submission that a platform posted to the verdict that an operator's decision made, by keys in a browser."""

import base64
import json

import pytest

from grader_service.store import reviews
from grader_service.web.pages.reviews import READY
from tests.regrade.conftest import OperatedService
from tests.reviewing import CHECK, LAB, a_judge, check_of, decisions, handed_in, in_force, install
from tests.service.harness import served as in_service
from tests.waiting import wait_for
from tests.web.client import served

pytestmark = [pytest.mark.integration, pytest.mark.slow]

QUEUE = "lab-platform"
LISTS = "where_dali_wins = ['perhaps', 'the decoder starves <b>my</b> GPU']\nwhere_dali_loses = ['good']\n"


@pytest.fixture
def operated(redis, postgres_url, tmp_path, monkeypatch):
    """A service with the plugin, without workers."""
    install(tmp_path / "installed", monkeypatch)
    with in_service(redis, postgres_url, tmp_path, kind=OperatedService, GRADER_LEASE_S="60") as made:
        yield made


@pytest.fixture
def judge(quick_store, tmp_path, monkeypatch):
    """A judge with the plugin's check, whose database does not matter."""
    install(tmp_path / "installed", monkeypatch)
    return a_judge(quick_store)


def arrived(operated):
    """Verdicts in the platform's queue, the first one first."""
    messages = [json.loads(one) for one in operated.redis.client().lrange(QUEUE, 0, -1)][::-1]
    assert {message["headers"]["task"] for message in messages} <= {"lab.ready"}
    return [json.loads(base64.b64decode(message["body"]))[1]["verdict"] for message in messages]


def keys(window, *pressed):
    for key in pressed:
        window.page.keyboard.press(key)


def shown(window):
    """The submission that is shown large."""
    return window.page.locator("#case ~ dl .sub").inner_text()


def test_from_the_platforms_message_to_the_verdict_of_a_person(operated, visit):
    """It waits, is decided with one key and a reason, and is answered again; the audit log has it all."""
    operated.both()
    reply_to = {"queue": QUEUE, "task": "lab.ready"}
    submission_id, task_id = operated.post(operated.message("s:1", LISTS, lab=LAB, steps=[], reply_to=reply_to))
    assert operated.result(task_id)["status"] == "inconclusive"
    with served(operated.store) as port:
        window = visit(port)
        window.sign_in(name="Zoë")
        window.press("Reviews 1 waiting", "link")
        assert shown(window) == submission_id
        assert "the decoder starves <b>my</b> GPU" in window.page.locator(".texts").inner_text()
        keys(window, "a", "1")
        with window.page.expect_navigation():
            keys(window, "Enter")
        assert "Accepted by web:Zoë" in window.page.get_by_role("status").inner_text()
        assert "Nothing waits for a person" in window.page.locator("main").inner_text()
        wait_for(lambda: len(arrived(operated)) == 2, 60)
        before, answer = arrived(operated)
        window.go(f"/audit?submission={submission_id}")
        log = window.page.locator("table.log").inner_text()
        assert window.console == []
    for said in ("review_decided", "web:Zoë", "reviewed", "decision=accepted", f"verdict_id={answer['verdict_id']}"):
        assert said in log
    assert (before["status"], answer["status"], answer["score"]) == ("inconclusive", "passed", 15.0)
    assert answer["verdict_id"] != before["verdict_id"]
    assert operated.result(task_id) == answer
    check, _, _ = check_of(json.dumps(answer))
    review = check["review"]
    assert (review["decision"], review["decided_by"]) == ("accepted", "web:Zoë")
    assert review["reason"] == READY["accepted"][0]
    assert review["reason"] in check["feedback"]
    file = operated.logs / "verdict.json"
    for verdict, status in ((answer, 0), (answer | {"score": 14.0}, 1)):
        file.write_text(json.dumps(verdict))
        operated.grader("verify", str(file), status=status)
    assert json.loads(in_force(operated.store, submission_id)) == answer


def test_keys_lead_through_the_queue_and_decide_nothing_by_accident(judge, visit):
    """Every single key that is no reason leaves everything as it is."""
    ids = [handed_in(judge, number) for number in (1, 2, 3)]
    with served(judge.store) as port:
        window = visit(port).sign_in()
        window.go("/reviews")
        for key, expected in (("j", 1), ("ArrowRight", 2), ("k", 1), ("ArrowLeft", 0), ("k", 0), ("j", 1), ("k", 0)):
            keys(window, key)
            window.page.locator("#case ~ dl .sub", has_text=ids[expected]).wait_for()
            window.page.wait_for_load_state()
        keys(window, "Enter", "1", "Escape", "x", "Control+a")
        assert window.page.locator("details.decision[open]").count() == 0
        keys(window, "a", "Enter")  # without a reason
        assert window.page.locator("input[name=reason]:invalid").count() > 0
        assert window.page.locator(":focus").get_attribute("id") == "accepted-reason", "there it says what it wants"
        keys(window, "Escape", "a", "r")
        assert window.page.locator("details.decision[open]").get_attribute("data-key") == "r"
        keys(window, "j", "k", "9")
        assert shown(window) == ids[0], "with a form open they lead nowhere"
        keys(window, "5")
        assert window.page.locator(":focus").get_attribute("id") == "rejected-reason"
        keys(window, "a", "j", "1", "Space", "r")
        assert window.page.locator(":focus").input_value() == "aj1 r"
        assert window.page.locator("details.decision[open]").get_attribute("data-key") == "r"
        keys(window, "Escape")
        assert window.page.locator("details.decision[open]").count() == 0
        assert decisions(judge.store) == {}
        keys(window, "r", "2")
        with window.page.expect_navigation():
            keys(window, "Enter", "Enter")
        window.page.get_by_role("status").wait_for()
        assert decisions(judge.store) == {ids[0]: (False, "web:Zoë")}
        assert shown(window) == ids[1]
        assert window.console == []


def test_keys_can_be_turned_off(judge, visit):
    """And stay so; what a mouse does is left."""
    handed_in(judge)
    with served(judge.store) as port:
        window = visit(port).sign_in()
        window.go("/reviews")
        window.page.get_by_label("Keys act").uncheck()
        window.go("/reviews")
        keys(window, "a", "r")
        assert window.page.locator("details.decision[open]").count() == 0
        window.page.locator("summary", has_text="Reject").click()
        window.page.get_by_text("This does not answer the question").click()
        window.press("Reject Enter")
        assert "Nothing waits for a person" in window.page.locator("main").inner_text()


def test_without_scripts_a_case_is_decided_all_the_same(judge, visit):
    """With plain forms; what lacks a reason comes back."""
    ids = [handed_in(judge, number) for number in (1, 2)]
    with served(judge.store) as port:
        window = visit(port, java_script_enabled=False)
        window.sign_in()
        window.go("/reviews")
        assert not window.page.get_by_text("Keys act").is_visible()
        window.press("Next", "link")
        assert shown(window) == ids[1]
        window.page.locator("summary", has_text="Accept").click()
        window.press("Accept Enter")
        assert "a decision needs a reason" in window.page.get_by_role("alert").inner_text()
        window.page.locator("#accepted-reason").fill("It names the decoder.")
        window.press("Accept Enter")
        assert decisions(judge.store) == {ids[1]: (True, "web:Zoë")}
        assert shown(window) == ids[0]
        assert [case.check_id for case in reviews.open_cases(judge.store)] == [CHECK]
