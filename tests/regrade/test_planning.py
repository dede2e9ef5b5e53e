"""What a plan says and keeps: selection, levels with their reasons, estimates, and refusals."""

from collections import Counter

import pytest
from sqlalchemy import update

from checks.registry import Registry
from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs.specs import lab_text
from grader_service.model.evidence import Need, ProbeRef, ProbeSite, RunPlan
from grader_service.model.regrade import BatchState, Level, Selection
from grader_service.model.verdict import Outcome, Status
from grader_service.regrade.kept_labs import kept_lab
from grader_service.regrade.planning import PlanRequest, plan
from grader_service.regrade.sufficiency import choose
from grader_service.store import devices, regrades
from grader_service.store.cohorts import cohorts, entries
from grader_service.store.tables import RunRow, SubmissionRow
from tests.regrade.kinds import DIGESTS, kinds
from tests.regrade.stored import LAB, fill

COUNT = 60
ALL = Selection()
PROBE = ProbeRef(id="p", version="1.0.0", site=ProbeSite.GRAPH, sha256="0" * 64, budget_s=5.0, params={"c": {"n": 1}})


@pytest.fixture(scope="module")
def registry():
    return Registry()


@pytest.fixture
def filled(store):
    """A cohort of known kinds."""
    fill(store, COUNT)
    return store


def planned(store, registry, selection=ALL, **changes):
    values = {"selection": selection, "reason": "because"} | changes
    return plan(store, registry, PlanRequest(**values), "test")


def write_lab(folder, old=b"threshold = 1.1", new=b"threshold = 1.3"):
    path = folder / "lab.toml"
    path.write_bytes(lab_text(LAB).content.replace(old, new))
    return path


def test_a_plan_judges_from_stored_evidence(filled, registry):
    """Everything that the checks look at is stored, so that no GPU is needed; the batch waits to be started."""
    batch = planned(filled, registry)
    rejected = kinds(COUNT).count("rejected")
    counts = {count.reason: (count.level, count.submissions) for count in batch.estimate.counts}
    assert counts == {
        "evidence.sufficient": (Level.JUDGE, COUNT - rejected),
        "evidence.rejection": (Level.JUDGE, rejected),
    }
    assert (batch.estimate.selected, batch.estimate.items, batch.estimate.gpu_s) == (COUNT, COUNT, 0.0)
    assert batch.estimate.eta_s == pytest.approx(COUNT / 200)
    stored = regrades.batch(filled, batch.batch_id)
    assert stored.state is BatchState.PLANNED
    assert stored.labs == batch.labs
    assert [change.new for change in regrades.changes(filled, batch.batch_id)] == [None] * COUNT


def test_a_dry_run_keeps_nothing(filled, registry):
    """What would happen is said, and no batch is there."""
    batch = plan(filled, registry, PlanRequest(ALL, "because"), "test", dry_run=True)
    assert batch.estimate.items == COUNT
    assert regrades.batches(filled) == []


def test_running_is_asked_for(filled, registry):
    """Level `run` costs GPU time, by the runs that there were; when it ends depends on devices."""
    batch = planned(filled, registry, level="run", repeats=2)
    assert {count.reason for count in batch.estimate.counts} == {"run.asked"}
    assert batch.estimate.items == 2 * COUNT
    assert batch.estimate.gpu_s > 2 * COUNT
    assert batch.estimate.eta_s is None, "no device is ready"
    for name in ("cpu:a:0", "cpu:b:0"):
        devices.see(filled, name, name[4], "CPU")
    again = planned(filled, registry, level="run", repeats=2)
    assert again.estimate.eta_s == pytest.approx(batch.estimate.gpu_s / 2)


def test_what_a_run_did_not_collect_has_to_run(filled, registry):
    """A check that looks at more than the stored evidence holds; with --level judge such submissions are left out."""
    bare = RunPlan(needs=(Need.DISCOVERY,)).model_dump(mode="json")
    first = next(entries(filled, ALL)).standing
    with filled.transaction() as connection:
        connection.execute(update(RunRow).where(RunRow.run_id == first.run_id).values(plan=bare))
    batch = planned(filled, registry)
    (run,) = [count for count in batch.estimate.counts if count.level is Level.RUN]
    assert (run.reason, run.submissions) == ("evidence.parts_missing", 1)
    assert "clean_room" in run.text
    judged = planned(filled, registry, level="judge")
    (left,) = [count for count in judged.estimate.counts if count.level is None]
    assert (left.reason, left.submissions, judged.estimate.items) == ("evidence.parts_missing", 1, COUNT - 1)


@pytest.mark.parametrize(
    ("kind", "collected", "wanted_probes", "level", "reason"),
    [
        pytest.param("measured", (), (), Level.JUDGE, "evidence.sufficient", id="enough"),
        pytest.param(None, (), (), Level.RUN, "evidence.missing", id="gone"),
        pytest.param("rejection", (), (PROBE,), Level.JUDGE, "evidence.rejection", id="rejected"),
        pytest.param("measured", (), (PROBE,), Level.RUN, "evidence.probe_missing", id="new-probe"),
        pytest.param("measured", (PROBE,), (PROBE,), Level.JUDGE, "evidence.sufficient", id="same-probe"),
        pytest.param(
            "measured",
            (PROBE.model_copy(update={"sha256": "1" * 64}),),
            (PROBE,),
            Level.RUN,
            "evidence.probe_changed",
            id="other-source",
        ),
        pytest.param(
            "measured",
            (PROBE.model_copy(update={"params": {"c": {"n": 2}}}),),
            (PROBE,),
            Level.RUN,
            "evidence.probe_changed",
            id="other-parameters",
        ),
    ],
)
def test_the_level_follows_from_the_evidence(kind, collected, wanted_probes, level, reason):
    """Judged where the evidence suffices, run where it does not, and why."""
    plan_of_run = RunPlan(needs=(Need.DISCOVERY, Need.SCAN), probes=collected)
    choice = choose(kind, plan_of_run, {Need.DISCOVERY}, wanted_probes, "auto")
    assert (choice.level, choice.reason) == (level, reason)
    forced = choose(kind, plan_of_run, {Need.DISCOVERY}, wanted_probes, "judge")
    assert forced.level is (None if level is Level.RUN else Level.JUDGE)


def test_a_batch_keeps_its_lab(filled, registry, tmp_path):
    """The file may change or vanish afterwards: the batch grades by what it was."""
    path = write_lab(tmp_path)
    batch = planned(filled, registry, lab_files=(path,))
    path.unlink()
    (ref,) = batch.labs
    assert ref.origin == "lab.toml"
    lab = kept_lab(filled, ref, registry)
    (check,) = [check for step in lab.steps for check in step.checks if check.id == "throughput_ratio"]
    assert check.params == {"threshold": 1.3}
    assert set(ref.check_versions) == {check.id for step in lab.steps for check in step.checks}


def test_a_lab_that_is_gone_leaves_its_submissions_out(filled, registry):
    """Nothing to grade by is said, and does not stop the others."""
    chosen = [entry.standing.submission_id for entry in entries(filled, Selection(statuses=(Status.PASSED,)))][:2]
    with filled.transaction() as connection:
        connection.execute(
            update(SubmissionRow).where(SubmissionRow.submission_id == chosen[0]).values(steps=["nothing"])
        )
    batch = planned(filled, registry, Selection(submissions=tuple(chosen)))
    assert {count.reason: count.submissions for count in batch.estimate.counts} == {
        "lab.step_missing": 1,
        "evidence.sufficient": 1,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"reason": "  "}, "needs a reason", id="no-reason"),
        pytest.param({"reason": "x" * 8193}, "at most 8192 characters", id="novel"),
        pytest.param({"repeats": 0}, "1 to 20 times, not 0", id="no-repetition"),
        pytest.param({"repeats": 21}, "1 to 20 times, not 21", id="too-many"),
        pytest.param({"selection": Selection(cohorts=("spring",))}, "no graded submission fits", id="nobody"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(filled, registry, changes, message):
    """And nothing is kept."""
    with pytest.raises(UsageError, match=message):
        planned(filled, registry, **changes)
    assert regrades.batches(filled) == []


def test_a_lab_file_for_nothing_is_refused(filled, registry, tmp_path):
    """Its author expects something to be graded by it."""
    path = write_lab(tmp_path, old=b'id = "dali-pipelines"', new=b'id = "another-lab"')
    with pytest.raises(UsageError, match=r"another-lab, for which a file was given.*of dali-pipelines"):
        planned(filled, registry, lab_files=(path,))


def test_a_wrong_lab_file_is_refused(filled, registry, tmp_path):
    """With its mistakes, before anything is planned."""
    path = write_lab(tmp_path, new=b'threshold = "high"')
    with pytest.raises(ConfigurationError, match="threshold"):
        planned(filled, registry, lab_files=(path,))


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        pytest.param(Selection(cohorts=("autumn",)), lambda one: True, id="cohort"),
        pytest.param(Selection(labs=("other",)), lambda one: False, id="other-lab"),
        pytest.param(
            Selection(statuses=(Status.FAILED, Status.REJECTED)),
            lambda one: one.status in {Status.FAILED, Status.REJECTED},
            id="status",
        ),
        pytest.param(Selection(checks={"reflections": None}), lambda one: bool(one.checks), id="check"),
        pytest.param(
            Selection(checks={"throughput_ratio": Outcome.FAILED}),
            lambda one: any(c.id == "throughput_ratio" and c.outcome is Outcome.FAILED for c in one.checks),
            id="outcome",
        ),
        pytest.param(
            Selection(codes=("ratio.too_low",)), lambda one: "ratio.too_low" in {c.code for c in one.checks}, id="code"
        ),
        pytest.param(Selection(image_digests=(DIGESTS[0],)), lambda one: one.image_digest == DIGESTS[0], id="image"),
        pytest.param(Selection(check_versions={"reflections": "0.0.1"}), lambda one: False, id="version"),
    ],
)
def test_each_condition_selects(filled, selection, wanted):
    """Exactly the submissions whose verdict in force is so; in order, however many are read at once."""
    everybody = [entry.standing for entry in entries(filled, ALL)]
    expected = [one.submission_id for one in everybody if wanted(one)]
    assert [entry.standing.submission_id for entry in entries(filled, selection)] == expected
    assert [entry.standing.submission_id for entry in entries(filled, selection, size=7)] == expected


def test_times_and_the_latest_select(filled):
    """A span of time includes its beginning; of each learner the submission that came last."""
    everybody = list(entries(filled, ALL))
    times = sorted(entry.received_at for entry in everybody)
    chosen = Selection(received_from=times[10], received_before=times[20])
    assert sorted(entry.received_at for entry in entries(filled, chosen)) == times[10:20]
    latest = list(entries(filled, Selection(latest_only=True)))
    learners = Counter(entry.standing.learner for entry in latest)
    assert set(learners) == {entry.standing.learner for entry in everybody}
    assert set(learners.values()) == {1}
    newest = {}
    for entry in everybody:
        newest[entry.standing.learner] = max(newest.get(entry.standing.learner, 0.0), entry.received_at)
    assert {entry.standing.learner: entry.received_at for entry in latest} == newest


def test_cohorts_are_counted(filled):
    """Submissions, learners and passes of each cohort at each lab."""
    (summary,) = cohorts(filled)
    everybody = [entry.standing for entry in entries(filled, ALL)]
    assert (summary.cohort, summary.lab, summary.submissions) == ("autumn", LAB, COUNT)
    assert summary.learners == len({one.learner for one in everybody})
    assert summary.passed == sum(one.status is Status.PASSED for one in everybody)
