"""What a plan says and keeps: selection, levels with their reasons, estimates, and refusals."""

from collections import Counter
from dataclasses import replace

import pytest

from checks.reflections.check import reflections
from checks.registry import Registry
from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.evidence import Need, ProbeRef, ProbeSite, RunPlan
from grader_service.model.lab import MeasurementPlan
from grader_service.model.regrade import BatchState, Level, Selection
from grader_service.model.verdict import Outcome, Status
from grader_service.model.verdict_summary import every_value
from grader_service.regrade.planning import PlanRequest, plan
from grader_service.regrade.sufficiency import Asked, choose
from grader_service.service.kept_labs import kept_lab
from grader_service.store import devices, regrades
from grader_service.store.cohorts import Candidate, candidates, cohorts, entries
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.tables import RunRow, SubmissionRow
from tests.factories import A_LAB
from tests.regrade.deps import overwrite, read, rewrite
from tests.regrade.kinds import DIGESTS, kinds
from tests.regrade.stored import LAB, changed_lab, fill

pytestmark = pytest.mark.slow

COUNT = 60
ALL = Selection()
MEASURED = frozenset({Need.DISCOVERY, Need.MEASUREMENT})
PROBE = ProbeRef(id="p", version="1.0.0", site=ProbeSite.GRAPH, sha256="0" * 64, budget_s=5.0, params={"c": {"n": 1}})
OTHER_SOURCE = PROBE.model_copy(update={"sha256": "1" * 64})
OTHER_PARAMS = PROBE.model_copy(update={"params": {"c": {"n": 2}}})
NO_PASS = (Status.FAILED, Status.REJECTED)
UNPROVEN = (Outcome.FAILED, Outcome.INCONCLUSIVE)


@pytest.fixture
def filled(store):
    """A cohort of known kinds."""
    fill(store, COUNT)
    return store


def planned(store, selection=ALL, *, dry_run=False, **changes):
    values = {"selection": selection, "reason": "because"} | changes
    return plan(store, Registry(), PlanRequest(**values), "test", dry_run=dry_run)


def collected_less(store, *summaries):
    """Lets the runs of these have been asked for the discovery alone."""
    bare = RunPlan(needs=(Need.DISCOVERY,), lab=A_LAB).model_dump(mode="json")
    overwrite(store, RunRow, RunRow.run_id.in_([summary.run_id for summary in summaries]), plan=bare)


def two_devices(store):
    """Says that two are ready."""
    for name in ("cpu:a:0", "cpu:b:0"):
        devices.see(store, name, name[4], "CPU")


def test_a_plan_judges_from_stored_evidence(filled):
    """Everything that the checks look at is stored, so that no GPU is needed; the batch waits to be started."""
    batch = planned(filled)
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


def test_a_dry_run_keeps_nothing(filled):
    """What would happen is said, and no batch is there."""
    batch = planned(filled, dry_run=True)
    assert batch.estimate.items == COUNT
    assert regrades.batches(filled) == []


def test_running_is_asked_for(filled):
    """Level `run` costs GPU time, by the runs that there were; when it ends depends on devices."""
    batch = planned(filled, level="run", repeats=2)
    assert {count.reason for count in batch.estimate.counts} == {"run.asked"}
    assert batch.estimate.items == 2 * COUNT
    assert batch.estimate.gpu_s > 2 * COUNT
    assert batch.estimate.eta_s is None, "no device is ready"
    two_devices(filled)
    again = planned(filled, level="run", repeats=2)
    assert again.estimate.eta_s == pytest.approx(batch.estimate.gpu_s / 2)


def test_what_a_run_did_not_collect_has_to_run(filled):
    """A check that looks at more than the stored evidence holds; with --level judge such submissions are left out."""
    collected_less(filled, next(entries(filled, ALL)).summary)
    batch = planned(filled)
    (run,) = [count for count in batch.estimate.counts if count.level is Level.RUN]
    assert (run.reason, run.submissions) == ("evidence.parts_missing", 1)
    assert "clean_room" in run.text
    judged = planned(filled, level="judge")
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
        pytest.param("measured", (OTHER_SOURCE,), (PROBE,), Level.RUN, "evidence.probe_changed", id="other-source"),
        pytest.param("measured", (OTHER_PARAMS,), (PROBE,), Level.RUN, "evidence.probe_changed", id="other-parameters"),
    ],
)
def test_the_level_follows_from_the_evidence(kind, collected, wanted_probes, level, reason):
    """Judged where the evidence suffices, run where it does not, and why."""
    plan = RunPlan(needs=(Need.DISCOVERY, Need.SCAN), probes=collected, lab=A_LAB)
    found = Candidate("s:1", "lab", "verdict", None, None, (), plan, kind)
    asked = Asked(frozenset({Need.DISCOVERY}), wanted_probes, every_value(MeasurementPlan()))
    choice = choose(found, asked, "auto")
    assert (choice.level, choice.reason) == (level, reason)
    forced = choose(found, asked, "judge")
    assert forced.level is (None if level is Level.RUN else Level.JUDGE)
    gone = choose(replace(found, artifact_kept=False), asked, "auto")
    assert (gone.level, gone.reason) == ((None, "artifact.removed") if level is Level.RUN else (level, reason))
    assert choose(replace(found, artifact_kept=False), asked, "run").level is None


@pytest.mark.parametrize(
    ("kind", "measured_by", "needs", "changed"),
    [
        pytest.param("measured", every_value(MeasurementPlan(host_floor=1.5)), MEASURED, "host_floor", id="floor"),
        pytest.param("measured", every_value(MeasurementPlan(looks=(4, 8))), MEASURED, "looks", id="looks"),
        pytest.param(
            "evidence", every_value(MeasurementPlan(alpha_pass=0.01, fair_floor=0.9)), MEASURED,
            "alpha_pass, fair_floor", id="several",
        ),
        pytest.param("measured", every_value(MeasurementPlan()), MEASURED, None, id="same"),
        pytest.param("measured", {"looks": [4, 6, 8, 12]}, MEASURED, None, id="of-a-time-with-fewer-values"),
        pytest.param("measured", None, MEASURED, None, id="not-measured"),
        pytest.param("measured", every_value(MeasurementPlan(host_floor=1.5)), {Need.SCAN}, None, id="not-looked-at"),
        pytest.param("rejection", None, MEASURED, None, id="rejected"),
    ],
)  # fmt: skip
def test_another_measurement_plan_shows_in_a_run_only(kind, measured_by, needs, changed):
    """Evidence is judged by the plan of its run; whoever asks for judging alone gets it, and is told."""
    found = Candidate("s:1", "lab", "verdict", None, measured_by, (), RunPlan(needs=tuple(Need), lab=A_LAB), kind)
    asked = Asked(frozenset(needs), (), every_value(MeasurementPlan()))
    choice, judged = choose(found, asked, "auto"), choose(found, asked, "judge")
    assert judged.level is Level.JUDGE
    if changed is None:
        assert choice == judged
        assert choice.level is Level.JUDGE
        return
    assert (choice.level, choice.reason) == (Level.RUN, "evidence.measurement_changed")
    assert choice.text.endswith(f": {changed}")
    assert judged.reason == "evidence.measurement_changed"
    assert judged.text.endswith(f"says now of {changed}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"host_floor = 1.3", b"host_floor = 1.5"),
        (b"alpha_pass = 0.005", b"alpha_pass = 0.01"),
        (b"looks = [4, 6, 8, 12]", b"looks = [4, 8, 12]"),
        (b"fair_floor = 0.91", b"fair_floor = 0.8"),
    ],
    ids=lambda value: value.decode().split()[0],
)
def test_a_lab_that_measures_otherwise_has_to_run(filled, tmp_path, old, new):
    """All that were measured; those in whose code nothing could be measured say the same by any plan."""
    path = changed_lab(tmp_path, old, new)
    measured = sum(entry.summary.measured_by is not None for entry in entries(filled, ALL))
    assert 0 < measured < COUNT
    batch = planned(filled, lab_files=(path,))
    counts = {(count.level, count.reason): count.submissions for count in batch.estimate.counts}
    assert counts.pop((Level.RUN, "evidence.measurement_changed")) == measured
    assert {level for level, _ in counts} == {Level.JUDGE}
    judged = planned(filled, lab_files=(path,), level="judge")
    assert (judged.estimate.items, judged.estimate.gpu_s) == (COUNT, 0.0)
    assert new.decode().split()[0] in " ".join(count.text for count in judged.estimate.counts)


def test_verdicts_from_before_the_plan_was_kept_are_judged(filled, tmp_path):
    """Of them it is not known by which plan they were measured: an update must not have a whole cohort run."""
    before = [entry.summary.model_copy(update={"measured_by": None}) for entry in entries(filled, ALL)]
    assert not any("measured_by" in summary.model_dump_json(exclude_defaults=True) for summary in before)
    rewrite(filled, *before)
    batch = planned(filled, lab_files=(changed_lab(tmp_path, b"host_floor = 1.3", b"host_floor = 1.5"),))
    assert {count.level for count in batch.estimate.counts} == {Level.JUDGE}


def test_the_estimate_adds_up_what_has_to_run(filled):
    """Each by its own last run, however short those of the others were; the mean of these where one was not timed."""
    timed = zip(entries(filled, Selection(statuses=(Status.PASSED,))), (900.0, 300.0, None), strict=False)
    run = [entry.summary.model_copy(update={"run_s": run_s}) for entry, run_s in timed]
    rewrite(filled, *run)
    collected_less(filled, *run)
    two_devices(filled)
    batch = planned(filled, repeats=2)
    assert batch.estimate.gpu_s == pytest.approx(2 * (900.0 + 300.0 + 600.0))
    assert batch.estimate.eta_s == pytest.approx(900.0 + 300.0 + 600.0), "two devices share it"
    alone = planned(filled, Selection(submissions=(run[2].submission_id,)))
    assert alone.estimate.gpu_s == 60.0, "nothing was ever timed"


def test_what_was_not_timed_takes_as_long_as_the_others(filled):
    """Where none of those that have to run was timed, the others of the selection are."""
    passed = entries(filled, Selection(statuses=(Status.PASSED,)))
    first, second = next(passed).summary, next(passed).summary
    rewrite(filled, first.model_copy(update={"run_s": None}))
    collected_less(filled, first)
    chosen = Selection(submissions=(first.submission_id, second.submission_id))
    assert planned(filled, chosen).estimate.gpu_s == pytest.approx(second.run_s)


def test_a_batch_keeps_its_lab(filled, tmp_path):
    """The file may change or vanish afterwards: the batch grades by what it was."""
    path = changed_lab(tmp_path)
    batch = planned(filled, lab_files=(path,))
    path.unlink()
    (ref,) = batch.labs
    assert ref.origin == "lab.toml"
    lab = kept_lab(filled, ref, Registry())
    (check,) = [check for step in lab.steps for check in step.checks if check.id == "throughput_ratio"]
    assert check.params == {"threshold": 1.3}
    assert set(ref.check_versions) == {check.id for step in lab.steps for check in step.checks}


def test_a_lab_that_is_gone_leaves_its_submissions_out(filled):
    """Nothing to grade by is said, and does not stop the others."""
    chosen = [entry.summary.submission_id for entry in entries(filled, Selection(statuses=(Status.PASSED,)))][:2]
    overwrite(filled, SubmissionRow, SubmissionRow.submission_id == chosen[0], steps=["nothing"])
    batch = planned(filled, Selection(submissions=tuple(chosen)))
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
def test_a_plan_that_makes_no_sense_is_refused(filled, changes, message):
    """And nothing is kept."""
    with pytest.raises(UsageError, match=message):
        planned(filled, **changes)
    assert regrades.batches(filled) == []


def test_a_lab_file_for_nothing_is_refused(filled, tmp_path):
    """Its author expects something to be graded by it."""
    path = changed_lab(tmp_path, old=b'id = "dali-pipelines"', new=b'id = "another-lab"')
    with pytest.raises(UsageError, match=r"another-lab, for which a file was given.*of dali-pipelines"):
        planned(filled, lab_files=(path,))


def test_a_wrong_lab_file_is_refused(filled, tmp_path):
    """With its mistakes, before anything is planned."""
    path = changed_lab(tmp_path, new=b'threshold = "high"')
    with pytest.raises(ConfigurationError, match="threshold"):
        planned(filled, lab_files=(path,))


def of_ratio(*outcomes):
    """Asks whether the ratio of a summary came out in one of these ways."""
    return lambda one: any(check.id == "throughput_ratio" and check.counted in outcomes for check in one.checks)


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        pytest.param(Selection(cohorts=("autumn",)), lambda one: True, id="cohort"),
        pytest.param(Selection(labs=("other",)), lambda one: False, id="other-lab"),
        pytest.param(Selection(statuses=NO_PASS), lambda one: one.status in NO_PASS, id="status"),
        pytest.param(Selection(checks={"reflections": None}), lambda one: bool(one.checks), id="check"),
        pytest.param(Selection(checks={"throughput_ratio": Outcome.FAILED}), of_ratio(Outcome.FAILED), id="outcome"),
        pytest.param(
            Selection(codes=("ratio.too_low",)), lambda one: "ratio.too_low" in {c.code for c in one.checks}, id="code"
        ),
        pytest.param(Selection(image_digests=(DIGESTS[0],)), lambda one: one.image_digest == DIGESTS[0], id="image"),
        pytest.param(Selection(checks={"throughput_ratio": UNPROVEN}), of_ratio(*UNPROVEN), id="outcomes"),
        pytest.param(Selection(check_versions={"reflections": "0.0.1"}), lambda one: False, id="version"),
        pytest.param(
            Selection(check_versions={"reflections": ("0.0.1", reflections.version)}),
            lambda one: bool(one.checks),
            id="versions",
        ),
    ],
)
def test_each_condition_selects(filled, selection, wanted):
    """Exactly the submissions whose verdict in force is so; in order, however many are read at once."""
    everybody = [entry.summary for entry in entries(filled, ALL)]
    expected = [one.submission_id for one in everybody if wanted(one)]
    assert [entry.summary.submission_id for entry in entries(filled, selection)] == expected
    assert [entry.summary.submission_id for entry in entries(filled, selection, size=7)] == expected
    assert [one.submission_id for one in candidates(filled, selection)] == expected
    assert [one.submission_id for one in candidates(filled, selection, size=7)] == expected


def test_an_item_names_the_verdict_in_force_and_the_run_behind_it(filled):
    """What is judged again is the evidence of that run; each repetition has an item of its own."""
    batch = planned(filled, repeats=2)
    item = RegradeItemRow
    columns = (item.submission_id, item.base_verdict_id, item.base_run_id, item.repetition)
    rows = read(filled, *columns, where=[item.batch_id == batch.batch_id])
    summaries = [entry.summary for entry in entries(filled, ALL)]
    expected = {(one.submission_id, one.verdict_id, one.run_id, n) for one in summaries for n in (1, 2)}
    assert {tuple(row) for row in rows} == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize("selection", [ALL, Selection(checks={"jpeg_dataset": None})], ids=["unread", "read"])
def test_planning_is_told_what_the_summary_says(filled, selection):
    """Whether it reads all of it, or only what is about the run."""
    expected = {entry.summary.submission_id: entry.summary for entry in entries(filled, selection)}
    found = {one.submission_id: one for one in candidates(filled, selection)}
    assert found.keys() == expected.keys()
    for submission_id, summary in expected.items():
        one = found[submission_id]
        told = (one.lab, one.verdict_id, one.run_s, one.measured_by)
        assert told == (summary.lab, summary.verdict_id, summary.run_s, summary.measured_by)
    assert any(one.measured_by for one in found.values())


def test_times_and_the_latest_select(filled):
    """A span of time includes its beginning; of each learner the submission that came last."""
    everybody = list(entries(filled, ALL))
    times = sorted(entry.received_at for entry in everybody)
    chosen = Selection(received_from=times[10], received_before=times[20])
    assert sorted(entry.received_at for entry in entries(filled, chosen)) == times[10:20]
    latest = list(entries(filled, Selection(latest_only=True)))
    learners = Counter(entry.summary.learner for entry in latest)
    assert set(learners) == {entry.summary.learner for entry in everybody}
    assert set(learners.values()) == {1}
    newest = {}
    for entry in everybody:
        newest[entry.summary.learner] = max(newest.get(entry.summary.learner, 0.0), _handed_in(entry))
    assert {entry.summary.learner: _handed_in(entry) for entry in latest} == newest


def _handed_in(entry):
    return entry.received_at if entry.submitted_at is None else entry.submitted_at


def test_the_latest_is_the_one_that_was_handed_in_last(filled):
    """Not the one that came in last, since it had been refused for a full queue; of two at the same time one counts."""
    first, second, third = sorted(entry.summary.submission_id for entry in entries(filled, ALL))[:3]
    times = {first: (900.0, 1000.0), second: (800.0, 2000.0), third: (900.0, 1000.0)}
    for submission_id, (submitted, received) in times.items():
        of_one = SubmissionRow.submission_id == submission_id
        overwrite(filled, SubmissionRow, of_one, learner="solo", submitted_at=submitted, received_at=received)
    latest = [entry.summary for entry in entries(filled, Selection(latest_only=True))]
    assert times.keys() & {one.submission_id for one in latest} == {third}


def test_cohorts_are_counted(filled):
    """Submissions, learners and passes of each cohort at each lab."""
    (summary,) = cohorts(filled)
    everybody = [entry.summary for entry in entries(filled, ALL)]
    assert (summary.cohort, summary.lab, summary.submissions) == ("autumn", LAB, COUNT)
    assert summary.learners == len({one.learner for one in everybody})
    assert summary.passed == sum(one.status is Status.PASSED for one in everybody)
