"""What platforms were told after a backup is in force again, and what was erased stays erased."""

import json
import os

import pytest
from sqlalchemy import insert, select, update

from checks.registry import Registry
from grader_service.backup import making
from grader_service.backup.journal import note_erasure
from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.model.base import neutralise
from grader_service.service.judge import JudgeDeps
from grader_service.signer.key_folder import rotate
from grader_service.store import attempts, backups, erasing, leases, operations, outbox, reconciling, results, reviews
from grader_service.store.acceptance import Repeated, run_row
from grader_service.store.clock import db_now
from grader_service.store.events import REFUSED, record
from grader_service.store.files import ARRIVING
from grader_service.store.outbox import Waiter, enqueue
from grader_service.store.reviews import AlreadyDecided
from grader_service.store.tables import EventRow, RunRow, VerdictRow
from tests.reviewing import decisions, handed_in, install, look
from tests.store.factories import PLAN, accept, count


def run_again(owned, submission_id, run_id):
    """Queues another run of a submission that was graded."""
    queued = run_row(run_id, submission_id, "ann", "c", PLAN, "live")
    with owned.store.transaction() as connection:
        connection.execute(insert(RunRow).values(**queued, created_at=db_now(), not_before=db_now()))
    owned.run()
    return owned.judge()


def put_in_force(owned, verdict_id):
    """As when a batch is reverted."""
    with owned.store.transaction() as connection:
        connection.execute(update(VerdictRow).values(current=False))
        connection.execute(update(VerdictRow).where(VerdictRow.verdict_id == verdict_id).values(current=True))
        enqueue(connection, verdict_id, Waiter("task-1"))


def test_what_was_answered_since_is_not_graded_again(owned, empty):
    """Posted again it is a repetition, answered with the very verdict that the platform had."""
    owned.grade(1)
    owned.back_up()
    owned.grade(2)
    owned.answer()
    done = empty.restore()
    assert (done.adopted.verdicts, done.adopted.answers) == (1, 1)  # that of the first was not sent yet
    assert empty.in_force() == owned.in_force()
    verdict_id, document = owned.in_force()["s:2"]
    outcome = accept(empty.store, owned.accept(2))
    assert isinstance(outcome, Repeated)
    assert outcome.verdict_id == verdict_id
    assert leases.claim(empty.store, "run", "host/GPU-1/abc", 60) is None
    due = {message.task_id: message.document for message in outbox.due(empty.store)}
    assert due["task-2"] == document
    assert done.checked.bad == []
    assert done.checked.by_key == {owned.signer.public_key: 2}


@pytest.mark.parametrize("seen", ["waiting", "running", "to be judged"])
def test_a_run_that_the_backup_saw_under_way_is_not_done_twice(owned, empty, seen):
    """It was answered since, and whoever waited gets that answer."""
    owned.accept(1)
    if seen == "waiting":
        owned.back_up()
        owned.run()
    elif seen == "running":
        claim = leases.claim(owned.store, "run", "host/GPU-1/abc", 60)
        owned.back_up()
        assert results.store_evidence(owned.store, claim, "measured", b"{}", {})
    else:
        owned.run()
        owned.back_up()
    owned.judge()
    owned.answer()
    done = empty.restore()
    assert (done.adopted.verdicts, done.adopted.answers) == (1, 1)
    assert empty.in_force() == owned.in_force()
    assert leases.claim(empty.store, "run", "host/GPU-1/abc", 60) is None
    assert leases.claim(empty.store, "judge", "judge", 60) is None
    assert [message.task_id for message in outbox.due(empty.store)] == ["task-1"]
    assert operations.queue_state(empty.store).counts == {("done", "live"): 1}


def test_what_was_not_answered_goes_on(owned, empty):
    """It waits where the backup saw it, or was never heard of: the platform is told which, and posts it again."""
    owned.grade(1)
    owned.accept(2)
    owned.back_up()
    owned.accept(3)
    empty.restore()
    found = reconciling.reconcile(empty.store, dict.fromkeys(("s:1", "s:2", "s:3")))
    assert [one.state for one in found] == ["answered", "waiting", "unknown"]
    assert [message.task_id for message in outbox.due(empty.store)] == ["task-1"]


def test_what_was_measured_since_counts_as_an_attempt(owned, empty):
    """The next attempt is the third, as it would have been."""
    owned.grade(1)
    owned.back_up()
    owned.grade(2)
    owned.answer()
    empty.restore()
    empty.accept(3)
    assert attempts.attempt_number(empty.store, "s:2") == attempts.attempt_number(owned.store, "s:2") == 2
    assert attempts.attempt_number(empty.store, "s:3") == 3


def test_the_verdict_in_force_is_the_one_that_was(owned, empty):
    """The newest; or an older one that came in force again, which the backup may know or not."""
    first = owned.grade(1)
    owned.answer()
    owned.back_up()
    second = run_again(owned, "s:1", "run-2")
    owned.answer()
    empty.restore()
    assert empty.in_force()["s:1"][0] == second
    put_in_force(owned, first)
    owned.answer()
    empty.restore(replace=True)
    assert empty.in_force()["s:1"][0] == first
    assert count(empty.store, VerdictRow) == 2
    owned.back_up()
    put_in_force(owned, second)
    owned.answer()
    empty.restore(replace=True)
    assert empty.in_force() == owned.in_force()


def test_answers_before_the_backup_are_in_it(owned, empty):
    """They are not sent again."""
    owned.grade(1)
    owned.answer()
    owned.back_up()
    done = empty.restore()
    assert (done.adopted.verdicts, done.adopted.answers, done.adopted.last_at) == (0, 0, None)
    assert outbox.due(empty.store) == []


def test_a_learner_who_was_erased_since_stays_erased(owned, empty):
    """And what they handed in afterwards stays; the note is the one that was signed."""
    owned.grade(1, learner="bob")
    owned.grade(2, learner="ann")
    owned.back_up()
    note = erasing.erase(owned.store, "bob", "eve", lambda done: json.dumps({"of": done.learner_sha256}))
    note_erasure(owned.place, erasing.digest_of("bob"), backups.now(owned.store), note)
    owned.grade(3, learner="bob")
    owned.answer()
    done = empty.restore()
    assert done.adopted.erased == 1
    assert set(empty.in_force()) == {"s:2", "s:3"}
    assert erasing.notes_about(empty.store, "bob") == [json.loads(note)]


def test_a_learner_whose_id_was_made_safe_to_show_stays_erased(owned, empty):
    """What stands in the journal is of the id as it is stored."""
    sent = "bob\u200f"
    owned.grade(1, learner=neutralise(sent))
    owned.back_up()
    note = erasing.erase(owned.store, sent, "eve", lambda done: json.dumps({"of": done.learner_sha256}))
    note_erasure(owned.place, json.loads(note)["of"], backups.now(owned.store), note)
    assert empty.restore().adopted.erased == 1
    assert empty.in_force() == {}
    assert erasing.notes_about(empty.store, sent) == [json.loads(note)]


def test_an_entry_of_a_newer_version_is_refused(owned, empty, monkeypatch):
    """Its rows may say what this version does not know."""
    owned.back_up()
    owned.grade(1)
    with monkeypatch.context() as newer:
        newer.setattr("grader_service.backup.journal.SCHEMA", "9999")
        owned.answer()
    with pytest.raises(ConfigurationError, match="an entry of schema 9999"):
        empty.restore()
    assert empty.store.schema() is None


def test_a_damaged_journal_is_not_passed_over(owned, empty, tmp_path):
    """It is named; a verdict might be missing."""
    owned.back_up()
    owned.grade(1)
    owned.answer()
    (file,) = (tmp_path / "backups" / "answers").iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(InfrastructureError, match=f"answers/{file.name} in .* is damaged"):
        empty.restore()
    assert empty.store.schema() is None  # told before anything was touched


def test_what_a_judge_was_writing_when_it_died_is_passed_over(owned, empty, tmp_path):
    """Its answer was not sent; a day later it goes with what no backup needs."""
    owned.back_up()
    owned.grade(1)
    owned.answer()
    left = tmp_path / "backups" / "answers" / f"{ARRIVING}x1y2"
    left.write_bytes(b"half of")
    assert empty.restore().adopted.verdicts == 1
    making.prune(owned.place, 1)
    assert left.exists()
    os.utime(left, (1, 1))
    making.prune(owned.place, 1)
    assert not left.exists()


def test_keys_that_came_since_are_known(owned, empty):
    """A backup names those of its day; the journal those that signed later."""
    owned.grade(1)
    owned.back_up()
    rotate(owned.folder / "keys")
    owned.grade(2)
    owned.answer()
    done = empty.restore()
    assert (done.checked.bad, len(done.checked.by_key)) == ([], 2)


def test_a_learner_who_was_only_refused_is_erased_again(owned, empty):
    """Events name them."""
    with owned.store.transaction() as connection:
        record(connection, REFUSED, "judge", learner="bob", letter=1, verdict_id="v")
    owned.back_up()
    note_erasure(owned.place, erasing.digest_of("bob"), backups.now(owned.store), "{}")
    assert empty.restore().adopted.erased == 1
    with empty.store.transaction() as connection:
        details = connection.execute(select(EventRow.detail).where(EventRow.kind == REFUSED)).scalars().all()
    assert details == [{}]


def test_decisions_of_people_since_are_in_force(owned, empty, tmp_path, monkeypatch):
    """Also as examples. What came to wait since is listed, and has no evidence any more."""
    install(tmp_path / "installed", monkeypatch)
    judge = JudgeDeps(owned.store, Registry(), owned.signer, "judge")
    decided, waits = handed_in(judge, 1), handed_in(judge, 2)
    owned.back_up()
    reviews.decide(owned.store, decided, None, accepted=True, reason="as it should be", actor="operator:eve")
    assert look(judge) == 1
    since = handed_in(judge, 3)
    owned.answer()
    empty.restore()
    assert empty.in_force() == owned.in_force()
    assert decisions(empty.store) == {decided: (True, "operator:eve")}
    assert {case.submission_id for case in reviews.open_cases(empty.store)} == {waits, since}
    assert list(reviews.labelled(empty.store)) == list(reviews.labelled(owned.store)) != []
    with pytest.raises(UsageError, match="run the submission again"):
        reviews.decide(empty.store, since, None, accepted=True, reason="as it should be", actor="operator:eve")
    with pytest.raises(AlreadyDecided):
        reviews.decide(empty.store, decided, None, accepted=False, reason="as it should be", actor="operator:eve")
