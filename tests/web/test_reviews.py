"""What waits for a person is shown and decided on its page; on both databases."""

import json
import re

import pytest
from sqlalchemy import insert, select

from grader_service.store import reviews
from grader_service.store.review_tables import ReviewCaseRow
from grader_service.store.tables import EventRow, EvidenceRow, VerdictRow
from tests.regrade.deps import overwrite, read
from tests.regrade.stored import fill
from tests.reviewing import CHECK, LAB, OTHER, a_judge, check_of, decisions, handed_in, in_force, install, look
from tests.web.client import BOTH, OPERATOR_TOKEN, VIEWER_TOKEN, Client, served
from tests.web.stock import SCRIPT

WHY = "The second entry names a real bottleneck."


@pytest.fixture
def judge(store, tmp_path, monkeypatch):
    """A judge with the plugin's check."""
    install(tmp_path / "installed", monkeypatch)
    return a_judge(store)


@pytest.fixture
def three(judge):
    """Addresses of three cases, the oldest first."""
    ids = [handed_in(judge, number, learner=f"learner-{number}", first="perhaps <b>so</b>") for number in (1, 2, 3)]
    return [f"/reviews/{one}/{CHECK}" for one in ids]


@pytest.fixture
def port(judge):
    """Of the page in front of them, to which viewers sign in."""
    with served(judge.store, BOTH) as found:
        yield found


def current(answer):
    """Address of the case that is shown large."""
    found = re.search(r'href="(/reviews/[^"]+)" aria-current', answer.text)
    return found[1] if found else None


def others(answer):
    """Addresses of the previous and the next case."""
    return [re.search(rf'href="([^"]+)" rel="{rel}"', answer.text) for rel in ("prev", "next")]


def decide(client, address, decision="accepted", **fields):
    return client.act(address, decision=decision, **{"reason": WHY} | fields)


def test_an_empty_queue_says_so(operator):
    """And the navigation has no number."""
    answer = operator.get("/reviews")
    assert (answer.status, "Nothing waits for a person" in answer.text) == (200, True)
    assert "badge" not in answer.text
    assert "<form" not in answer.text.partition("<main")[2]


def test_the_oldest_is_shown_large(three, operator):
    """With what the check saw as text; the others in a list, and their number in the navigation of every page."""
    answer = operator.get("/reviews")
    assert answer.status == 200
    assert current(answer) == three[0]
    assert re.findall(r'<li><a href="(/reviews/[^"]+)"', answer.text) == three
    assert 'badge">3<' in operator.get("/submissions").text
    for shown in ("perhaps &lt;b&gt;so&lt;/b&gt;", "Left to a person", LAB, "10 points", "The learner reads it"):
        assert shown in answer.text
    assert "learner-1" not in answer.text, "who decides need not know whose it is"
    assert [found and found[1] for found in others(answer)] == [None, three[1]]
    assert [found and found[1] for found in others(operator.get(three[1]))] == [three[0], three[2]]


def test_a_decision_is_made_once_and_the_next_case_comes(three, operator, judge):
    """Under the operator's name, with the reason; what was decided is said, and the judge makes the verdict."""
    answer = decide(operator, three[1], ready="What this says is not right.", decision="rejected")
    assert answer.status == 303
    following = operator.get(answer.headers["location"])
    assert current(following) == three[2], "it goes on from there"
    assert "Rejected by <bdi>web:Zoë</bdi>" in following.text
    assert 'badge">2<' in following.text
    submission_id = three[1].split("/")[2]
    assert decisions(judge.store) == {submission_id: (False, "web:Zoë")}
    assert look(judge) == 1
    check, status, _ = check_of(in_force(judge.store, submission_id))
    assert (check["code"], status) == (f"{CHECK}.not_accepted", "failed")
    assert check["review"]["reason"] == f"What this says is not right. {WHY}"
    kinds = read(judge.store, EventRow.kind, EventRow.actor, where=[EventRow.submission_id == submission_id])
    assert ("review_decided", "web:Zoë") in kinds
    last = decide(operator, three[2])
    assert current(operator.get(last.headers["location"])) == three[0], "around the end"
    empty = operator.get(decide(operator, three[0]).headers["location"])
    assert "Nothing waits for a person" in empty.text
    assert "Accepted by <bdi>web:Zoë</bdi>" in empty.text


@pytest.mark.parametrize("reason", ["", "  ", "no", "x" * 2001])
def test_without_a_reason_nothing_is_decided(three, operator, judge, reason):
    """The form comes back as it was filled in."""
    answer = decide(operator, three[0], decision="rejected", reason=reason)
    assert answer.status == 400
    assert "a decision needs a reason of 3 to 2000 characters" in answer.text
    assert current(answer) == three[0]
    assert re.search(r'<details class="decision" name="decision" data-key="r" open>', answer.text)
    assert f'value="{reason.strip()}"' in answer.text
    assert decisions(judge.store) == {}


def test_who_comes_second_is_told_who_was_faster(three, operator, judge, port):
    """Kindly: with the decision, without a form, and with a way to the next case."""
    other = Client(port)
    other.sign_in(OPERATOR_TOKEN, name="Ann")
    assert decide(other, three[0]).status == 303
    late = decide(operator, three[0], decision="rejected", reason="It is wrong.")
    assert late.status == 409
    assert "already decided by web:Ann" in late.text
    assert "Accepted by <bdi>web:Ann</bdi> at" in late.text
    assert WHY in late.text
    assert 'name="decision"' not in late.text
    assert others(late)[1][1] == three[1]
    assert decisions(judge.store) == {three[0].split("/")[2]: (True, "web:Ann")}
    assert operator.get(three[0]).status == 200


def test_a_decision_falls_on_the_case_that_was_shown(three, operator, judge):
    """Not on another one that came in its place meanwhile; the page shows that one then."""
    subject = re.search(r'name="subject" value="(\w{64})"', operator.get(three[0]).text)[1]
    late = decide(operator, three[0], subject="0" * 64)
    assert (late.status, "is not what was shown" in late.text) == (409, True)
    assert f'name="subject" value="{subject}"' in late.text
    assert decisions(judge.store) == {}
    assert decide(operator, three[0], subject=subject).status == 303
    assert decisions(judge.store) == {three[0].split("/")[2]: (True, "web:Zoë")}


def test_a_case_that_a_later_verdict_decided(three, operator, judge):
    """Is shown without a form, and refused."""
    submission_id = three[0].split("/")[2]
    overwrite(judge.store, VerdictRow, VerdictRow.submission_id == submission_id, current=False)
    answer = operator.get(three[0])
    assert (answer.status, "a later verdict decided it" in answer.text) == (200, True)
    assert 'name="decision"' not in answer.text
    assert decide(operator, three[0]).status == 409
    assert current(operator.get("/reviews")) == three[1]


def test_what_a_viewer_may(three, port, judge):
    """Read, and nothing else."""
    viewer = Client(port)
    assert viewer.get("/reviews").status == 303
    viewer.sign_in(VIEWER_TOKEN)
    for path in ("/reviews", three[0]):
        answer = viewer.get(path)
        assert (answer.status, "Operators decide" in answer.text) == (200, True)
        assert 'name="decision"' not in answer.text
    assert decide(viewer, three[0]).status == 403
    assert decisions(judge.store) == {}


def test_forms_of_others_are_refused(three, operator, judge):
    """Without the session's token, of another site, or with another decision."""
    fields = {"decision": "accepted", "reason": WHY}
    assert operator.post(three[0], fields).status == 403
    whole = fields | {"csrf": operator.get("/").csrf}
    assert operator.post(three[0], whole, Origin="https://evil.example").status == 403
    assert decide(operator, three[0], decision="perhaps").status == 400
    assert operator.act(three[0], reason=WHY).status == 400
    assert decisions(judge.store) == {}


def test_what_is_not_there(three, operator):
    """Submissions and checks that never waited; an address that says something else was decided."""
    for path in ("/reviews/nobody/doubtful", f"{three[0]}x", "/reviews/a%20b/doubtful", three[0].replace(CHECK, OTHER)):
        assert operator.get(path).status == 404
        assert decide(operator, path).status == 404
    waits = f"decided={three[0].split('/')[2]}&check={CHECK}"
    for query in ("decided=nobody&check=x", waits, "decided=%3Cb%3E&check="):
        answer = operator.get(f"/reviews?{query}")
        assert (answer.status, current(answer)) == (200, three[0])
        assert "new verdict within seconds" not in answer.text


def test_broken_documents_break_neither_list_nor_case(three, operator, judge):
    """What cannot be read is said, and the case can be decided all the same."""
    submission_id = three[0].split("/")[2]
    overwrite(judge.store, VerdictRow, VerdictRow.submission_id == submission_id, document="{}")
    answer = operator.get("/reviews")
    assert (answer.status, "cannot be read" in answer.text) == (200, True)
    assert "perhaps &lt;b&gt;" in answer.text
    second = three[1].split("/")[2]
    overwrite(judge.store, ReviewCaseRow, ReviewCaseRow.submission_id == second, seen="{broken")
    answer = operator.get(three[1])
    assert (answer.status, "what the check saw cannot be read" in answer.text) == (200, True)
    overwrite(judge.store, ReviewCaseRow, ReviewCaseRow.submission_id == second, seen=None)
    assert "was not kept" in operator.get(three[1]).text
    assert decide(operator, three[0]).status == 303
    assert decide(operator, three[1]).status == 303


def test_a_case_whose_evidence_is_gone_says_so(three, operator, judge):
    """And is not decided, since nothing could be judged from it."""
    overwrite(judge.store, EvidenceRow, EvidenceRow.removed_at.is_(None), removed_at=1.0)
    assert "run the submission again" in operator.get(three[0]).text
    answer = decide(operator, three[0])
    assert (answer.status, "is not stored any more" in answer.text) == (409, True)
    assert decisions(judge.store) == {}


def test_every_check_that_waits_has_its_own_case(operator, judge):
    """Of one submission."""
    submission_id = handed_in(judge, second="perhaps")
    answer = operator.get("/reviews")
    assert re.findall(r'<li><a href="(/reviews/[^"]+)"', answer.text) == [
        f"/reviews/{submission_id}/{check}" for check in (CHECK, OTHER)
    ]
    assert decide(operator, f"/reviews/{submission_id}/{OTHER}").status == 303
    assert [case.check_id for case in reviews.open_cases(judge.store)] == [CHECK]


def test_texts_of_learners_and_operators_stay_texts(operator, judge):
    """In the case, and where a decision is said."""
    submission_id = handed_in(judge, first=f"perhaps {SCRIPT}\u202e")
    path = f"/reviews/{submission_id}/{CHECK}"
    shown = operator.get(path)
    long = decide(operator, path, reason=SCRIPT * 100)
    decided = decide(operator, path, reason=SCRIPT)
    assert (shown.status, long.status, decided.status) == (200, 400, 303)
    for answer in (shown, long, operator.get(decided.headers["location"])):
        assert SCRIPT not in answer.text
        assert "\u202e" not in answer.text
    assert SCRIPT.replace("<", "&lt;").replace(">", "&gt;") in operator.get(path).text


def test_a_case_beyond_the_list_is_decided_all_the_same(quick_store):
    """The list has the oldest 200, and says of how many."""
    ids = fill(quick_store, 203)
    overwrite(quick_store, VerdictRow, VerdictRow.current, needs_review=True)
    with quick_store.transaction() as connection:
        for place, row in enumerate(connection.execute(select(VerdictRow.verdict_id, VerdictRow.submission_id)).all()):
            case = {"check_id": "reflections", "subject": "5" * 64, "seen": "{}", "opened_at": float(place)}
            values = case | {"verdict_id": row.verdict_id, "submission_id": row.submission_id}
            connection.execute(insert(ReviewCaseRow).values(values))
    last = read(quick_store, ReviewCaseRow.submission_id, where=[ReviewCaseRow.opened_at == 202])[0][0]
    assert last in ids
    with served(quick_store) as port:
        operator = Client(port)
        operator.sign_in(OPERATOR_TOKEN)
        assert "The oldest 200 of 203" in operator.get("/reviews").text
        path = f"/reviews/{last}/reflections"
        assert 'name="decision"' in operator.get(path).text
        assert decide(operator, path).status == 303
        assert 'name="decision"' not in operator.get(path).text


def test_a_check_that_is_not_installed_here_is_shown_by_its_id(three, judge, monkeypatch):
    """With what it saw."""
    values = json.loads(read(judge.store, ReviewCaseRow.seen)[0][0])
    assert values["words"]
    monkeypatch.undo()
    with served(judge.store) as port:
        operator = Client(port)
        operator.sign_in(OPERATOR_TOKEN)
        answer = operator.get("/reviews")
        assert (answer.status, f'id="case">{CHECK}<' in answer.text) == (200, True)
        assert "perhaps &lt;b&gt;" in answer.text
