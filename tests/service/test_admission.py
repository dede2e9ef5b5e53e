"""Limits and conflicts come before work: nothing is fetched or stored for a message that is not let in."""

import hashlib
import os
import time

import pytest

from grader_service.errors import StoreUnavailable, SubmissionRejected, UsageError
from grader_service.model.regrade import Selection
from grader_service.regrade.planning import PlanRequest, plan
from grader_service.service import collecting, intake
from grader_service.service.collecting import Collector
from grader_service.service.intake import receive_all
from grader_service.store.acceptance import accept_all
from grader_service.store.admission import IntakeLimits, foresee
from grader_service.store.artifacts import FRESH_S, ArtifactStore
from grader_service.store.files import ARRIVING
from grader_service.store.references import unreferenced
from tests.receiving import receive
from tests.service.harness import QUICK, a_message
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

OLD_S = 2 * FRESH_S + 60


@pytest.fixture
def deps(local):
    """Dependencies of an intake."""
    return local._intake


@pytest.fixture
def sent(local, deps, monkeypatch):
    """Messages whose artifacts are fetched, and what was fetched."""
    folder = local.state_dir / "sent"
    folder.mkdir()
    deps.artifacts = local.artifacts = ArtifactStore(f"file://{local.state_dir}/artifacts", (f"file://{folder}",))
    fetched = []
    copy = ArtifactStore._copy

    def noted(self, source, target, sha256):
        fetched.append(sha256)
        return copy(self, source, target, sha256)

    monkeypatch.setattr(ArtifactStore, "_copy", noted)

    def message(submission_id, source=QUICK, *, there=True, **changes):
        digest = hashlib.sha256(source.encode()).hexdigest()
        if there:
            (folder / digest).write_text(source)
        artifact = {"filename": "s.py", "uri": f"file://{folder}/{digest}", "sha256": digest}
        return a_message(submission_id, artifact=artifact, **changes)

    message.fetched = fetched
    return message


def stored(local):
    """Artifacts that are kept."""
    return sorted(path.name for path in (local.state_dir / "artifacts").rglob("*") if path.is_file())


def answers(local):
    """Codes of refusals."""
    return [detail["code"] for kind, detail in local.events("s:1") if kind == "refused"]


class TestLimits:
    """By what stands in the database when the message comes."""

    @pytest.mark.parametrize(
        ("limits", "code"),
        [
            (IntakeLimits(max_queued=1), "queue.full"),
            (IntakeLimits(learner_per_hour=1), "queue.rate_limited"),
        ],
    )
    @pytest.mark.parametrize("inline", [True, False])
    def test_nothing_is_fetched_or_stored_beyond_them(self, local, deps, sent, limits, code, inline):
        """Neither by address nor in the message."""
        deps.limits = limits
        assert receive(deps, sent("s:0", learner="lea"), "live", None).kind == "accepted"
        before, fetched = stored(local), list(sent.fetched)
        other = f"{QUICK}# other\n"
        message = a_message("s:1", other, learner="lea") if inline else sent("s:1", other, learner="lea")
        assert receive(deps, message, "live", "task").kind == "refused"
        assert answers(local) == [code]
        assert (stored(local), sent.fetched) == (before, fetched)

    def test_in_production_each_names_its_learner(self, local, deps, sent):
        """Nobody's share could be told; nothing is fetched, and the id is free for a better message."""
        assert receive(deps, sent("s:0", learner=None), "live", None).kind == "accepted"
        deps.limits = IntakeLimits(learner_needed=True)
        assert receive(deps, sent("s:1", learner=None), "live", None).kind == "refused"
        ((kind, said),) = local.events("s:1")
        assert (kind, said["code"], len(sent.fetched)) == ("refused", "message.malformed", 1)
        assert "learner: learners take turns here" in said["feedback"]
        assert receive(deps, sent("s:1", learner="lea"), "live", None).kind == "accepted"
        repeated = receive(deps, sent("s:0", learner=None), "live", None)
        assert repeated.kind == "repeated", "it was taken before, and its verdict is to be had"

    def test_other_content_under_a_known_id_is_not_fetched(self, local, deps, sent):
        """The announced digest says that it is other content."""
        assert receive(deps, sent("s:1"), "live", None).kind == "accepted"
        before, fetched = stored(local), list(sent.fetched)
        assert receive(deps, sent("s:1", f"{QUICK}# other\n"), "live", "task").kind == "refused"
        assert answers(local) == ["submission.conflict"]
        assert (stored(local), sent.fetched) == (before, fetched)

    def test_a_repetition_is_not_fetched_again(self, deps, sent):
        """It is here."""
        kinds = [receive(deps, sent("s:1"), "live", None).kind for _ in range(3)]
        assert kinds == ["accepted", "repeated", "repeated"]
        assert len(sent.fetched) == 1

    def test_those_that_came_together_are_counted_together(self, local, deps, sent):
        """The first ones are let in; of the others nothing is fetched."""
        deps.limits = IntakeLimits(max_queued=2)
        came = [(sent(f"s:{number}", f"{QUICK}# {number}\n"), None) for number in range(4)]
        taken = receive_all(deps, came, "live")
        assert [one.kind for one in taken] == ["accepted", "accepted", "refused", "refused"]
        assert len(sent.fetched) == len(stored(local)) == 2

    def test_nothing_is_fetched_where_the_database_is_away(self, local, deps, sent, monkeypatch):
        """The messages come again."""

        def away(*_):
            raise StoreUnavailable("away")

        monkeypatch.setattr(intake, "foresee", away)
        with pytest.raises(StoreUnavailable):
            receive(deps, sent("s:1"), "live", None)
        assert (stored(local), sent.fetched) == ([], [])


class TestInBetween:
    """What is foreseen is looked at once more when it is accepted."""

    def test_a_place_that_was_taken_meanwhile(self, local, deps, sent, monkeypatch):
        """Refused all the same; what was fetched for it belongs to nobody, and is collected."""
        deps.limits = IntakeLimits(max_queued=1)

        def late(store, arrivals, limits, actor):
            monkeypatch.setattr(intake, "accept_all", accept_all)
            local.submit()
            return accept_all(store, arrivals, limits, actor)

        monkeypatch.setattr(intake, "accept_all", late)
        lost = f"{QUICK}# lost\n"
        assert receive(deps, sent("s:1", lost), "live", "task").kind == "refused"
        assert answers(local) == ["queue.full"]
        digest = hashlib.sha256(lost.encode()).hexdigest()
        assert unreferenced(local.store, stored(local)) == {digest}

    def test_nobody_is_accepted_without_an_artifact(self, local, deps, sent):
        """Twice the same in one company, whose artifact is not there: both are refused."""
        came = [(sent("s:1", there=False), None)] * 2
        assert [taken.kind for taken in receive_all(deps, came, "live")] == ["refused", "refused"]
        assert answers(local) == ["artifact.not_found"] * 2
        assert foresee(local.store, [], deps.limits) == []


class TestCollector:
    """What nobody refers to goes when it is old."""

    def all_shelves(self, local, days=0.0):
        collector = Collector(local.store, local.artifacts, days)
        for _ in range(256):
            collector.look()

    def aged(self, local, name, seconds=OLD_S):
        """A file of this age in the artifacts' store."""
        path = local.state_dir / "artifacts" / name[:2] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(b"x")
        then = time.time() - seconds
        os.utime(path, (then, then))
        return path

    def test_only_what_is_old_and_belongs_to_nobody(self, local):
        """Artifacts of submissions stay, sources of probes for as long as a run needs them."""
        submission_id = local.submit(lab="dali-classification-training", steps=["train"])
        theirs = stored(local)
        assert len(theirs) > 2
        for name in theirs:
            self.aged(local, name)
        self.aged(local, "ab" * 32)
        young = self.aged(local, "cd" * 32, OLD_S / 2)
        partial = self.aged(local, "ef" * 32).with_name(f"{ARRIVING}broken")
        partial.write_bytes(b"half")
        os.utime(partial, (0, 0))
        self.all_shelves(local)
        assert stored(local) == sorted([*theirs, young.name])
        with local.store.transaction() as connection:
            connection.exec_driver_sql("update run set state = 'done'")
        self.all_shelves(local)
        (sha256,) = (name for name in theirs if name in stored(local))
        assert sha256 == self.artifact(local, submission_id)
        assert young.exists()

    def test_an_old_submission_keeps_its_own_no_longer(self, local, deps):
        """Where the settings say so; it cannot be run again, and planning says why."""
        submission_id = local.submit()
        local.run_all(local.deps())
        local.judge()
        with local.store.transaction() as connection:
            connection.exec_driver_sql("update submission set received_at = received_at - 31 * 86400")
        (name,) = stored(local)
        self.aged(local, name)
        self.all_shelves(local)
        assert stored(local) == [name]
        self.all_shelves(local, days=30)
        assert stored(local) == []
        request = PlanRequest(Selection(submissions=(submission_id,)), "because", level="run")
        with pytest.raises(UsageError, match="what was handed in is not kept any more"):
            plan(local.store, local.registry, request, "ann")

    def artifact(self, local, submission_id):
        with local.store.transaction() as connection:
            statement = "select sha256 from submission where submission_id = ?"
            return connection.exec_driver_sql(statement, (submission_id,)).scalar_one()

    def test_what_comes_again_is_young_again(self, local):
        """It may be collected only a day after that; nobody's is lost between its message and its row."""
        digest = local.artifacts.put(b"again")
        self.aged(local, digest)
        assert local.artifacts.put(b"again") == digest
        self.all_shelves(local)
        assert stored(local) == [digest]

    def test_what_comes_again_in_the_same_moment_stays(self, local, monkeypatch):
        """After it was seen that nobody refers to it, and before it is removed."""
        digest = local.artifacts.put(b"again")
        self.aged(local, digest)

        def and_then_it_comes(store, digests, *, days):
            local.artifacts.put(b"again")
            return unreferenced(store, digests, days=days)

        monkeypatch.setattr(collecting, "unreferenced", and_then_it_comes)
        self.all_shelves(local)
        assert stored(local) == [digest]

    def test_a_folder_that_is_not_there(self, local):
        """Nothing was ever put here."""
        self.all_shelves(local)
        assert stored(local) == []

    def test_a_judge_collects(self, service, monkeypatch):
        """Beside its other work."""
        root = service.state_dir / "artifacts"
        for prefix in range(256):
            name = f"{prefix:02x}" * 32
            (root / name[:2]).mkdir(parents=True)
            (root / name[:2] / name).write_bytes(b"x")
            os.utime(root / name[:2] / name, (0, 0))
        judge = service.judge()
        wait_for(lambda: judge.said("artifacts_removed"), 20)  # which comes after the file has gone
        assert [line["files"] for line in judge.said("artifacts_removed")] == [1]
        assert len([path for path in root.rglob("*") if path.is_file()]) == 255
        assert collecting.EVERY_S * 256 < 86_400


def test_the_bytes_of_a_source_that_is_refused_leave_nothing(local, deps, sent):
    """A digest that was announced wrongly."""
    message = sent("s:1")
    message["artifact"]["sha256"] = "0" * 64
    assert receive(deps, message, "live", "task").kind == "refused"
    assert answers(local) == ["artifact.digest_mismatch"]
    assert stored(local) == []
    with pytest.raises(SubmissionRejected):
        deps.artifacts.fetch(message["artifact"]["uri"], "0" * 64)
