"""What checks leave to a person waits, is decided once, and the decision is in force from then on."""

import json

import pytest
from sqlalchemy import func

from grader_service.errors import UsageError
from grader_service.model.regrade import Selection
from grader_service.regrade.bulk import BulkDeps, judge_chunk
from grader_service.regrade.planning import PlanRequest, plan
from grader_service.service import reviewing
from grader_service.service.reviewing import judge_decided
from grader_service.signer.signatures import signed_by
from grader_service.store import erasing, regrade_apply, regrade_states, retention, review_work, reviews
from grader_service.store.one_by_one import RowsLeft
from grader_service.store.review_tables import ReviewCaseRow, ReviewDecisionRow
from grader_service.store.reviews import AlreadyDecided, NothingToReview
from grader_service.store.tables import EventRow, EvidenceRow, OutboxRow, VerdictRow, table_of
from tests.regrade.deps import overwrite, read
from tests.reviewing import CHECK, LAB, OTHER, a_judge, check_of, handed_in, in_force, install, look, strict_lab
from tests.store.aged import age
from tests.store.factories import count
from tests.store.threads import at_once

WHY = "The second entry names a real bottleneck."


@pytest.fixture
def judge(store, tmp_path, monkeypatch):
    """A judge with the plugin's check."""
    install(tmp_path / "installed", monkeypatch)
    return a_judge(store)


@pytest.fixture
def strict(tmp_path):
    """The lab, in which the first check leaves nothing to a person."""
    return strict_lab(tmp_path)


def verdicts(judge, submission_id):
    return count(judge.store, VerdictRow, VerdictRow.submission_id == submission_id)


def decide(judge, submission_id, check_id=CHECK, *, accepted=True, reason=WHY, actor="operator:eve"):
    return reviews.decide(judge.store, submission_id, check_id, accepted=accepted, reason=reason, actor=actor)


def waiting(judge):
    return [(case.submission_id, case.check_id) for case in reviews.open_cases(judge.store)]


def worked_off(judge, *labs):
    """A batch at level judge over all that is there, started and judged; its id."""
    batch_id = planned(judge, *labs)
    regrade_states.start(judge.store, batch_id, "ann")
    judge_batch(judge)
    return batch_id


def planned(judge, *labs):
    request = PlanRequest(Selection(labs=(LAB,)), "because", "judge", lab_files=labs)
    return plan(judge.store, judge.registry, request, "ann").batch_id


def judge_batch(judge):
    deps = BulkDeps(judge.store, judge.registry, judge.signer, "worker")
    while judge_chunk(deps) is not None:
        pass


def test_only_what_is_left_to_a_person_waits(judge):
    """The oldest first; what the check decides by itself does not. No points are given or lost."""
    first, second = handed_in(judge, 1), handed_in(judge, 2)
    handed_in(judge, 3, "good")
    handed_in(judge, 4, "bad")
    age(judge.store, ReviewCaseRow, "opened_at", 1.0, ReviewCaseRow.submission_id == second)
    assert waiting(judge) == [(second, CHECK), (first, CHECK)]
    found, oldest_s = reviews.waiting(judge.store)
    assert found == 2
    assert 86_400 <= oldest_s < 86_500
    assert waiting(judge)[:1] == [(case.submission_id, CHECK) for case in reviews.open_cases(judge.store, limit=1)]
    assert reviews.open_cases(judge.store, lab="another") == []
    check, status, score = check_of(in_force(judge.store, first))
    assert (check["outcome"], check["score"], status, score) == ("inconclusive", None, "inconclusive", None)
    assert check["review"]["decision"] is None


def test_a_person_sees_what_the_check_saw(judge):
    """Word for word, and what the check made of it."""
    submission_id = handed_in(judge)
    view = reviews.case_view(judge.store, submission_id)
    assert view.seen == {"words": ["perhaps", 'é "is" text']}
    assert (view.check.step, view.check.details) == ("first", {"counted": 2})
    assert (view.notes, view.case.lab) == ((), LAB)


@pytest.mark.parametrize(
    ("accepted", "outcome", "code", "score", "status"),
    [(True, "passed", "doubtful.ok", 10.0, "passed"), (False, "failed", "doubtful.not_accepted", 0.0, "failed")],
)
def test_a_decision_makes_a_signed_verdict(judge, accepted, outcome, code, score, status):
    """With who, when and why; it supersedes the one before, and everybody who waits is answered with it."""
    submission_id = handed_in(judge)
    before = json.loads(in_force(judge.store, submission_id))["verdict_id"]
    case = decide(judge, submission_id, accepted=accepted)
    assert (case.decision.by, case.decision.reason) == ("operator:eve", WHY)
    assert waiting(judge) == []
    assert look(judge) == 1
    assert look(judge) == 0
    document = in_force(judge.store, submission_id)
    check, now, total = check_of(document)
    assert (check["outcome"], check["code"], check["score"], now, total) == (outcome, code, score, status, score + 5)
    assert check["details"] == {"counted": 2}
    review = check["review"]
    assert (review["decision"], review["decided_by"], review["reason"]) == (
        "accepted" if accepted else "rejected", "operator:eve", WHY,
    )  # fmt: skip
    assert "A person" in check["feedback"]
    assert WHY in check["feedback"]
    assert signed_by(json.loads(document)) == judge.signer.public_key
    ((supersedes, reviewed),) = read(
        judge.store, VerdictRow.supersedes, VerdictRow.reviewed, where=[VerdictRow.current]
    )
    assert (supersedes, bool(reviewed)) == (before, True)
    told = {row.verdict_id for row in read(judge.store, table_of(OutboxRow).c.verdict_id)}
    assert told == {json.loads(document)["verdict_id"]}
    kinds = [
        row.kind for row in read(judge.store, EventRow.kind, EventRow.id, where=[EventRow.kind.contains("review")])
    ]
    assert sorted(kinds) == ["review_decided", "reviewed"]
    ((actor, detail),) = read(judge.store, EventRow.actor, EventRow.detail, where=[EventRow.kind == "review_decided"])
    assert (actor, detail["reason"], detail["check"]) == ("operator:eve", WHY, CHECK)


def test_of_two_who_decide_at_once_one_does(judge):
    """The other is told who was faster; there is one verdict more."""
    submission_id = handed_in(judge)

    def one(number):
        try:
            return decide(judge, submission_id, accepted=bool(number), actor=f"operator:{number}").decision
        except AlreadyDecided as error:
            return str(error)

    said = at_once(2, one)
    (refused,) = (one for one in said if isinstance(one, str))
    (decision,) = (one for one in said if not isinstance(one, str))
    assert f"already decided by {decision.by} at 20" in refused
    assert look(judge) == 1
    assert verdicts(judge, submission_id) == 2
    with pytest.raises(AlreadyDecided, match=f"already decided by {decision.by}"):
        decide(judge, submission_id)
    assert verdicts(judge, submission_id) == 2


def test_of_two_judges_one_makes_the_verdict(judge):
    """The other finds another verdict in force."""
    submission_id = handed_in(judge)
    decide(judge, submission_id)
    at_once(2, lambda _: look(judge))
    assert verdicts(judge, submission_id) == 2
    assert count(judge.store, EventRow, EventRow.kind == "reviewed") == 1


@pytest.mark.parametrize("reason", ["", "ok", "  no \n", "x" * 2001, "turned \u202e around", "\x1b[2J gone"])
def test_a_reason_is_needed_that_can_be_shown(judge, reason):
    """Nothing is decided without."""
    submission_id = handed_in(judge)
    with pytest.raises(UsageError, match="reason"):
        decide(judge, submission_id, reason=reason)
    assert waiting(judge) == [(submission_id, CHECK)]


def test_what_does_not_wait_is_refused(judge, strict):
    """Unknown submissions, other checks, and those that were decided by the check itself."""
    submission_id, good = handed_in(judge, 1), handed_in(judge, 2, "good")
    for wrong in (("s:9", CHECK), (submission_id, OTHER), (good, CHECK)):
        with pytest.raises(NothingToReview, match="never waited"):
            decide(judge, *wrong)
    regrade_apply.apply(judge.store, worked_off(judge, strict), "ann")
    assert waiting(judge) == []
    with pytest.raises(NothingToReview, match="a later verdict decided it"):
        decide(judge, submission_id)
    assert count(judge.store, ReviewDecisionRow) == 0


def test_two_checks_of_a_submission_are_decided_one_by_one(judge):
    """Which one is meant must be said; the other goes on waiting, from when it did."""
    submission_id = handed_in(judge, second="perhaps")
    age(judge.store, ReviewCaseRow, "opened_at", 2.0)
    with pytest.raises(UsageError, match=f"{CHECK}, {OTHER}; name one"):
        decide(judge, submission_id, None)
    decide(judge, submission_id, OTHER, accepted=False)
    assert waiting(judge) == [(submission_id, CHECK)]
    assert look(judge) == 1
    assert waiting(judge) == [(submission_id, CHECK)]
    assert reviews.waiting(judge.store)[1] > 2 * 86_400
    decide(judge, submission_id, None)
    assert look(judge) == 1
    _, status, score = check_of(in_force(judge.store, submission_id))
    assert (status, score) == ("failed", 10.0)
    assert look(judge) == 0


def test_a_regrade_applies_the_decision_again(judge):
    """Its verdict says the same, and nothing waits anew; another submission of the same lists waits by itself."""
    submission_id = handed_in(judge)
    decide(judge, submission_id, accepted=False)
    look(judge)
    before = check_of(in_force(judge.store, submission_id))
    again = handed_in(judge, 2)
    assert waiting(judge) == [(again, CHECK)]
    regrade_apply.apply(judge.store, worked_off(judge), "ann")
    assert check_of(in_force(judge.store, submission_id)) == before
    assert waiting(judge) == [(again, CHECK)]


def test_a_regrade_opens_and_closes_cases(judge, strict):
    """As soon as its verdicts are in force, and not before; undone, the queue is as it was."""
    submission_id = handed_in(judge)
    stricter = worked_off(judge, strict)
    assert waiting(judge) == [(submission_id, CHECK)]
    regrade_apply.apply(judge.store, stricter, "ann")
    assert waiting(judge) == []
    looser = worked_off(judge)
    assert waiting(judge) == []
    regrade_apply.apply(judge.store, looser, "ann")
    assert waiting(judge) == [(submission_id, CHECK)]
    assert reviews.case_view(judge.store, submission_id).seen["words"][0] == "perhaps"
    regrade_apply.revert(judge.store, looser, "ann")
    assert waiting(judge) == []
    assert reviews.waiting(judge.store) == (0, 0.0)


def test_a_check_that_decides_by_itself_outranks_the_decision(judge, strict):
    """From a batch's lab under which nothing is left to a person; undone, the decision is in force again."""
    submission_id = handed_in(judge)
    decide(judge, submission_id)
    look(judge)
    batch_id = worked_off(judge, strict)
    regrade_apply.apply(judge.store, batch_id, "ann")
    check, status, _ = check_of(in_force(judge.store, submission_id))
    assert (check["code"], check["review"], status) == ("doubtful.bad", None, "failed")
    regrade_apply.revert(judge.store, batch_id, "ann")
    assert check_of(in_force(judge.store, submission_id))[1] == "passed"


def test_a_batch_that_judged_before_the_decision_does_not_undo_it(judge):
    """Whether it is applied before a judge made the verdict of the decision, or after."""
    early, late = handed_in(judge, 1), handed_in(judge, 2)
    batch_id = worked_off(judge)
    decide(judge, early)
    assert look(judge) == 1
    decide(judge, late)
    assert regrade_apply.apply(judge.store, batch_id, "ann").outdated == 1
    assert waiting(judge) == []
    assert look(judge) == 1
    for submission_id in (early, late):
        assert check_of(in_force(judge.store, submission_id))[1] == "passed"
    regrade_apply.revert(judge.store, batch_id, "ann")
    look(judge)
    assert check_of(in_force(judge.store, late))[1] == "passed"


def test_a_batch_that_is_applied_while_the_verdict_is_made_is_seen(judge):
    """What was judged on the verdict from before is dropped, and made anew on the one in force."""
    submission_id = handed_in(judge)
    batch_id = worked_off(judge)
    decide(judge, submission_id)
    (case,) = review_work.decided_cases(judge.store, 9)
    regrade_apply.apply(judge.store, batch_id, "ann")
    assert judge_decided(judge, case) is None
    assert look(judge) == 1
    assert check_of(in_force(judge.store, submission_id))[1] == "passed"


def test_a_submission_that_cannot_be_judged_waits_and_stops_no_other(judge, monkeypatch):
    """It is named, until its evidence is back; however few are judged at once."""
    monkeypatch.setattr(reviewing, "_AT_ONCE", 1)
    broken, whole = handed_in(judge, 1), handed_in(judge, 2)
    decide(judge, broken)
    decide(judge, whole)
    ((run_id, digest),) = read(
        judge.store, EvidenceRow.run_id, EvidenceRow.sha256,
        where=[EvidenceRow.run_id == review_work.decided_cases(judge.store, 1)[0].run_id],
    )  # fmt: skip
    overwrite(judge.store, EvidenceRow, EvidenceRow.run_id == run_id, sha256="0" * 64)
    with pytest.raises(RowsLeft, match=f"{broken} .*digest"):
        look(judge)
    assert check_of(in_force(judge.store, whole))[1] == "passed"
    overwrite(judge.store, EvidenceRow, EvidenceRow.run_id == run_id, sha256=digest)
    assert look(judge) == 1


def test_a_verdict_that_cannot_be_read_keeps_its_place(judge):
    """It is listed, its page says what is wrong with it, and it can be decided."""
    submission_id = handed_in(judge)
    overwrite(judge.store, VerdictRow, document="{", summary="{")
    assert waiting(judge) == [(submission_id, CHECK)]
    view = reviews.case_view(judge.store, submission_id)
    assert view.check is None
    assert "cannot be read" in view.notes[0]
    assert view.seen["words"][0] == "perhaps"
    decide(judge, submission_id)
    assert look(judge) == 1
    assert check_of(in_force(judge.store, submission_id))[1] == "passed"


def test_evidence_stays_while_somebody_may_decide(judge):
    """However old it is; with it gone nothing can be decided, and the page says so."""
    submission_id = handed_in(judge)
    age(judge.store, EvidenceRow, "created_at", 99.0)
    assert retention.remove_evidence(judge.store, 9.0, 10) == 0
    overwrite(judge.store, EvidenceRow, document=b"", removed_at=1.0)
    assert "run the submission again" in reviews.case_view(judge.store, submission_id).notes[0]
    with pytest.raises(UsageError, match=r"evidence of run .* is not stored any more"):
        decide(judge, submission_id)
    overwrite(judge.store, EvidenceRow, removed_at=None)
    decide(judge, submission_id)
    overwrite(judge.store, VerdictRow, needs_review=False)
    assert retention.remove_evidence(judge.store, 9.0, 10) == 1


def test_erasing_a_learner_leaves_nothing(judge):
    """Of theirs; what others wait for stays."""
    mine, others = handed_in(judge, 1, learner="ann"), handed_in(judge, 2, learner="bob")
    for submission_id in (mine, others):
        decide(judge, submission_id)
    removed = {}

    def noted(done):
        removed.update(done.removed)
        return "{}"

    erasing.erase(judge.store, "ann", "operator:eve", noted)
    assert removed["reviews"] == 2
    for table in (ReviewCaseRow, ReviewDecisionRow):
        assert {row.submission_id for row in read(judge.store, table.submission_id)} == {others}
    assert not read(judge.store, EventRow.detail, where=[EventRow.submission_id == mine])


def test_old_submissions_go_with_their_cases(judge):
    """With the submission, whoever removes it: a worker of the version before does not know the tables."""
    handed_in(judge)
    age(judge.store, VerdictRow, "created_at", 99.0)
    assert retention.remove_verdicts(judge.store, 9.0, 10) == 1
    assert count(judge.store, ReviewCaseRow) == 0


def test_decided_cases_are_examples(judge):
    """With what the check saw, the label, and nothing of the learner or of who decided."""
    good, bad = handed_in(judge, 1, "perhaps"), handed_in(judge, 2, "maybe")
    handed_in(judge, 3)
    decide(judge, good)
    decide(judge, bad, accepted=False)
    look(judge)
    common = {"check": CHECK, "lab": LAB, "kind": "reviewed"}
    assert list(reviews.labelled(judge.store)) == [
        {"words": ["perhaps", 'é "is" text'], "label": "good", **common},
        {"words": ["maybe", 'é "is" text'], "label": "bad", **common},
    ]
    ((later,),) = read(judge.store, func.max(ReviewDecisionRow.decided_at))
    assert [one["label"] for one in reviews.labelled(judge.store, later)] == ["bad"]
