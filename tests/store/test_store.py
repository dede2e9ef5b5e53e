"""The store keeps its promises on both databases: accepted once, claimed once, one current verdict, answers sent."""

import threading
import time
import zlib
from collections import Counter

import pytest
import sqlalchemy
from sqlalchemy import insert, select, update

from grader_service.errors import InfrastructureError
from grader_service.retry_policy import RetryPolicy
from grader_service.store import acceptance, leases, outbox, results, sweep
from grader_service.store.acceptance import (
    Accepted,
    Arrival,
    Conflicting,
    Content,
    IntakeLimits,
    Refused,
    Repeated,
)
from grader_service.store.clock import db_now
from grader_service.store.outbox import Waiter
from grader_service.store.tables import EventRow, EvidenceRow, OutboxRow, RunRow, RunState, SubmissionRow, VerdictRow
from tests.services.postgres_server import somebody_waits
from tests.store.factories import LIMITS, PLAN, a_submission, accept, count, finish
from tests.store.threads import at_once
from tests.waiting import wait_for


def test_the_same_id_with_other_content_is_a_conflict(store):
    """The first content stands."""
    accept(store, a_submission())
    first = Content.of(a_submission())
    assert accept(store, a_submission(sha="1")) == Conflicting(first)
    assert accept(store, a_submission(steps=("baseline",))) == Conflicting(first)
    assert accept(store, a_submission(lab="other")) == Conflicting(first)


def test_a_conflict_names_what_is_not_the_same(store):
    """Whoever reads two equal digests would look for the difference in the file."""
    first = Content.of(a_submission(steps=("throughput", "baseline")))
    assert (
        first.differs(Content.of(a_submission(steps=("baseline",)))) == "steps were baseline, throughput, now baseline"
    )
    assert first.differs(Content.of(a_submission(sha="1", steps=("baseline", "throughput")))) == (
        f"the file's SHA-256 was {'0' * 64}, now {'1' * 64}"
    )
    assert first.differs(Content.of(a_submission(lab="other"))) == (
        "the lab was dali-pipelines, now other; steps were baseline, throughput, now all"
    )


def test_live_comes_before_regrade_and_older_before_newer(store):
    """The claim order is priority, then age."""
    for number, purpose in ((1, "regrade"), (2, "live"), (3, "regrade"), (4, "live")):
        accept(store, a_submission(number, learner=f"l{number}"), purpose)
    claimed = [leases.claim(store, "run", "r", 60).submission_id for _ in range(4)]
    assert claimed == ["s:2", "s:4", "s:1", "s:3"]
    assert leases.claim(store, "run", "r", 60) is None


def test_a_learner_has_one_run_at_a_time(store):
    """The second waits until the first is off the runner; others pass it."""
    for number, learner in ((1, "ann"), (2, "ann"), (3, "bob"), (4, None), (5, None)):
        accept(store, a_submission(number, learner=learner))
    claims = [leases.claim(store, "run", "r", 60) for _ in range(4)]
    assert [claim.submission_id for claim in claims] == ["s:1", "s:3", "s:4", "s:5"]
    assert leases.claim(store, "run", "r", 60) is None
    results.store_evidence(store, claims[0], "evidence", b"{}", {})
    assert leases.claim(store, "run", "r", 60).submission_id == "s:2"


def test_no_run_is_claimed_twice_at_once(store):
    """Ten workers and sixty runs of twenty learners: each run is claimed exactly once."""
    limits = IntakeLimits(learner_per_hour=1000)
    for number in range(60):
        accept(store, a_submission(number, learner=f"l{number % 20}"), limits=limits)
    claimed = []

    def work(number):
        while len(claimed) < 60:
            claim = leases.claim(store, "run", f"w{number}", 60)
            if claim is not None:
                claimed.append(claim.run_id)
                results.store_evidence(store, claim, "evidence", b"{}", {})

    at_once(10, work)
    assert len(claimed) == len(set(claimed)) == 60


@pytest.mark.integration
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_run_that_ends_and_a_claim_of_the_learners_next_do_not_wait_for_each_other(store):
    """Whoever claims has the waiting run's row first; the claim is refused, and the run that ends gets its rows."""
    for number in (1, 2):
        accept(store, a_submission(number))
    first = leases.claim(store, "run", "first", 60)
    stored = []
    ending = threading.Thread(target=lambda: stored.append(results.store_evidence(store, first, "evidence", b"{}", {})))
    waiting = RunRow.state == RunState.RUN_QUEUED.value
    with pytest.raises(sqlalchemy.exc.IntegrityError), store.transaction() as connection:
        connection.execute(select(RunRow.run_id).where(waiting).with_for_update()).one()
        ending.start()
        wait_for(lambda: somebody_waits(store.engine), 20.0, every_s=0.01)
        connection.execute(update(RunRow).where(waiting).values(state=RunState.RUNNING.value))
    ending.join(60)
    assert stored == [True]
    assert leases.claim(store, "run", "second", 60) is not None


@pytest.mark.integration
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_run_that_somebody_holds_for_an_instant_is_waited_for(store):
    """Whoever announces a run has its row locked; the one whom the wake-up calls must not find nothing and leave."""
    accept(store, a_submission())
    claimed = []
    claiming = threading.Thread(target=lambda: claimed.append(leases.claim(store, "run", "runner", 60)))
    with store.transaction() as connection:
        connection.execute(select(RunRow.run_id).with_for_update()).one()
        claiming.start()
        time.sleep(0.03)
        assert not claimed
    claiming.join(60)
    assert claimed[0] is not None


@pytest.mark.integration
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_run_that_stays_locked_is_left(store):
    """A claimer does not wait for a transaction that hangs: what it left is announced again."""
    accept(store, a_submission())
    with store.transaction() as connection:
        connection.execute(select(RunRow.run_id).with_for_update()).one()
        assert leases.claim(store, "run", "runner", 60) is None


def test_an_expired_claim_cannot_write(store):
    """The fence keeps a sleeper's result out, and the event log says so."""
    accept(store, a_submission())
    sleeper = leases.claim(store, "run", "sleeper", -1.0)  # SQLite's clock stands still for a millisecond
    assert sweep.expire_leases(store, RetryPolicy(max_attempts=3, delay_s=0.0)) == 1
    second = leases.claim(store, "run", "second", 60)
    assert second.fence == sleeper.fence + 1
    assert not leases.renew(store, sleeper, 60)
    assert not results.store_evidence(store, sleeper, "evidence", b"late", {})
    assert results.store_evidence(store, second, "evidence", b"{}", {})
    assert results.load_evidence(store, second.run_id).document == b"{}"
    assert count(store, EventRow, EventRow.kind == "fenced_off") == 1


def test_a_live_lease_is_left_alone(store):
    """Renewed leases do not expire."""
    accept(store, a_submission())
    claim = leases.claim(store, "run", "r", 60)
    assert leases.renew(store, claim, 120)
    assert sweep.expire_leases(store, RetryPolicy(max_attempts=3, delay_s=0.0)) == 0


def test_our_failures_are_bounded_and_never_a_verdict(store):
    """Three of them dead-letter the run for an operator; the learner hears nothing bad."""
    accept(store, a_submission())
    states = []
    for _ in range(3):
        claim = leases.claim(store, "run", "r", 60)
        states.append(leases.fail(store, claim, "engine gone", RetryPolicy(max_attempts=3, delay_s=0.0)))
    assert states == [RunState.RUN_QUEUED, RunState.RUN_QUEUED, RunState.NEEDS_ATTENTION]
    assert leases.claim(store, "run", "r", 60) is None
    assert count(store, VerdictRow) == 0


def test_a_failed_run_waits_before_it_is_tried_again(store):
    """`not_before` is kept in SQL, not in the broker."""
    accept(store, a_submission())
    leases.fail(store, leases.claim(store, "run", "r", 60), "x", RetryPolicy(max_attempts=3, delay_s=3600))
    assert leases.claim(store, "run", "r", 60) is None


def test_giving_back_costs_nothing(store):
    """A worker that is told to stop returns its run untouched."""
    accept(store, a_submission())
    claim = leases.claim(store, "run", "r", 60)
    assert leases.give_back(store, claim, "SIGTERM")
    again = leases.claim(store, "run", "r2", 60)
    assert (again.run_id, again.attempts) == (claim.run_id, 0)


def judged_twice(store):
    """The verdicts of two runs of one submission."""
    accept(store, a_submission())
    first = finish(store)
    with store.transaction() as connection:
        again = acceptance.run_row("again", "s:1", "ann", "c", PLAN, "regrade")
        connection.execute(insert(RunRow).values(created_at=db_now(), not_before=db_now(), **again))
    return first, finish(store)


def test_a_verdict_supersedes_and_never_overwrites(store):
    """Two runs of a submission leave two verdicts, one of them in force."""
    first, second = judged_twice(store)
    with store.transaction() as connection:
        rows = connection.execute(select(VerdictRow.verdict_id, VerdictRow.current, VerdictRow.supersedes)).all()
    assert set(map(tuple, rows)) == {(first.verdict_id, False, None), (second.verdict_id, True, first.verdict_id)}


def test_two_current_verdicts_are_impossible(store):
    """The database itself refuses a second one."""
    judged_twice(store)
    with pytest.raises(sqlalchemy.exc.IntegrityError), store.transaction() as connection:
        connection.execute(update(VerdictRow).values(current=True))


def test_everybody_who_waits_is_answered(store):
    """Each waiter gets one message when the verdict comes; one who asks later gets one at once."""
    accept(store, a_submission(), waiter=Waiter("t1", "platform", "lab.ready"))
    accept(store, a_submission())  # nobody waits for this one
    accept(store, a_submission(), waiter=Waiter("t2"))
    accept(store, a_submission(), waiter=Waiter("t2"))
    verdict = finish(store)
    accept(store, a_submission(), waiter=Waiter("t3"))
    messages = outbox.due(store)
    assert [message.task_id for message in messages] == ["t1", "t2", "t3"]
    assert messages[0].reply_queue == "platform"
    assert all(verdict.verdict_id in message.document for message in messages)
    outbox.delivered(store, [message.id for message in messages])
    assert outbox.due(store) == []


def test_answers_of_a_batch_wait_behind_those_that_a_learner_waits_for(store):
    """However many of them came before; and a judge sends those of its own verdict only."""
    with store.transaction() as connection:
        for _ in range(3):
            outbox.enqueue(connection, None, Waiter("bulk"), "{}")
        connection.execute(update(OutboxRow).values(bulk=True))
        outbox.enqueue(connection, None, Waiter("live"), "{}")
    assert outbox.due(store, verdict_id="v-1") == []
    assert [message.task_id for message in outbox.due(store, 2)] == ["live", "bulk"]
    assert [message.task_id for message in outbox.due(store)] == ["bulk", "bulk"]


def test_an_undelivered_answer_is_kept_for_ever(store):
    """It comes back later, with its error and its tries counted."""
    accept(store, a_submission(), waiter=Waiter("t1"))
    finish(store)
    message = outbox.due(store)[0]
    outbox.postponed(store, message, "broker gone")
    assert outbox.due(store) == []
    assert count(store, OutboxRow, OutboxRow.attempts == 1, OutboxRow.last_error == "broker gone") == 1


def test_waiting_runs_are_announced_again(store):
    """A wake-up that was lost is repeated after a while, and not before."""
    accept(store, a_submission())
    assert len(sweep.to_announce(store, silent_s=30)) == 1
    assert sweep.to_announce(store, silent_s=30) == []
    assert len(sweep.to_announce(store, silent_s=-1)) == 1
    claim = leases.claim(store, "run", "r", 60)
    assert sweep.to_announce(store, silent_s=-1) == []
    results.store_evidence(store, claim, "evidence", b"{}", {})
    assert [wake_up.stage for wake_up in sweep.to_announce(store, silent_s=30)] == ["judge"]


def test_evidence_is_checked_against_its_digest(store):
    """Damaged bytes are noticed."""
    accept(store, a_submission())
    claim = leases.claim(store, "run", "r", 60)
    results.store_evidence(store, claim, "evidence", b"{}", {"ab" * 32: b"graph"})
    with store.transaction() as connection:
        connection.execute(update(EvidenceRow).values(document=zlib.compress(b"forged")))
    with pytest.raises(InfrastructureError, match="does not match its digest"):
        results.load_evidence(store, claim.run_id)


def test_a_failed_transaction_keeps_nothing(store):
    """An exception inside the block rolls everything back."""
    with pytest.raises(RuntimeError), store.transaction() as connection:
        acceptance._accept_all(connection, [Arrival(a_submission(), PLAN, "live", Waiter())], LIMITS, "t")
        raise RuntimeError("power cut")
    assert count(store, SubmissionRow) == 0


def test_every_change_is_in_the_audit_trail_in_order(store):
    """Accepted, claimed, done, judged, verdict: one event each."""
    accept(store, a_submission())
    finish(store)
    with store.transaction() as connection:
        kinds = connection.execute(select(EventRow.kind).order_by(EventRow.id)).scalars().all()
    assert kinds == ["accepted", "run_claimed", "run_done", "judge_claimed", "verdict"]


def test_many_that_come_together(store):
    """One transaction gives each its own answer: new, repeated within the batch and before it, conflicting, refused.

    Limits count what is stored already and what came before in the batch; a refusal stores nothing, and one learner's
    is nobody else's.
    """
    first = accept(store, a_submission(1))
    limits = IntakeLimits(max_queued=4, learner_per_hour=3)
    together = [
        a_submission(1),
        a_submission(2),
        a_submission(2),
        a_submission(2, sha="1"),
        a_submission(3),
        a_submission(4),
        a_submission(5, learner="bob"),
        a_submission(6, learner="cem"),
    ]
    arrivals = [Arrival(submission, PLAN, "live", Waiter(task_id=f"t{n}")) for n, submission in enumerate(together)]
    outcomes = acceptance.accept_all(store, arrivals, limits, "test")
    assert [type(outcome) for outcome in outcomes] == [
        Repeated,
        Accepted,
        Repeated,
        Conflicting,
        Accepted,
        Refused,
        Accepted,
        Refused,
    ]
    assert (outcomes[5].code, outcomes[7].code) == ("queue.rate_limited", "queue.full")
    assert outcomes[0] == Repeated(first.run_id, None)
    assert outcomes[2] == Repeated(outcomes[1].run_id, None)
    assert outcomes[3] == Conflicting(Content.of(a_submission(2)))
    assert count(store, SubmissionRow) == count(store, RunRow) == 4
    assert count(store, EventRow, EventRow.kind == "accepted") == 4


@pytest.mark.parametrize(("threads", "size"), [(20, 1), (4, 20)], ids=["one id", "batches"])
def test_what_comes_several_times_at_once_is_accepted_once(store, threads, size):
    """Whoever collides with another transaction, alone or in a batch, is a repetition; it costs nothing but time."""

    def take(number):
        submissions = [a_submission(n, learner=f"l{n}") for n in range(size)]
        came = [Arrival(one, PLAN, "live", Waiter(task_id=f"{number}-{one.submission_id}")) for one in submissions]
        return acceptance.accept_all(store, came, LIMITS, "t")

    outcomes = Counter(type(outcome) for found in at_once(threads, take) for outcome in found)
    assert outcomes == {Accepted: size, Repeated: (threads - 1) * size}
    assert count(store, SubmissionRow) == count(store, RunRow) == size
