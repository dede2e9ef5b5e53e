"""Within a queue cohorts share devices by weight, and learners take turns, on both databases."""

import itertools
from collections import Counter

import pytest
from sqlalchemy import select, update

from grader_service.errors import UsageError
from grader_service.model.verdict import Status
from grader_service.retry_policy import RetryPolicy
from grader_service.store import acceptance, fairness, leases, results, sweep
from grader_service.store.acceptance import Accepted, Arrival, IntakeLimits, Refused
from grader_service.store.clock import db_now
from grader_service.store.operations import places, runs_before
from grader_service.store.outbox import Waiter
from grader_service.store.tables import EventRow, RunRow
from tests.store.factories import PLAN, a_submission, a_verdict

MANY = IntakeLimits(learner_per_hour=10_000, learner_gpu_s=1e9)
_ids = itertools.count()


def hand_in(store, learner, cohort="c", *, times=1, purpose="live", limits=MANY):
    """Submissions of a learner; what became of the last."""
    arrivals = [
        Arrival(a_submission(f"{learner}-{next(_ids)}", learner=learner, cohort=cohort), PLAN, purpose, Waiter())
        for _ in range(times)
    ]
    return acceptance.accept_all(store, arrivals, limits, "test")[-1]


def begin(store, device="d"):
    """Claims what comes next; the run with its learner and cohort."""
    claim = leases.claim(store, "run", f"host/{device}/x", 60)
    if claim is None:
        return None, None, None
    with store.transaction() as connection:
        run = connection.execute(select(RunRow.learner, RunRow.cohort).where(RunRow.run_id == claim.run_id)).one()
    return claim, run.learner, run.cohort


def held(store, run_id, seconds):
    """Time passes while a run goes on: it began earlier, and what waits has waited for longer."""
    began = update(RunRow).where(RunRow.run_id == run_id).values(started_at=RunRow.started_at - seconds)
    with store.transaction() as connection:
        connection.execute(began)
        connection.execute(update(RunRow).where(RunRow.state == "run_queued").values(turn=RunRow.turn - seconds))


def finish(store, claim, seconds=60.0):
    """Ends a run that held its device this long."""
    held(store, claim.run_id, seconds)
    assert results.store_evidence(store, claim, "evidence", b"{}", {})


def served(store, runs, seconds=60.0):
    """Learners and cohorts in the order in which one device serves them; seconds of a run, or by cohort."""
    order = []
    for _ in range(runs):
        claim, learner, cohort = begin(store)
        finish(store, claim, seconds[cohort] if isinstance(seconds, dict) else seconds)
        order.append((learner, cohort))
    return order


def learners(order):
    """Only those."""
    return [learner for learner, _ in order]


def test_a_single_submission_waits_for_one_run_of_two_hundred(store):
    """Who hands in much holds up nobody: the other's comes when the run ends that is under way."""
    hand_in(store, "ann", times=200)
    first, who, _ = begin(store)
    assert who == "ann"
    hand_in(store, "bob")
    finish(store, first, 900.0)
    assert learners(served(store, 3)) == ["bob", "ann", "ann"]


def test_learners_take_turns(store):
    """Each has one run before anybody has a second; within a learner the older comes first."""
    for learner, times in (("ann", 3), ("bob", 2), ("cid", 1)):
        hand_in(store, learner, times=times)
    assert learners(served(store, 6, 10.0)) == ["ann", "bob", "cid", "ann", "bob", "ann"]


def test_what_counts_is_time_on_the_device(store):
    """Runs of 900 s and of 60 s: the learner of the short ones has fifteen for one."""
    hand_in(store, "slow", times=4)
    hand_in(store, "fast", times=60)
    order = []
    while order.count("slow") < 4:
        claim, learner, _ = begin(store)
        order.append(learner)
        finish(store, claim, {"slow": 900.0, "fast": 60.0}[learner])
    assert order[0] == "slow"
    assert [len(list(runs)) for who, runs in itertools.groupby(order) if who == "fast"] == [
        pytest.approx(14, abs=1)
    ] * 3


def test_a_learner_who_comes_again_stands_behind_whom_the_long_run_held_up(store):
    """It makes no difference whether the next submission waited already or comes now."""
    hand_in(store, "ann")
    claim, _, _ = begin(store)
    finish(store, claim, 900.0)
    hand_in(store, "ann")
    hand_in(store, "bob")
    assert learners(served(store, 2)) == ["bob", "ann"]


def test_a_failure_of_ours_keeps_its_place(store):
    """The learner had nothing of it: neither the run nor what else waits goes to the end of the line."""
    hand_in(store, "ann", times=2)
    hand_in(store, "bob")
    claim, _, _ = begin(store)
    held(store, claim.run_id, 900.0)
    leases.fail(store, claim, "ours", RetryPolicy(max_attempts=3, delay_s=0.0))
    assert learners(served(store, 1)) == ["ann"]
    hand_in(store, "cid")
    assert learners(served(store, 3)) == ["bob", "cid", "ann"]


def test_who_lost_its_claim_sends_nobody_to_the_end_of_the_line(store):
    """A late result counts nothing: the run was given to another, and is under way there."""
    hand_in(store, "ann", times=2)
    lost, _, _ = begin(store)
    held(store, lost.run_id, 900.0)
    leases.fail(store, lost, "its lease ended", RetryPolicy(max_attempts=3, delay_s=0.0))
    begin(store, "other")
    with store.transaction() as connection:
        before = connection.execute(select(RunRow.turn).where(RunRow.state == "run_queued")).scalar_one()
    assert not results.store_evidence(store, lost, "evidence", b"{}", {})
    with store.transaction() as connection:
        after = connection.execute(select(RunRow.turn).where(RunRow.state == "run_queued")).scalar_one()
    assert after == before


def test_those_without_a_learner_come_as_they_came(store):
    """Nobody can tell whose they are."""
    hand_in(store, "ann", times=2)
    hand_in(store, None, times=2)
    assert learners(served(store, 4)) == ["ann", None, None, "ann"]


def test_a_small_cohort_does_not_wait_for_a_large_one(store):
    """Five hundred learners of one cohort hand in before the deadline; the other's only one comes next."""
    for number in range(500):
        hand_in(store, f"big-{number}", "big")
    first, _, _ = begin(store)
    hand_in(store, "ann", "small")
    finish(store, first)
    assert served(store, 1) == [("ann", "small")]


def test_cohorts_share_by_weight(store):
    """Three to one; in time, so that the runs of the lighter one may be the longer ones."""
    for number in range(60):
        hand_in(store, f"a-{number}", "a")
        hand_in(store, f"b-{number}", "b")
    fairness.set_weight(store, "a", 3.0, "op")
    assert Counter(cohort for _, cohort in served(store, 40)) == {"a": 30, "b": 10}
    again = Counter(cohort for _, cohort in served(store, 32, {"a": 60.0, "b": 120.0}))
    assert 26 <= again["a"] <= 28, "a has 60 s for each 20 s of b's"


def test_a_cohort_that_comes_back_has_neither_credit_nor_debt(store):
    """One used the device alone for long, the other did not exist: from now on they take turns."""
    for number in range(60):
        hand_in(store, f"a-{number}", "a")
    served(store, 40)
    for number in range(10):
        hand_in(store, f"b-{number}", "b")
    again = Counter(cohort for _, cohort in served(store, 8))
    assert min(again["a"], again["b"]) >= 3
    served(store, 22)
    assert begin(store)[0] is None
    for number in range(10):
        hand_in(store, f"a2-{number}", "a")
        hand_in(store, f"b2-{number}", "b")
    again = Counter(cohort for _, cohort in served(store, 8))
    assert min(again["a"], again["b"]) >= 3


def test_several_devices_are_shared_at_the_same_time(store):
    """Runs under way count, though nobody knows yet for how long they will hold their devices."""
    for number in range(20):
        hand_in(store, f"a-{number}", "a")
    for number in range(20):
        hand_in(store, f"b-{number}", "b")
    fairness.set_weight(store, "b", 3.0, "op")
    under_way = [begin(store, f"d{number}") for number in range(8)]
    assert Counter(cohort for _, _, cohort in under_way) == {"a": 2, "b": 6}


def test_each_queue_is_shared_by_itself(store):
    """Live comes before regrade whatever a cohort had, and what re-grades used is no debt in the live queue."""
    for purpose in ("regrade", "live"):
        for cohort in ("a", "b"):
            for number in range(3):
                hand_in(store, f"{cohort}-{number}", cohort, purpose=purpose)
    live = served(store, 6, {"a": 600.0, "b": 60.0})
    assert Counter(cohort for _, cohort in live) == {"a": 3, "b": 3}
    assert Counter(cohort for _, cohort in served(store, 4)) == {"a": 2, "b": 2}


@pytest.mark.parametrize("end", ["fail", "give back", "expire"])
def test_a_cohort_whose_runs_fail_through_us_does_not_hold_up_others(store, end):
    """No learner pays for that; but the devices were held, and the others are behind."""
    for number in range(10):
        hand_in(store, f"a-{number}", "a")
        hand_in(store, f"b-{number}", "b")
    order = []
    for _ in range(12):
        claim, _, cohort = begin(store)
        order.append(cohort)
        if cohort == "b":
            finish(store, claim)
            continue
        held(store, claim.run_id, 300.0)
        if end == "fail":
            leases.fail(store, claim, "ours", RetryPolicy(max_attempts=9, delay_s=0.0))
        elif end == "give back":
            give_back(store, claim)
        else:
            with store.transaction() as connection:
                connection.execute(update(RunRow).where(RunRow.run_id == claim.run_id).values(lease_until=1.0))
            assert sweep.expire_leases(store, RetryPolicy(max_attempts=9, delay_s=0.0)) == 1
    assert order.count("b") >= 9, order


def test_a_busy_learner_or_a_delayed_run_costs_its_cohort_nothing_but_its_turn(store):
    """Where the cohort that should come has nothing that may be claimed, another comes."""
    hand_in(store, "ann", "a", times=2)
    hand_in(store, "bob", "b")
    hand_in(store, "cid", "c")
    assert [begin(store, f"d{number}")[1] for number in range(3)] == ["ann", "bob", "cid"]
    assert begin(store, "d3")[0] is None, "ann's other one waits for the first"
    hand_in(store, "dan", "b")
    assert begin(store, "d4")[1] == "dan"


@pytest.mark.parametrize("weight", [0.0, -1.0, 1e9, float("nan"), float("inf")])
def test_no_weight_is_like_that(store, weight):
    """A cohort that weighs nothing would wait for ever."""
    with pytest.raises(UsageError, match="a weight is a number from"):
        fairness.set_weight(store, "a", weight, "op")
    assert fairness.weights(store) == {}


def test_a_weight_is_kept_and_told(store):
    """In the audit trail, too; the last word counts."""
    fairness.set_weight(store, "a", 2.0, "op")
    hand_in(store, "ann", "a")
    served(store, 1)
    fairness.set_weight(store, "a", 0.5, "op")
    assert fairness.weights(store) == {"a": 0.5}
    with store.transaction() as connection:
        told = connection.execute(select(EventRow.actor, EventRow.detail).where(EventRow.kind == "cohort_weighted"))
        assert [(row.actor, row.detail["weight"]) for row in told] == [("op", 2.0), ("op", 0.5)]


def test_a_learner_whose_runs_held_gpus_too_long_comes_later(store):
    """Within a day; others are let in, and so is this one once the day is over."""
    limits = IntakeLimits(learner_gpu_s=1000.0)
    for _ in range(2):
        assert isinstance(hand_in(store, "ann", limits=limits), Accepted)
        served(store, 1, 600.0)
    refused = hand_in(store, "ann", limits=limits)
    assert isinstance(refused, Refused)
    assert refused.code == "queue.gpu_budget"
    assert "held a GPU for 0.3 h within the last 24 h; up to 0.3 h" in refused.feedback
    assert isinstance(hand_in(store, "bob", limits=limits), Accepted)
    with store.transaction() as connection:
        connection.execute(update(RunRow).values(held_until=RunRow.held_until - 86400.0))
    assert isinstance(hand_in(store, "ann", limits=limits), Accepted)


def test_failures_of_ours_and_what_is_given_back_are_nobodys_use(store):
    """However long they held the device."""
    limits = IntakeLimits(learner_gpu_s=1000.0)
    hand_in(store, "ann", limits=limits)
    for end in (
        lambda c: leases.fail(store, c, "ours", RetryPolicy(max_attempts=5, delay_s=0.0)),
        lambda c: give_back(store, c),
    ):
        claim, _, _ = begin(store)
        held(store, claim.run_id, 5000.0)
        end(claim)
    assert isinstance(hand_in(store, "ann", limits=limits), Accepted)


def test_a_verdict_that_says_that_we_failed_is_nobodys_use(store):
    """The time on the device comes back with it."""
    limits = IntakeLimits(learner_gpu_s=1000.0)
    hand_in(store, "ann", limits=limits)
    served(store, 1, 5000.0)
    assert isinstance(hand_in(store, "ann", limits=limits), Refused)
    judge = leases.claim(store, "judge", "judge", 60)
    verdict = a_verdict(judge.submission_id).model_copy(update={"status": Status.ERROR})
    assert results.store_verdict(store, judge, verdict)
    assert isinstance(hand_in(store, "ann", limits=limits), Accepted)


def give_back(store, claim):
    """As a worker does that is told to stop."""
    assert leases.give_back(store, claim, "told to stop")


def test_runs_before_are_those_that_come_before(store):
    """A mixed queue: what each was told is near what happened, and exact where nobody has two."""
    for learner, cohort, times in (("ann", "a", 4), ("bob", "a", 1), ("cid", "a", 2), ("dan", "b", 3), ("eve", "b", 1)):
        hand_in(store, learner, cohort, times=times)
    hand_in(store, "fay", "c")
    with store.transaction() as connection:
        waiting = connection.execute(select(RunRow.submission_id, RunRow.run_id)).all()
    told = {run_id: places(store, submission_id)[0].ahead for submission_id, run_id in waiting}
    order = []
    while (claim := begin(store)[0]) is not None:
        order.append(claim.run_id)
        finish(store, claim, 60.0)
    assert len(order) == len(told)
    off = [abs(told[run_id] - place) for place, run_id in enumerate(order)]
    assert max(off) <= 3
    assert told[order[0]] == 0


def test_one_that_is_claimed_while_we_look_has_few_before_it(store):
    """Its cohort waits no more, which is no reason to fail."""
    hand_in(store, "ann", "a")
    hand_in(store, "bob", "b")
    with store.transaction() as connection:
        row = connection.execute(select(RunRow.__table__).where(RunRow.learner == "ann")).mappings().one()
    assert begin(store)[1] == "ann"
    with store.transaction() as connection:
        assert runs_before(connection, row) == 0


def test_runs_before_count_the_queue_that_comes_first(store):
    """All of live, for one of regrade; nothing for a run that is under way."""
    hand_in(store, "ann", times=3)
    hand_in(store, "bob", purpose="regrade")
    with store.transaction() as connection:
        of_bob = connection.execute(select(RunRow.submission_id).where(RunRow.learner == "bob")).scalar_one()
    assert places(store, of_bob)[0].ahead == 3
    served(store, 3)
    begin(store)
    assert places(store, of_bob)[0].ahead is None


def test_a_turn_is_a_time_of_the_database(store):
    """What was accepted stands in line from then."""
    hand_in(store, "ann")
    with store.transaction() as connection:
        row = connection.execute(select(RunRow.turn, RunRow.created_at, db_now().label("now"))).one()
    assert row.turn == row.created_at <= row.now
