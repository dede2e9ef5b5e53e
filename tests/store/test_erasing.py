"""Everything about a learner goes, nothing of anybody else, and a note is left."""

import base64
import hashlib
import json
import sqlite3
import threading

import pytest
from sqlalchemy import JSON, delete, insert, literal, select, table, text, update

from checks.registry import Registry
from grader_service.model.regrade import ItemState
from grader_service.retry_policy import RetryPolicy
from grader_service.service.intake import IntakeDeps
from grader_service.signer.signatures import Signer
from grader_service.store import (
    dead_letters,
    erasing,
    leases,
    operations,
    outbox,
    regrade_states,
    regrade_work,
    results,
)
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.erasing import ERASED, Erasure
from grader_service.store.events import REFUSED
from grader_service.store.references import unreferenced
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.tables import BlobRow, EventRow, OutboxRow, RunRow, SubmissionRow, table_of
from tests.factories import message
from tests.receiving import receive
from tests.regrade.deps import overwrite, read
from tests.services.postgres_server import somebody_waits
from tests.store.aged import OF_SUBMISSIONS, a_batch, brought_again, graded, two_graphs
from tests.store.factories import a_submission, accept, count
from tests.waiting import wait_for

ANN = "ann@example.org"


@pytest.fixture
def intake(store, tmp_path):
    """Takes messages in."""
    artifacts = ArtifactStore(f"file://{tmp_path / 'artifacts'}")
    return IntakeDeps(store, artifacts, Registry(), Signer.from_folder(tmp_path / "keys"))


def noted(done: Erasure) -> str:
    return json.dumps({"learner": done.learner_sha256, "removed": dict(done.removed)})


def erase(store, learner=ANN):
    return json.loads(erasing.erase(store, learner, "operator:eve", noted))


def dump(store):
    """Every value of every table, as text."""
    with store.engine.connect() as connection:
        if store.is_sqlite:
            raw = connection.connection.driver_connection
            assert isinstance(raw, sqlite3.Connection)
            return "\n".join(raw.iterdump())
        names = "select tablename from pg_tables where schemaname = current_schema()"
        tables = connection.exec_driver_sql(names).scalars().all()
        every = (select(text("*")).select_from(table(name)) for name in tables)
        return "\n".join(str(row) for one in every for row in connection.execute(one))


def a_message(learner):
    """As Celery sends it."""
    body = json.dumps([[{"submission_id": "s:9", "learner": learner}], {}, {}]).encode()
    return json.dumps({"body": base64.b64encode(body).decode(), "headers": {}}).encode()


def test_everything_goes_and_nothing_of_others(store, intake):
    """Graded, waiting and running submissions, whatever was sent and refused, in every table."""
    mine = [graded(store, number, learner=ANN, graph=b"%d" % number) for number in (1, 2)]
    graded(store, 3, learner="bob", graph=b"1")
    before = {table: count(store, table) for table in OF_SUBMISSIONS}
    accept(store, a_submission(4, learner=ANN))
    leases.claim(store, "run", "host/GPU-1/abc", 60)
    accept(store, a_submission(5, learner=ANN))
    for number, learner in ((7, ANN), (8, "bob")):
        dead_letters.keep(store, a_message(learner), "live", None, "the grader failed on it")
        body = {"submission_id": f"s:{number}", "lab": "none", "learner": learner, "artifact": {}}
        assert receive(intake, body, "live", "task").kind == "refused"
    batch_id = a_batch(store, "s:1", learners=(ANN, "bob"), submissions=("s:1", "s:3"))
    note = erase(store)
    assert note["learner"] == hashlib.sha256(ANN.encode()).hexdigest()
    told = {"submissions": 4, "runs": 4, "evidence": 2, "verdicts": 2, "answers": 3, "waiters": 2, "blobs": 1}
    assert note["removed"] == told | {
        "regrade_items": 1, "selections": 2, "dead_letters": 1, "events_stripped": note["removed"]["events_stripped"],
    }  # fmt: skip
    left = {table: count(store, table) for table in OF_SUBMISSIONS}
    of_others = {table: number - (2 if number > 2 else 1) for table, number in before.items()}
    of_others |= {OutboxRow: 2, BlobRow: 1}  # bob's refusal; the graph that bob's run brought as well
    assert left == of_others
    selection = read(store, RegradeBatchRow.selection)[0][0]
    assert (selection["learners"], selection["submissions"]) == ([ERASED, "bob"], [ERASED, "s:3"])
    everything = dump(store)
    for gone in (ANN, base64.b64encode(ANN.encode()).decode()[:8], *mine, "s:4", "s:5", "s:7"):
        assert gone not in everything.replace("bob", ""), gone
    assert len(dead_letters.letters(store)) == 1
    assert regrade_states.cancel(store, batch_id, "ann") is None


@pytest.mark.parametrize(
    "message",
    [
        json.dumps({"learner": "José"}).encode(),
        json.dumps({"learner": "José"}, ensure_ascii=False).encode(),
        b'{"learner" : "Jos\xc3\xa9", "cut',
        json.dumps({"body": json.dumps([[{"learner": "José"}], {}])}).encode(),
        a_message("José"),
        a_message("José")[:-24],
    ],
)
def test_what_names_a_learner(message):
    """Spelled either way, in a body that is encoded or not, and cut off."""
    assert erasing.names(message, "José")
    assert not erasing.names(message, "Jos")


def test_a_hostile_message_stops_no_erasure(store):
    """Set aside because nobody could read it."""
    dead_letters.keep(store, b'{"body": ' + b"[" * 100_000, "live", None, "the message is not JSON")
    dead_letters.keep(store, b'{"body": "' + b"A" * 5, "live", None, "the message is not JSON")
    graded(store, 1, learner=ANN)
    assert erase(store)["removed"]["submissions"] == 1
    assert len(dead_letters.letters(store)) == 2


def test_a_run_of_a_batch_that_is_under_way(store):
    """Whoever has it finds that it is no longer theirs."""
    batch_id = a_batch(store, graded(store, 1, learner=ANN))
    regrade_states.start(store, batch_id, "ann")
    ((item_id,),) = read(store, RegradeItemRow.id)
    with store.transaction() as connection:
        connection.execute(update(RunRow).values(item_id=item_id, state="run_queued"))
    claim = leases.claim(store, "run", "host/GPU-1/abc", 60)
    assert claim.item_id == item_id
    erase(store)
    assert leases.fail(store, claim, "aborted", RetryPolicy(max_attempts=3, delay_s=0.0)) is None
    assert not leases.give_back(store, claim, "told to stop")


def test_figures_stay(store, monkeypatch):
    """Events keep what figures are made of, and nothing of the learner."""
    monkeypatch.setattr(operations, "_SETTLED_S", -60.0)
    graded(store, 1, learner=ANN)
    before = [(event.kind, event.detail.get("status")) for event in operations.events_after(store, -1)]
    erase(store)
    after = [(event.kind, event.detail.get("status")) for event in operations.events_after(store, -1)]
    assert after == [*before, (ERASED, None)]
    (said,) = [detail for kind, detail in read(store, EventRow.kind, EventRow.detail) if kind == ERASED]
    assert said["submissions"] == 1
    assert said["erasure"].startswith("er-")


def test_who_is_at_work_on_it_drops_it(store):
    """A runner, and a judge: their claims do not hold, and they leave no event that names it."""
    accept(store, a_submission(1, learner=ANN))
    run = leases.claim(store, "run", "host/GPU-1/abc", 60)
    erase(store)
    assert not leases.renew(store, run, 60)
    assert not results.store_evidence(store, run, "evidence", b"{}", {})
    assert leases.fail(store, run, "aborted", RetryPolicy(max_attempts=3, delay_s=0.0)) is None
    assert not leases.give_back(store, run, "told to stop")
    assert count(store, RunRow) == 0
    assert count(store, EventRow, EventRow.submission_id == "s:1") == 0


def test_a_batch_goes_on_without_it(store):
    """A running batch whose last open item goes is finished by the next sweep."""
    batch_id = a_batch(store, graded(store, 1, learner=ANN))
    regrade_states.start(store, batch_id, "ann")
    erase(store)
    assert regrade_work.settle_all(store, "sweeper") == 1
    assert count(store, RegradeItemRow, RegradeItemRow.state == ItemState.WAITING.value) == 0


def test_its_artifact_is_let_go(store):
    """Unless somebody else handed in the same bytes."""
    graded(store, 1, learner=ANN)
    graded(store, 2, learner=ANN, sha="1")
    graded(store, 3, learner="bob")
    erase(store)
    assert unreferenced(store, ["0" * 64, "1" * 64]) == {"1" * 64}


def test_one_that_broke_off_goes_on(store, monkeypatch):
    """Its note counts what went before as well."""
    for number in (1, 2, 3):
        graded(store, number, learner=ANN)
    monkeypatch.setattr(erasing, "_AT_ONCE", 1)
    remove, done = erasing.remove_submission, []

    def broken(connection, submission_id):
        if len(done) == 1:
            raise RuntimeError("power cut")
        done.append(submission_id)
        return remove(connection, submission_id)

    monkeypatch.setattr(erasing, "remove_submission", broken)
    with pytest.raises(RuntimeError):
        erase(store)
    assert (count(store, SubmissionRow), erasing.notes_about(store, ANN)) == (2, [])
    monkeypatch.setattr(erasing, "remove_submission", remove)
    assert erase(store)["removed"]["submissions"] == 3
    assert len(erasing.notes_about(store, ANN)) == 1


def test_once_more(store):
    """There is nothing left; it is another erasure with a note of its own."""
    graded(store, 1, learner=ANN)
    erase(store)
    assert erase(store)["removed"] == {}
    assert [note["removed"].get("submissions", 0) for note in erasing.notes_about(store, ANN)] == [1, 0]
    assert erasing.notes_about(store, "bob") == []


def test_an_answer_whose_verdict_is_gone_is_dropped(store):
    """Somebody asked once more in the moment in which it was removed."""
    graded(store, 1)
    with store.transaction() as connection:
        connection.execute(update(OutboxRow).values(verdict_id="gone"))
    graded(store, 2, learner="bob")
    assert [message.task_id for message in outbox.due(store)] == ["task-2"]
    assert count(store, OutboxRow) == 1


def test_an_id_that_intake_made_safe_to_show(store, intake):
    """It is found as it was sent: in submissions and selections as they are stored, in dead letters as they came."""
    sent = "anna\u200f@example.org"
    graded(store, 3, learner="bob")
    assert receive(intake, message("s:1", "x = 1", learner=sent), "live", "task").kind == "accepted"
    refused = {"submission_id": "s:2", "lab": "none", "learner": sent, "artifact": {}}
    assert receive(intake, refused, "live", "task").kind == "refused"
    dead_letters.keep(store, a_message(sent), "live", None, "the grader failed on it")
    a_batch(store, "s:3", learners=(sent,))
    assert erasing.submissions_of(store, sent) == 1
    removed = erase(store, sent)["removed"]
    assert {kind: removed.get(kind) for kind in ("submissions", "answers", "selections", "dead_letters")} == {
        "submissions": 1, "answers": 1, "selections": 1, "dead_letters": 1,
    }  # fmt: skip
    assert "anna" not in dump(store)
    assert len(erasing.notes_about(store, sent)) == 1


def test_an_id_that_is_no_text_is_looked_for(store):
    """A shell gives bytes that are no UTF-8 as lone surrogates; JSON may hold some as well."""
    dead_letters.keep(store, a_message("ann\udcff"), "live", None, "the grader failed on it")
    assert erase(store, "ann\udcff")["removed"] == {"dead_letters": 1}


def test_refusals_of_others_stay(store, intake):
    """Also where neither message had an id that could be answered with, or both had the same."""
    for learner in (ANN, "bob"):
        for submission_id in ("no id", "s:1"):
            body = {"submission_id": submission_id, "lab": "none", "learner": learner, "artifact": {}}
            assert receive(intake, body, "live", f"{learner} {submission_id}").kind == "refused"
    assert erase(store)["removed"] == {"answers": 2, "events_stripped": 2}
    assert [message.task_id for message in outbox.due(store)] == ["bob no id", "bob s:1"]


def test_a_number_that_was_given_to_another_answer(store, intake):
    """SQLite gives the number of the last answer again, once that is removed."""
    refused = {"submission_id": "no id", "lab": "none", "artifact": {}}
    assert receive(intake, refused | {"learner": ANN}, "live", "ann").kind == "refused"
    ((number,),) = read(store, OutboxRow.id)
    with store.transaction() as connection:
        connection.execute(delete(OutboxRow))
    assert receive(intake, refused | {"learner": "bob"}, "live", "bob").kind == "refused"
    overwrite(store, OutboxRow, id=number)
    assert erase(store)["removed"] == {"events_stripped": 1}
    assert [message.task_id for message in outbox.due(store)] == ["bob"]


def test_who_was_refused_often(store):
    """More often than a statement has room for parameters."""
    often = 70_000
    number = select(literal(1).label("number")).cte(recursive=True)
    number = number.union_all(select(number.c.number + 1).where(number.c.number < often))
    detail = literal({"learner": ANN, "letter": 0, "verdict_id": "v"}, JSON)
    refused = select(literal(0.0), literal(REFUSED), literal("intake"), detail)
    columns = ["at", "kind", "actor", "detail"]
    with store.transaction() as connection:
        connection.execute(insert(table_of(EventRow)).from_select(columns, refused.select_from(number)))
    assert erase(store)["removed"] == {"events_stripped": often}
    assert erase(store)["removed"] == {}


class TestTogether:
    """What others do in the same moment, each in a transaction of its own: PostgreSQL only."""

    @pytest.fixture
    def store(self, postgres_store):
        """One database."""
        return postgres_store

    def test_two_whose_ids_a_selection_names(self, store):
        """Neither comes back while the other is erased."""
        a_batch(store, graded(store, 3, learner="eve"), learners=(ANN, "bob"))
        other, meanwhile = self.erasing_bob(store)

        def while_other_waits(done):
            meanwhile()
            return noted(done)

        erasing.erase(store, ANN, "operator:eve", while_other_waits)
        other.join(60)
        assert read(store, RegradeBatchRow.selection)[0][0]["learners"] == [ERASED, ERASED]

    def test_two_whose_submissions_a_selection_names(self, store, monkeypatch):
        """Nor do theirs, where the batch holds no item of either."""
        for number, learner in enumerate((ANN, "bob", "eve"), start=1):
            graded(store, number, learner=learner)
        a_batch(store, "s:3", submissions=("s:1", "s:2"))
        other, meanwhile = self.erasing_bob(store)
        remove = erasing.remove_submission

        def while_other_waits(connection, submission_id):
            if submission_id == "s:1":
                meanwhile()
            return remove(connection, submission_id)

        monkeypatch.setattr(erasing, "remove_submission", while_other_waits)
        erase(store)
        other.join(60)
        assert read(store, RegradeBatchRow.selection)[0][0]["submissions"] == [ERASED, ERASED]

    def erasing_bob(self, store):
        """A thread that does it, and what starts it and returns once it waits or is done."""
        other = threading.Thread(target=erase, args=(store, "bob"))

        def start():
            other.start()
            wait_for(lambda: not other.is_alive() or somebody_waits(store.engine), 10)

        return other, start

    def test_batches_that_name_submissions_are_held_before_runs(self, store):
        """Whoever has such a batch gets what it holds of the learner as well."""
        run_id = read(store, RunRow.run_id, where=[RunRow.submission_id == graded(store, 1, learner=ANN)])[0][0]
        a_batch(store, graded(store, 2, learner="bob"), submissions=("s:1",))
        other = threading.Thread(target=erase, args=(store,))
        with store.transaction() as connection:
            connection.execute(select(RegradeBatchRow.batch_id).with_for_update()).one()
            other.start()
            wait_for(lambda: somebody_waits(store.engine), 10)
            connection.execute(select(RunRow.run_id).where(RunRow.run_id == run_id).with_for_update()).one()
        other.join(60)
        assert read(store, SubmissionRow.submission_id) == [("s:2",)]

    def test_graphs_are_held_in_the_order_in_which_runs_bring_them(self, store):
        """Those of all submissions before the first is removed."""
        graphs = two_graphs()
        for number, graph in enumerate(reversed(graphs), start=1):
            graded(store, number, learner=ANN, graph=graph)
        assert brought_again(store, graphs, lambda: erase(store))["removed"]["blobs"] == 2
