"""What a diff counts: kinds, transitions, scores, steps, checks, codes, movers and warnings, in exact numbers."""

import pytest

from grader_service.model.diff import CHANGED, Filter, Kind
from grader_service.model.regrade import ItemState, Level
from grader_service.model.verdict import Mode, Outcome, StepVerdict
from grader_service.model.verdict_summary import summary_of
from grader_service.regrade.diff import MOST_LISTED
from grader_service.regrade.filters import kind_of, lost_a_decision
from tests.regrade.makers import LOST, NOISY, a_change, a_check, a_diff, a_ratio, a_summary, pending
from tests.report.factories import step, verdict

CHANGES = (
    a_change("s:1"),
    a_change("s:2", {}, LOST),
    a_change("s:3", {}, LOST, newer=2),
    a_change("s:4", {}, NOISY),
    a_change("s:5", LOST, {}),
    a_change("s:6", LOST, LOST | {"reflections": "failed"}),
    a_change("s:7", {}, LOST, outdated=True),
    pending("s:8"),
    pending("s:9", ItemState.NEEDS_ATTENTION),
)
"""Of every kind but `cancelled` at least one."""


def moved(part):
    """Transitions as a mapping."""
    return {(item.old, item.new): item.submissions for item in part}


def test_every_submission_is_of_one_kind():
    """All kinds are there, and they add up."""
    diff = a_diff(CHANGES)
    assert diff.kinds == {
        Kind.NEWLY_FAILING: 2,
        Kind.NEWLY_PASSING: 1,
        Kind.NEWLY_UNDECIDED: 1,
        Kind.OTHERWISE_CHANGED: 1,
        Kind.UNCHANGED: 1,
        Kind.OUTDATED: 1,
        Kind.PENDING: 1,
        Kind.NEEDS_ATTENTION: 1,
        Kind.CANCELLED: 0,
    }
    assert (diff.count(), diff.changed, diff.compared, diff.open) == (9, 5, 6, 2)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (a_change(new={"cuda_batch": "failed"}), Kind.NEWLY_FAILING),
        (a_change(old=a_summary(status="inconclusive"), new=LOST), Kind.NEWLY_FAILING),
        (a_change(new=a_summary(status="rejected", score=None, checks=())), Kind.NEWLY_FAILING),
        (a_change(old=LOST, new=a_summary(status="rejected")), Kind.OTHERWISE_CHANGED),
        (a_change(old=NOISY), Kind.NEWLY_PASSING),
        (a_change(old=a_summary(status="error")), Kind.NEWLY_PASSING),
        (a_change(new={"cuda_batch": "unverified"}), Kind.NEWLY_UNDECIDED),
        (a_change(old=LOST, new={"cuda_batch": "error"}), Kind.NEWLY_UNDECIDED),
        (a_change(old=NOISY, new={"cuda_batch": "unverified"}), Kind.OTHERWISE_CHANGED),
        (a_change(new=a_summary(score=99.5)), Kind.OTHERWISE_CHANGED),
        (a_change(new=a_summary(verdict_id="other", code="another.code", ratio=a_ratio(9.0))), Kind.UNCHANGED),
        (a_change(new=a_summary(checks=a_summary().checks[::-1])), Kind.UNCHANGED),
        (a_change(new=LOST, outdated=True), Kind.OUTDATED),
        (pending(outdated=True), Kind.PENDING),
        (pending(state=ItemState.WORKING), Kind.PENDING),
        (pending(state=ItemState.CANCELLED), Kind.CANCELLED),
    ],
    ids=lambda value: value.value if isinstance(value, Kind) else "",
)
def test_kinds(change, kind):
    """What a learner would call it: fails now, passes now, is not decided any more, or something less."""
    assert kind_of(change) is kind


def test_statuses_are_counted_from_where_to_where():
    """Of those that `apply` would act on, those that stay included; outdated and open ones are in no figure."""
    assert moved(a_diff(CHANGES).statuses) == {
        ("passed", "passed"): 1,
        ("passed", "failed"): 2,
        ("passed", "inconclusive"): 1,
        ("failed", "passed"): 1,
        ("failed", "failed"): 1,
    }


def test_scores_before_and_after():
    """Means and medians are shares of all points; what has no score is counted apart, and never as 0."""
    diff = a_diff(CHANGES)
    # Before: 100 100 100 100 75 75. After: 100 75 75 none 100 50.
    assert (diff.before.scored, diff.before.without) == (6, 0)
    assert diff.before.mean == pytest.approx(550 / 600)
    assert diff.before.median == 1.0
    assert (diff.after.scored, diff.after.without) == (5, 1)
    assert diff.after.mean == pytest.approx(0.8)
    assert diff.after.median == 0.75
    assert diff.mean_moved == pytest.approx((0 - 0.25 - 0.25 + 0.25 - 0.25) / 5)
    assert {index: n for index, n in enumerate(diff.before.histogram) if n} == {15: 2, 19: 4}
    assert {index: n for index, n in enumerate(diff.after.histogram) if n} == {10: 1, 15: 2, 19: 2}


@pytest.mark.parametrize("twentieths", range(21))
def test_a_score_on_the_edge_of_a_bar_belongs_to_the_bar_above(twentieths):
    """Whatever floating point makes of the product."""
    for most in (100.0, 30.0, 7.0, 0.3):
        score = most * twentieths / 20
        diff = a_diff([a_change(old=a_summary(score=score, max_score=most))])
        assert diff.before.histogram[min(19, twentieths)] == 1


def test_more_points_than_there_are_stay_in_the_last_bar():
    """Neither an index beyond it nor a number that JSON cannot hold."""
    diff = a_diff([a_change(old=a_summary(score=1e308, max_score=1e-308), new=a_summary(score=120.0))])
    assert diff.before.histogram[-1] == diff.after.histogram[-1] == 1
    assert diff.after.mean == 1.2
    assert diff.model_validate_json(diff.model_dump_json()) == diff


def test_checks_have_transitions_and_pass_rates():
    """A rate is of those that were decided; the figures of a step are those of its check."""
    diff = a_diff(CHANGES)
    found = {item.check: item for item in diff.checks}
    assert list(found) == ["jpeg_dataset", "cuda_batch", "throughput_ratio", "reflections"]
    ratio = found["throughput_ratio"]
    assert (ratio.lab, ratio.step, ratio.changed) == ("dali-pipelines", "benchmark", 4)
    assert (ratio.passed_before, ratio.decided_before, ratio.passed_after, ratio.decided_after) == (4, 6, 2, 5)
    assert moved(ratio.transitions) == moved(diff.statuses)
    assert (found["reflections"].changed, moved(found["reflections"].transitions)) == (
        1,
        {("passed", "passed"): 5, ("passed", "failed"): 1},
    )
    assert found["jpeg_dataset"].changed == 0
    steps = {item.step: item for item in diff.steps}
    assert steps["benchmark"].model_dump() == ratio.model_dump(exclude={"check", "versions"})


def test_checks_that_come_and_go_are_absent_on_the_other_side():
    """A lab that gets another check has no outcome of it before."""
    new = a_summary(checks=(a_check("reflections"), a_check("fresh", "inconclusive")))
    old = a_summary(checks=(a_check("reflections"), a_check("stale", "failed")))
    diff = a_diff([a_change(old=old, new=new)])
    found = {item.check: moved(item.transitions) for item in diff.checks}
    assert found == {
        "reflections": {("passed", "passed"): 1},
        "fresh": {("absent", "inconclusive"): 1},
        "stale": {("failed", "absent"): 1},
    }
    assert diff.undecided_by_evidence == 1
    assert [(item.check, item.old, item.new, item.old_code, item.new_code) for item in diff.movers[0].reasons] == [
        ("fresh", "absent", "inconclusive", None, "fresh.noisy"),
        ("stale", "failed", "absent", "stale.too_low", None),
    ]


def test_points_that_differ_are_a_change_of_check_and_step():
    """The outcome stays; a learner sees other points all the same."""
    checks = (a_check("reflections", score=20.0),)
    step = StepVerdict(id="reflection", outcome=Outcome.PASSED, score=20.0, max_score=25.0)
    old = a_summary(checks=(a_check("reflections"),))
    diff = a_diff([a_change(old=old, new=a_summary(checks=checks, steps=(step,)))])
    assert (diff.checks[0].changed, diff.steps[0].changed, diff.changed) == (1, 1, 1)
    assert moved(diff.checks[0].transitions) == {("passed", "passed"): 1}


def test_codes_are_ranked_by_how_many_more_verdicts_give_them():
    """The new reasons stand at the top, those that went away at the bottom."""
    codes = [(item.code, item.before, item.after) for item in a_diff(CHANGES).codes]
    assert codes[0] == ("throughput_ratio.too_low", 2, 3)
    assert codes[1:3] == [("throughput_ratio.noisy", 0, 1), ("reflections.too_low", 0, 1)]
    assert codes[-1] == ("throughput_ratio.ok", 4, 2)
    assert len(codes) == 7


def test_movers_are_those_who_lose_or_gain_most():
    """Losses before gains of the same size; a score that went counts whole; each has its reasons."""
    movers = a_diff(CHANGES, movers=4).movers
    assert [(item.submission_id, item.moved) for item in movers] == [
        ("s:4", None),
        ("s:2", -0.25),
        ("s:3", -0.25),
        ("s:6", -0.25),
    ]
    reason = movers[1].reasons[0]
    assert (reason.check, reason.old, reason.new) == ("throughput_ratio", "passed", "failed")
    assert (reason.old_code, reason.new_code) == ("throughput_ratio.ok", "throughput_ratio.too_low")
    assert (reason.old_score, reason.new_score) == (25.0, 0.0)
    assert (movers[1].old_score, movers[1].new_score, movers[1].new_max_score) == (100.0, 75.0, 100.0)
    assert [item.submission_id for item in a_diff(CHANGES, movers=9).movers] == ["s:4", "s:2", "s:3", "s:6", "s:5"]
    assert a_diff(CHANGES, movers=0).movers == ()


def test_newly_failing_are_listed_in_order_up_to_a_bound():
    """The rest is counted."""
    assert [item.submission_id for item in a_diff(CHANGES).newly_failing] == ["s:2", "s:3"]
    many = a_diff(a_change(f"s:{n:04d}", {}, LOST) for n in range(MOST_LISTED + 7))
    assert [item.submission_id for item in many.newly_failing] == [f"s:{n:04d}" for n in range(MOST_LISTED)]
    assert many.newly_failing_beyond == 7
    assert many.count(*CHANGED) == MOST_LISTED + 7
    assert [item.submission_id for item in many.movers] == [f"s:{n:04d}" for n in range(50)]


def test_counts_those_whose_learner_came_again():
    """Of those that change only."""
    assert a_diff(CHANGES).newer == 1
    assert a_diff([a_change("s:1", newer=3)]).newer == 0


@pytest.mark.parametrize(
    ("old", "new", "changes", "lost"),
    [
        ({}, NOISY, {}, True),
        (LOST, {"throughput_ratio": "skipped"}, {}, True),
        ({}, {"throughput_ratio": "unverified"}, {}, True),
        ({}, {"throughput_ratio": "error"}, {}, True),
        (NOISY, {"throughput_ratio": "unverified"}, {}, False),
        ({"throughput_ratio": "skipped"}, NOISY, {}, False),
        ({"throughput_ratio": "unverified"}, NOISY, {}, False),
        ({}, LOST, {}, False),
        ({}, NOISY, {"level": Level.RUN}, False),
        ({}, NOISY, {"outdated": True}, False),
        ({}, NOISY, {"new": None, "state": ItemState.WORKING}, False),
    ],
    ids=[
        "lost", "lost_from_failed", "not_verified", "our_fault", "was_noisy_before", "was_skipped_before",
        "was_not_verified_before", "decided", "by_a_run", "outdated", "pending",
    ],
)  # fmt: skip
def test_says_where_stored_evidence_no_longer_decides(old, new, changes, lost):
    """Only what was judged from stored evidence, and what `apply` takes, could be helped by executing it again."""
    change = a_change(old=old, new=new).model_copy(update=changes)
    assert lost_a_decision(change) is lost
    assert a_diff([change]).undecided_by_evidence == lost


def test_a_title_that_is_worded_anew_changes_nothing():
    """Summaries keep none: old verdicts have none either."""
    made = verdict(steps=(step("baseline").model_copy(update={"title": "Your images"}), step("benchmark")))
    titled, plain = summary_of(made), summary_of(verdict())
    assert titled.steps == plain.steps
    assert "Your images" not in titled.model_dump_json()


UNREACHED = a_check("throughput_ratio", "skipped", code="run.not_reached", score=0.0)


def without_ratio(*checks):
    """A verdict on code that stopped before the benchmark, or was said to fail it."""
    return a_summary(checks=(a_check("jpeg_dataset"), *checks), status="failed", code="run.raised")


def test_what_was_not_reached_is_a_failure():
    """Stored evidence that says so decides, and a failure that is called so now is no change."""
    old = without_ratio(a_check("throughput_ratio", "failed"))
    change = a_change(old=old, new=without_ratio(UNREACHED))
    assert not change.changed
    assert not lost_a_decision(change)
    diff = a_diff([change, a_change("s:2", {}, without_ratio(UNREACHED))])
    assert (diff.changed, diff.undecided_by_evidence) == (1, 0)
    ratio = next(check for check in diff.checks if check.check == "throughput_ratio")
    assert [(item.old, item.new, item.submissions) for item in ratio.transitions] == [
        ("passed", "failed", 1),
        ("failed", "failed", 1),
    ]
    assert (ratio.passed_after, ratio.decided_after) == (0, 2)
    (reason,) = [reason for reason in diff.newly_failing[0].reasons if reason.check == "throughput_ratio"]
    assert (reason.old, reason.new, reason.new_code) == ("passed", "failed", "run.not_reached")


def test_a_filter_asks_of_its_own_check_whether_it_is_decided():
    """A submission that lost another one is not counted."""
    changes = [a_change(new=NOISY)]
    assert a_diff(changes, chosen=Filter(check="throughput_ratio")).undecided_by_evidence == 1
    assert a_diff(changes, chosen=Filter(check="reflections")).undecided_by_evidence == 0


def test_versions_of_a_check_are_counted_and_several_on_a_side_are_told():
    """One before and another after is what a re-grade is for; two on one side make its figures doubtful."""
    old, new = (a_summary(checks=(a_check(version=version),)) for version in ("1.0.0", "2.0.0"))
    clean = a_diff([a_change("s:1", old, new), a_change("s:2", old, new)])
    assert [(v.version, v.before, v.after) for v in clean.checks[0].versions] == [("1.0.0", 2, 0), ("2.0.0", 0, 2)]
    assert clean.warnings == ()
    assert not clean.checks[0].mixed
    mixed = a_diff([a_change("s:1", old, new), a_change("s:2", new, new)])
    assert mixed.checks[0].mixed
    assert mixed.warnings == (
        "several versions of the check throughput_ratio judged on the same side: "
        "2.0.0 (1 before, 2 after), 1.0.0 (1 before, 0 after)",
    )


def test_warns_of_rehearsals_and_other_gpus():
    """Both make old and new verdicts hard to compare."""
    new = a_summary(mode=Mode.REHEARSAL, gpu=None)
    assert a_diff([a_change(new=new), a_change("s:2")]).warnings == (
        "1 new verdicts are rehearsals, which are no grades; the old ones are official",
        "1 new verdicts come from another model of GPU than the old ones",
    )


def test_labs_are_counted_apart():
    """Two labs may call a step and a check by the same name."""
    other = a_summary("s:2", lab="other-lab")
    diff = a_diff([a_change("s:1"), a_change("s:2", other, other)])
    assert [(item.lab, item.check) for item in diff.checks].count(("other-lab", "reflections")) == 1
    assert len(diff.checks) == len(diff.steps) == 8


def test_a_batch_without_submissions_has_a_diff():
    """Nothing is divided by nobody."""
    diff = a_diff([])
    assert (diff.count(), diff.before.mean, diff.before.median, diff.mean_moved) == (0, None, None, None)
    assert (diff.checks, diff.movers, diff.flakes) == ((), (), None)
