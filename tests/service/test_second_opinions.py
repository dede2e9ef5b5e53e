"""A model's opinion moves a result to passed or to a person, never to failed; and it is asked once."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import select

from grader_service.errors import ConfigurationError
from grader_service.judging.process import JudgeProcess
from grader_service.regrade.bulk import BulkDeps
from grader_service.service.review_model import ModelAddress, ReviewModel
from grader_service.service.second_opinions import SecondOpinions, second_opinions_of
from grader_service.settings import Settings
from grader_service.store import erasing, operations, opinions, reviews
from grader_service.store.opinions import Asked
from grader_service.store.review_tables import SecondOpinionRow
from grader_service.store.tables import EventRow
from tests.regrade.conftest import OperatedService
from tests.regrade.deps import diff, judge_all, read, started
from tests.reviewing import CHECK, LAB, a_judge, check_of, handed_in, in_force, install, look
from tests.service.harness import served
from tests.services.chat_server import an_opinion
from tests.store.factories import count
from tests.store.test_metrics import text_of

pytestmark = pytest.mark.integration


@pytest.fixture
def judge(store, server, tmp_path, monkeypatch):
    """One with the plugin's check, who asks that model."""
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder, monkeypatch)
    return asking(a_judge(store), server)


def asking(judge, server, timeout_s=60.0):
    """It asks that model, and waits so long for an answer."""
    model = ReviewModel(ModelAddress(server.url, "small", timeout_s=timeout_s))
    return replace(judge, opinions=SecondOpinions(judge.store, model, "judge/1"))


def judged(judge, word, number=1):
    """The check's part of the verdict on a new submission whose list begins with this word."""
    return checked(judge, handed_in(judge, number, word))


def checked(judge, submission_id="s:1"):
    """The same of the verdict that is in force."""
    return check_of(in_force(judge.store, submission_id))[0]


def came_of_it(judge):
    """What came of each opinion that was wanted, in order."""
    rows = select(EventRow.detail).where(EventRow.kind == "second_opinion").order_by(EventRow.id)
    with judge.store.transaction() as connection:
        return [detail["second_opinion"] for detail in connection.execute(rows).scalars()]


def waiting(judge):
    return [(case.submission_id, case.check_id) for case in reviews.open_cases(judge.store)]


@pytest.mark.parametrize(
    ("word", "opinion", "outcome", "last"),
    [
        ("perhaps", "good", "passed", "passed"),
        ("perhaps", "bad", "inconclusive", "unchanged"),
        ("perhaps", "unsure", "inconclusive", "unchanged"),
        ("good", "good", "passed", "unchanged"),
        ("good", "bad", "inconclusive", "inconclusive"),
        ("good", "unsure", "passed", "unchanged"),
    ],
)
def test_what_an_opinion_does(judge, server, word, opinion, outcome, last):
    """Undecided and good passes, passed and bad waits for a person; all else stays, and the opinion is noted."""
    server.says = lambda _: an_opinion(opinion, why="As <b>the learner</b> told me.")
    check = judged(judge, word)
    code = "doubtful.ok" if outcome == "passed" else "doubtful.needs_review"
    assert (check["outcome"], check["code"]) == (outcome, code)
    assert check["score"] == (check["max_score"] if outcome == "passed" else None)
    assert waiting(judge) == ([] if outcome == "passed" else [("s:1", CHECK)])
    said = check["details"]["second_opinion"]
    assert (said["model"], said["opinion"], said["why"]) == ("small", opinion, "As <b>the learner</b> told me.")
    assert said["from"] == ("doubtful.ok" if word == "good" else "doubtful.needs_review")
    assert check["details"]["counted"] == 2, "what the check itself noted stays"
    assert check["feedback"]
    assert "told me" not in check["feedback"]
    assert came_of_it(judge) == [last]


def test_only_what_was_judged_is_sent(judge, server):
    """With the check's question, and nothing of whose it is."""
    judged(judge, "good")
    (request,) = server.asked
    assert "a situation in which DALI wins" in request["messages"][0]["content"]
    sent = json.loads(request["messages"][1]["content"].split("\n")[1])
    assert sent == {"words": ["good", 'é "is" text']}
    for name in ("ann", "s:1", "s.py", "doubtful"):
        assert name not in json.dumps(request)


def test_what_failed_is_never_sent(judge, server):
    """Nobody is failed or saved by a model where rules say what is wrong."""
    assert judged(judge, "bad")["outcome"] == "failed"
    assert (server.asked, came_of_it(judge)) == ([], [])


def test_a_check_that_does_not_ask_is_never_sent(judge, server):
    """The lab's second check passed, and leaves nothing to a model."""
    handed_in(judge, 1, "bad", "perhaps")
    assert waiting(judge) == [("s:1", "doubtful_too")]
    assert server.asked == []


def test_no_model_no_connection(judge, server):
    """The default: checks judge alone."""
    alone = replace(judge, opinions=None)
    assert judged(alone, "perhaps")["outcome"] == "inconclusive"
    assert "second_opinion" not in judged(alone, "good", 2)["details"]
    assert server.asked == []


@pytest.mark.parametrize(
    ("trouble", "cause"), [("prose", "malformed"), ("slow", "timeout"), ("down", "http_status"), ("long", "refused")]
)
@pytest.mark.parametrize(("word", "outcome"), [("perhaps", "inconclusive"), ("good", "passed")])
def test_without_an_opinion_everything_stays(judge, server, trouble, cause, word, outcome):
    """As the check said it; nothing is kept, so that the next judging asks again."""
    server.says = lambda _: "I think it is good."
    if trouble == "slow":
        judge, server.slow_s = asking(judge, server, 0.5), 9.0
    server.status = {"down": 503, "long": 400}.get(trouble, 200)
    check = judged(judge, word)
    assert (check["outcome"], "second_opinion" in check["details"]) == (outcome, False)
    assert came_of_it(judge) == [cause]
    assert count(judge.store, SecondOpinionRow) == 0


def test_a_dead_model_does_not_slow_judging(judge, server, monkeypatch):
    """After three failures nobody is asked for a while, and figures say so."""
    monkeypatch.setattr(operations, "_SETTLED_S", 0.0)
    server.status = 500
    for number in range(5):
        assert judged(judge, "perhaps", number)["outcome"] == "inconclusive"
    assert len(server.asked) == 3
    assert came_of_it(judge) == ["http_status"] * 3 + ["paused"] * 2
    text = text_of(judge.store)
    assert 'grader_second_opinions_total{result="http_status"} 3.0' in text
    assert 'grader_second_opinions_total{result="paused"} 2.0' in text


def worked_off(judge):
    """What a batch at level judge changes."""
    deps = BulkDeps(judge.store, judge.registry, judge.signer, "worker", judging=judge.judging, opinions=judge.opinions)
    batch_id = started(deps, level="judge")
    judge_all(deps)
    return diff(deps, batch_id)


@pytest.mark.parametrize(("word", "opinion"), [("perhaps", "good"), ("good", "bad")])
def test_a_batch_applies_the_same_opinion_without_asking(judge, server, word, opinion):
    """Whatever the model would say today; the check judges in a process of its own, as it does in the service."""
    with JudgeProcess() as process:
        judge = replace(judge, judging=process)
        server.says = lambda _: an_opinion(opinion)
        assert judged(judge, word)["details"]["second_opinion"]["opinion"] == opinion
        server.says = lambda _: an_opinion("bad" if opinion == "good" else "good")
        found = worked_off(judge)
        without = worked_off(replace(judge, opinions=None))
    assert len(server.asked) == 1
    assert (sum(found.kinds.values()), found.changed) == (1, 0)
    assert without.changed == 1, "a worker that does not know the model undoes what it did"


@pytest.mark.parametrize(("accepted", "code"), [(True, "doubtful.ok"), (False, "doubtful.not_accepted")])
@pytest.mark.parametrize("word", ["good", "perhaps"])
def test_a_person_has_the_last_word(judge, server, word, accepted, code):
    """What a model sent to a person is decided there, and no model is asked about it any more."""
    server.says = lambda _: an_opinion("bad")
    judged(judge, word)
    reviews.decide(judge.store, "s:1", CHECK, accepted=accepted, reason="I read it.", actor="operator:eve")
    server.says = lambda _: an_opinion("good" if word == "perhaps" else "unsure")
    assert look(judge) == 1
    check = checked(judge)
    assert (check["code"], check["score"]) == (code, 10.0 if accepted else 0.0)
    assert check["review"]["decided_by"] == "operator:eve"
    for model in ("small", "another"):
        name = replace(judge.opinions, model=ReviewModel(ModelAddress(server.url, model)))
        assert worked_off(replace(judge, opinions=name)).changed == 0
    assert len(server.asked) == 1


def test_a_decision_about_one_check_asks_about_no_other(judge, server):
    """Only opinions that are kept count then: what had none when it was judged has none now."""
    server.status = 503
    handed_in(judge, 1, "good", "perhaps")
    server.status = 200
    server.says = lambda _: an_opinion("bad")
    reviews.decide(judge.store, "s:1", "doubtful_too", accepted=True, reason="I read it.", actor="operator:eve")
    assert look(judge) == 1
    assert checked(judge)["outcome"] == "passed"
    assert len(server.asked) == 1


def test_who_was_faster_has_said_it(judge):
    """Two judges of one submission agree, whatever each of them was answered."""
    judged(replace(judge, opinions=None), "good")
    asked = Asked("s:1", "r", CHECK, "0" * 64, "small")
    assert opinions.find(judge.store, asked) is None
    assert [opinions.keep(judge.store, asked, said, "judge", "passed") for said in ("1", "2")] == ["1", "1"]
    assert opinions.find(judge.store, asked) == "1"
    assert opinions.find(judge.store, replace(asked, model="another")) is None


def test_an_erased_learner_leaves_no_opinion(judge, server):
    """Its texts may repeat what the learner wrote. Figures stay; who is erased meanwhile gets none."""
    server.says = lambda _: an_opinion("bad", why="They wrote XYZZY.")
    judged(judge, "good")
    assert count(judge.store, SecondOpinionRow) == 1
    note = json.loads(erasing.erase(judge.store, "ann", "operator:eve", lambda done: json.dumps(dict(done.removed))))
    assert note["second_opinions"] == 1
    assert came_of_it(judge) == ["inconclusive"]
    asked = Asked("s:1", "r", CHECK, "0" * 64, "small")
    assert opinions.keep(judge.store, asked, "{}", "judge", "passed") is None
    opinions.note_none(judge.store, asked, "judge", "timeout")
    assert count(judge.store, SecondOpinionRow) == 0
    assert came_of_it(judge) == ["inconclusive"]
    details = [detail for (detail,) in read(judge.store, EventRow.detail)]
    assert "small" not in json.dumps(details)


@pytest.mark.slow
def test_workers_of_the_service_ask(redis, postgres_url, server, tmp_path, monkeypatch):
    """Set up by settings, each in its own role of the database: a judge asks, and a batch applies what was answered."""
    folder, key = tmp_path / "installed", tmp_path / "key"
    folder.mkdir()
    install(folder, monkeypatch)
    key.write_text("secret\n")
    environment = {
        "GRADER_REVIEW_MODEL_URL": f"{server.url}/v1",
        "GRADER_REVIEW_MODEL": "small",
        "GRADER_REVIEW_MODEL_KEY_FILE": str(key),
        "GRADER_REVIEW_MODEL_TIMEOUT_S": "60",
        "GRADER_LEASE_S": "60",  # nobody waits for the end of one; a lost one would be a try more
    }
    source = 'where_dali_wins = ["perhaps"]\nwhere_dali_loses = ["good"]\n'
    with served(redis, postgres_url, tmp_path, kind=OperatedService, **environment) as operated:
        operated.both()
        operated.post(operated.message("s:1", source, lab=LAB, steps=[], cohort="autumn"))
        check, status, _ = check_of(json.dumps(operated.one_verdict("s:1")))
        assert (check["code"], check["details"]["second_opinion"]["opinion"]) == ("doubtful.ok", "good")
        server.says = lambda _: an_opinion("bad")
        batch_id = operated.plan("--level", "judge")["batch_id"]
        operated.regrade_worker()
        operated.regrade("start", batch_id)
        operated.await_batch(batch_id, "finished")
        operated.regrade("diff", batch_id, status=0)
        assert status == "passed"
    assert server.keys == ["Bearer secret"]


def test_a_key_that_cannot_be_read_is_said(tmp_path, monkeypatch):
    """At the start of a worker."""
    monkeypatch.setenv("GRADER_REVIEW_MODEL", "small")
    monkeypatch.setenv("GRADER_REVIEW_MODEL_URL", "http://models:8000")
    monkeypatch.setenv("GRADER_REVIEW_MODEL_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="none cannot be read"):
        second_opinions_of(Settings(), None, "judge")
