"""What has been kept for long enough is removed, all else stays; and one row that cannot go stops no other."""

import hashlib
import threading
import time

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import update

from grader_service.errors import InfrastructureError
from grader_service.model.regrade import Selection
from grader_service.retry_policy import RetryPolicy
from grader_service.service.event_figures import Tally, count_old
from grader_service.service.metrics import StoreCollector
from grader_service.service.retaining import Keeping, Retention
from grader_service.store import leases, operations, outbox, regrade_states, removal, results, retention, sweep
from grader_service.store.attempts import attempt_number
from grader_service.store.cohorts import candidates
from grader_service.store.one_by_one import RowsLeft
from grader_service.store.references import unreferenced, with_artifact
from grader_service.store.submissions import hold_submission
from grader_service.store.tables import BlobRow, EventRow, EvidenceRow, OutboxRow, RunRow, SubmissionRow, VerdictRow
from tests.regrade.deps import read
from tests.services.postgres_server import somebody_waits
from tests.store.aged import OF_SUBMISSIONS, a_batch, age, brought_again, graded, refuse_changes, two_graphs
from tests.store.factories import a_submission, accept, count
from tests.waiting import wait_for

MOST = 100


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Events are counted as soon as they are there."""
    monkeypatch.setattr(operations, "_SETTLED_S", -60.0)


def run_of(store, submission_id):
    (found,) = [run for run, of in read(store, RunRow.run_id, RunRow.submission_id) if of == submission_id]
    return found


def put(store, table, **values):
    with store.transaction() as connection:
        connection.execute(update(table).values(**values))


class TestEvidence:
    """Documents go, and what they alone refer to; that a run was measured stays known."""

    def test_old_goes_and_young_stays(self, store):
        """With the graphs to which nothing refers any more."""
        old, young = graded(store, 1, graph=b"old"), graded(store, 2, graph=b"young", learner="bob")
        age(store, EvidenceRow, "created_at", 31, EvidenceRow.run_id == run_of(store, old))
        assert retention.remove_evidence(store, 30, MOST) == 1
        assert results.load_evidence(store, run_of(store, old)) is None
        assert results.load_evidence(store, run_of(store, young)) is not None
        assert read(store, BlobRow.sha256) == [(hashlib.sha256(b"young").hexdigest(),)]
        assert retention.remove_evidence(store, 30, MOST) == 0

    def test_a_graph_stays_for_the_other_run(self, store):
        """Two runs that brought the same one share it."""
        old, young = graded(store, 1), graded(store, 2, learner="bob")
        for one, left in ((old, 1), (young, 0)):
            age(store, EvidenceRow, "created_at", 31, EvidenceRow.run_id == run_of(store, one))
            assert retention.remove_evidence(store, 30, MOST) == 1
            assert count(store, BlobRow) == left

    def test_attempts_still_count(self, store):
        """Whoever waits for two years gets no chances back."""
        graded(store, 1)
        age(store, EvidenceRow, "created_at", 31)
        retention.remove_evidence(store, 30, MOST)
        accept(store, a_submission(2))
        assert attempt_number(store, "s:2") == 2

    def test_planning_knows_that_it_is_gone(self, store):
        """So that a re-grade runs what it cannot judge."""
        graded(store, 1)
        assert [one.evidence for one in candidates(store, Selection())] == ["measured"]
        age(store, EvidenceRow, "created_at", 31)
        retention.remove_evidence(store, 30, MOST)
        assert [one.evidence for one in candidates(store, Selection())] == [None]

    def test_a_batch_may_yet_judge_from_it(self, store):
        """Until it is ended."""
        batch_id = a_batch(store, graded(store, 1))
        age(store, EvidenceRow, "created_at", 31)
        assert retention.remove_evidence(store, 30, MOST) == 0
        regrade_states.cancel(store, batch_id, "ann")
        assert retention.remove_evidence(store, 30, MOST) == 1

    def test_a_run_that_waits_for_an_operator_needs_it(self, store):
        """It is only judged, when it is tried again."""
        graded(store, 1)
        age(store, EvidenceRow, "created_at", 31)
        put(store, RunRow, state="needs_attention")
        assert retention.remove_evidence(store, 30, MOST) == 0
        put(store, RunRow, state="done")
        assert retention.remove_evidence(store, 30, MOST) == 1

    def test_one_row_that_cannot_go_stops_no_other(self, store):
        """It stays, and is named."""
        bad, good = graded(store, 1), graded(store, 2, learner="bob")
        age(store, EvidenceRow, "created_at", 31)
        refuse_changes(store, "evidence", "run_id", run_of(store, bad))
        with pytest.raises(RowsLeft, match=rf"1 of the runs .*{run_of(store, bad)} .*this row is damaged"):
            retention.remove_evidence(store, 30, MOST)
        assert results.load_evidence(store, run_of(store, good)) is None
        assert results.load_evidence(store, run_of(store, bad)) is not None


class TestAnswers:
    """Those that were delivered."""

    def test_only_delivered_ones_go(self, store):
        """Whoever has not got theirs still waits for it, and verdicts stay."""
        for number in (1, 2, 3):
            graded(store, number, learner=f"l{number}")
        first, second, _ = sorted(message.id for message in outbox.due(store))
        outbox.delivered(store, [first, second])
        age(store, OutboxRow, "delivered_at", 31, OutboxRow.id == first)
        assert retention.remove_answers(store, 30, MOST) == 1
        assert (count(store, OutboxRow), count(store, VerdictRow)) == (2, 3)

    def test_an_answer_that_cannot_be_sent_again_is_asked_for_again(self, store):
        """The same message is answered from the verdict."""
        submission_id = graded(store, 1)
        outbox.delivered(store, [message.id for message in outbox.due(store)])
        age(store, OutboxRow, "delivered_at", 31)
        retention.remove_answers(store, 30, MOST)
        repeated = accept(store, a_submission(1))
        assert repeated.verdict_id == read(store, VerdictRow.verdict_id)[0][0]
        assert submission_id == "s:1"


class TestVerdicts:
    """A submission goes as a whole."""

    def test_nothing_of_it_is_left_but_its_events(self, store):
        """And all of the other stays."""
        graded(store, 1, graph=b"1")
        before = {table: count(store, table) for table in OF_SUBMISSIONS}
        old = graded(store, 2, graph=b"2", learner="bob")
        age(store, VerdictRow, "created_at", 31, VerdictRow.submission_id == old)
        assert retention.remove_verdicts(store, 30, MOST) == 1
        assert {table: count(store, table) for table in OF_SUBMISSIONS} == before
        assert count(store, EventRow, EventRow.submission_id == old) > 3

    def test_what_is_being_graded_again_stays(self, store):
        """By a batch, until it is ended; then its item goes, too."""
        old = graded(store, 1)
        batch_id = a_batch(store, old)
        age(store, VerdictRow, "created_at", 31)
        assert retention.remove_verdicts(store, 30, MOST) == 0
        regrade_states.discard(store, batch_id, "ann")
        assert retention.remove_verdicts(store, 30, MOST) == 1
        assert count(store, SubmissionRow) == 0


class TestTogether:
    """What others do in the same moment, each in a transaction of its own: PostgreSQL only."""

    @pytest.fixture
    def store(self, postgres_store):
        """One database."""
        return postgres_store

    def test_what_somebody_asks_for_again_is_passed_over(self, store):
        """It comes in the next round, and nobody waits for it."""
        wanted = graded(store, 1)
        graded(store, 2, learner="bob")
        age(store, VerdictRow, "created_at", 31)
        age(store, EvidenceRow, "created_at", 31)
        with store.transaction() as other:
            hold_submission(other, wanted)
            assert retention.remove_evidence(store, 30, MOST) == 1
            assert retention.remove_verdicts(store, 30, MOST) == 1
        assert read(store, SubmissionRow.submission_id) == [(wanted,)]
        assert retention.remove_verdicts(store, 30, MOST) == 1

    def test_two_who_let_go_of_a_graph_at_once(self, store):
        """The second one sees that nobody needs it any more."""
        first, second = (run_of(store, graded(store, number, learner=f"l{number}")) for number in (1, 2))
        with store.transaction() as one:
            removal.hold_blobs(one, RunRow.run_id == first)
            removal.empty_evidence(one, first)
            done = threading.Thread(target=self.emptied, args=(store, second))
            done.start()
            wait_for(lambda: somebody_waits(store.engine), 10)
        done.join(10)
        assert count(store, BlobRow) == 0

    def emptied(self, store, run_id):
        with store.transaction() as connection:
            removal.hold_blobs(connection, RunRow.run_id == run_id)
            removal.empty_evidence(connection, run_id)

    @pytest.mark.parametrize("remove", [retention.remove_evidence, retention.remove_verdicts])
    def test_graphs_are_held_in_the_order_in_which_runs_bring_them(self, store, remove):
        """Those of all that goes before the first of it is removed."""
        graphs = two_graphs()
        for number, graph in enumerate(reversed(graphs), start=1):
            graded(store, number, learner=f"l{number}", graph=graph)
        age(store, EvidenceRow, "created_at", 31)
        age(store, VerdictRow, "created_at", 31)
        assert brought_again(store, graphs, lambda: remove(store, 30, MOST)) == 2
        assert count(store, BlobRow) == 0


class TestArtifacts:
    """Which ones nothing refers to."""

    SHA = "0" * 64

    def test_old_ones_are_let_go(self, store):
        """And their submissions say so."""
        old = graded(store, 1)
        assert unreferenced(store, [self.SHA], days=30) == set()
        age(store, SubmissionRow, "received_at", 31)
        assert unreferenced(store, [self.SHA]) == set()  # kept for ever
        assert with_artifact(store, [old]) == [old]
        assert unreferenced(store, [self.SHA], days=30) == {self.SHA}
        assert with_artifact(store, [old]) == []
        assert [one.artifact_kept for one in candidates(store, Selection())] == [False]
        assert unreferenced(store, [self.SHA], days=30) == {self.SHA}  # where its file could not be removed

    def test_the_same_bytes_of_a_younger_one_stay(self, store):
        """Neither of the two lost theirs."""
        old, young = graded(store, 1), graded(store, 2, learner="bob")
        age(store, SubmissionRow, "received_at", 31, SubmissionRow.submission_id == old)
        assert unreferenced(store, [self.SHA], days=30) == set()
        assert with_artifact(store, [old, young]) == [old, young]

    def test_what_runs_or_may_be_run_stays(self, store):
        """A run that is not over, a batch that is not ended."""
        accept(store, a_submission(1))
        age(store, SubmissionRow, "received_at", 31)
        assert unreferenced(store, [self.SHA], days=30) == set()
        put(store, RunRow, state="done")
        graded(store, 2, sha="1")
        age(store, SubmissionRow, "received_at", 31)
        batch_id = a_batch(store, "s:2")
        assert unreferenced(store, [self.SHA, "1" * 64], days=30) == {self.SHA}
        regrade_states.cancel(store, batch_id, "ann")
        assert unreferenced(store, ["1" * 64], days=30) == {"1" * 64}


def scraped(store):
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    lines = generate_latest(registry).decode().splitlines()
    ours = ("grader_events", "grader_verdicts", "grader_stage", "grader_device_seconds_total", "grader_check")
    return [line for line in lines if line.startswith(ours)]


class TestEvents:
    """They go once they are counted."""

    def test_figures_stay_when_events_go(self, store):
        """An exporter that starts afterwards says what one says that was there before."""
        for number in (1, 2):
            graded(store, number, learner=f"l{number}")
        age(store, EventRow, "at", 31)
        accept(store, a_submission(3))  # under way over the end of what is removed
        before = scraped(store)
        assert retention.remove_events(store, 30, MOST) == 0  # not counted yet
        removed = count(store, EventRow, EventRow.submission_id != "s:3")
        assert count_old(store) == removed
        assert count_old(store) == 0
        assert retention.remove_events(store, 30, MOST) == removed - 1  # the last one keeps ids from coming again
        assert scraped(store) == before
        assert retention.remove_events(store, 30, MOST) == 0
        assert count(store, EventRow, EventRow.submission_id != "s:3") == 1

    def test_an_exporter_goes_on(self, store):
        """One that was there, and one that missed what was removed meanwhile."""
        registry, late = CollectorRegistry(), CollectorRegistry()
        for one in (registry, late):
            one.register(StoreCollector(store))
            generate_latest(one)
        graded(store, 1)
        generate_latest(registry)
        age(store, EventRow, "at", 31)
        count_old(store)
        retention.remove_events(store, 30, MOST)
        graded(store, 2, learner="bob")
        counted = [
            [
                line
                for line in generate_latest(one).decode().splitlines()
                if line.startswith(("grader_ev", "grader_ver"))
            ]
            for one in (registry, late)
        ]
        assert counted[0] == counted[1]
        assert b'grader_events_total{kind="verdict"} 2.0' in generate_latest(late)

    def test_what_is_younger_than_a_day_is_not_counted_yet(self, store):
        """An older one may still come: ids are given out before transactions end."""
        graded(store, 1)
        graded(store, 2, learner="bob")
        ids = sorted(number for (number,) in read(store, EventRow.id))
        age(store, EventRow, "at", 2, EventRow.id != ids[2])
        assert count_old(store) == 2

    def test_totals_of_a_version_that_counted_otherwise_are_left_behind(self):
        """They are nothing to go on from."""
        tally = Tally.read(Tally().write())
        assert tally == Tally()
        tally.kinds["verdict"] = 3
        assert Tally.read(tally.write()) == tally
        tally.edges = (1.0, 2.0)
        assert Tally.read(tally.write()) == Tally()
        assert Tally.read('{"kinds": 7}') == Tally()


class TestTheChore:
    """What a judge does every few minutes."""

    def test_everything_that_is_old_goes(self, store):
        """More than one step removes."""
        for number in range(1, 6):
            graded(store, number, learner=f"l{number}")
        outbox.delivered(store, [message.id for message in outbox.due(store)])
        for table, column in ((EvidenceRow, "created_at"), (OutboxRow, "delivered_at"), (EventRow, "at")):
            age(store, table, column, 31)
        Retention(store, Keeping(evidence_days=30, event_days=30, answer_days=30), at_once=2).look()
        assert count(store, EvidenceRow, EvidenceRow.removed_at.is_(None)) == 0
        assert (count(store, EventRow), count(store, OutboxRow), count(store, VerdictRow)) == (1, 0, 5)
        age(store, VerdictRow, "created_at", 31)
        Retention(store, Keeping(verdict_days=30), at_once=2).look()
        assert [count(store, table) for table in OF_SUBMISSIONS] == [0] * len(OF_SUBMISSIONS)

    def test_nothing_goes_where_everything_is_kept_for_ever(self, store):
        """But events are counted, so that an exporter starts soon."""
        graded(store, 1)
        for table, column in ((EvidenceRow, "created_at"), (VerdictRow, "created_at"), (EventRow, "at")):
            age(store, table, column, 9999)
        before = {table: count(store, table) for table in (*OF_SUBMISSIONS, EventRow)}
        Retention(store, Keeping()).look()
        assert {table: count(store, table) for table in (*OF_SUBMISSIONS, EventRow)} == before
        assert count_old(store) == 0

    def test_what_fails_stops_nothing_else(self, store):
        """Evidence that cannot go is said once, and all other and events went all the same, step by step."""
        bad = graded(store, 1)
        for number in range(2, 8):
            graded(store, number, learner=f"l{number}")
        for table, column in ((EvidenceRow, "created_at"), (EventRow, "at")):
            age(store, table, column, 31)
        refuse_changes(store, "evidence", "run_id", run_of(store, bad))
        with pytest.raises(InfrastructureError, match=rf"1 of the runs .*{run_of(store, bad)}"):
            Retention(store, Keeping(evidence_days=30, event_days=30), at_once=1).look()
        assert count(store, EventRow) == 1
        assert count(store, EvidenceRow, EvidenceRow.removed_at.is_(None)) == 1

    def test_events_that_cannot_be_counted_stay_and_stop_nothing_else(self, store, monkeypatch):
        """They are said, too."""

        def broken(tally, event):
            raise KeyError(event.kind)

        graded(store, 1)
        for table, column in ((EvidenceRow, "created_at"), (EventRow, "at")):
            age(store, table, column, 31)
        monkeypatch.setattr(Tally, "take", broken)
        before = count(store, EventRow)
        with pytest.raises(InfrastructureError, match="KeyError"):
            Retention(store, Keeping(evidence_days=30, event_days=30)).look()
        assert count(store, EventRow) == before
        assert count(store, EvidenceRow, EvidenceRow.removed_at.is_(None)) == 0

    def test_its_time_is_bounded(self, store):
        """What is left comes in the next round."""
        for number in (1, 2, 3):
            graded(store, number, learner=f"l{number}")
        age(store, EvidenceRow, "created_at", 31)
        times = iter(range(0, 1000, 6))
        Retention(store, Keeping(evidence_days=30), lambda: next(times), at_once=1).look()
        assert count(store, EvidenceRow, EvidenceRow.removed_at.is_(None)) == 2


class TestSweeps:
    """One bad row."""

    def test_a_lease_that_cannot_be_taken_back_holds_up_no_other(self, store):
        """The worker of three runs is gone, and one of these cannot be written to."""
        claims = []
        for number in (1, 2, 3):
            accept(store, a_submission(number, learner=f"l{number}"))
            claims.append(leases.claim(store, "run", "host/GPU-1/abc", 0.01))
        time.sleep(0.05)
        bad = claims[1].run_id
        refuse_changes(store, "run", "run_id", bad)
        with pytest.raises(RowsLeft, match=rf"1 of the runs whose lease ended .*{bad}"):
            sweep.expire_leases(store, RetryPolicy(max_attempts=3, delay_s=0.0))
        states = dict(read(store, RunRow.run_id, RunRow.state))
        assert states == {claim.run_id: "running" if claim.run_id == bad else "run_queued" for claim in claims}
