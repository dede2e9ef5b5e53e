"""Preflights over the queue: looked at without the GPU, answered without a score, and no part of any grade."""

import pytest

from grader_service.host.facts import Gpu
from grader_service.judging.process import JudgeProcess
from grader_service.labs.catalogue import load_lab
from grader_service.model.evidence import ENOUGH_IMAGES, Evidence
from grader_service.model.regrade import Selection
from grader_service.model.verdict import Mode, Status
from grader_service.run.execution import execute
from grader_service.service import runner
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.message import Malformed, parse_message
from grader_service.service.pipeline import StageEnd
from grader_service.service.runner import run_next
from grader_service.settings import Settings
from grader_service.store import cohorts, leases, operations, results
from grader_service.store.attempts import attempt_number
from grader_service.store.cancelling import CANCELLED, cancel
from grader_service.store.ids import Named
from grader_service.web.queries import graded_lately
from grader_service.wiring import open_store, runner_deps
from sandbox.process.runner import ProcessRunner
from tests.factories import a_measurement, a_run, an_evidence
from tests.receiving import receive
from tests.service.harness import QUICK, a_message

pytestmark = pytest.mark.integration

GPU = Gpu(0, "NVIDIA H200", "GPU-1", "580.1", 143_771)


@pytest.fixture
def executed(monkeypatch):
    """How runs were really executed: their options, and the device."""
    seen = []

    def watched(*arguments, **options):
        seen.append(
            {"device": arguments[4], "sandbox": arguments[3], "enough_images": arguments[2].enough_images, **options}
        )
        return execute(*arguments, **options)

    monkeypatch.setattr(runner, "execute", watched)
    return seen


def test_it_is_answered_without_a_score(bench):
    """Signed, `unverified`, and with what is there and what is missing in the steps that were asked for."""
    submission_id = bench.submit(mode="preflight")
    assert bench.run(submission_id).purpose == "preflight"
    assert bench.run_all(bench.deps()) == [StageEnd.STORED]
    verdict = bench.judge()
    assert (verdict.submission_id, verdict.mode, verdict.status) == (submission_id, Mode.PREFLIGHT, Status.UNVERIFIED)
    assert (verdict.code, verdict.score, verdict.checks, verdict.steps) == ("preflight.ready", None, (), ())
    assert verdict.preflight.ready
    assert [part.wanted.name for part in verdict.preflight.names] == ["where_dali_wins", "where_dali_loses"]
    assert verdict.signature is not None
    assert "Nothing is missing" in verdict.feedback


def test_another_process_says_the_same(bench):
    """Where judges have one for judging; what is missing has its action in the plain text."""
    bench.submit(source="where_dali_wins = ['TODO']\n", mode="preflight")
    bench.run_all(bench.deps())
    with JudgeProcess() as judging:
        verdict = judge_next(JudgeDeps(bench.store, bench.registry, bench.signer, "bench", judging=judging))
    assert verdict.code == "preflight.missing"
    assert "`where_dali_loses` is not defined." in verdict.feedback
    assert "Write 3 more" in verdict.feedback


def test_no_gpu_is_held(bench, executed):
    """A runner with a GPU executes it on the CPU, apart from the runs that it has prepared, and measures nothing."""
    apart = ProcessRunner(bench.state_dir)
    bench.submit(mode="preflight")
    assert bench.run_all(bench.deps(device="cuda", gpu=GPU, unprepared=apart)) == [StageEnd.STORED]
    (options,) = executed
    assert (options["device"], options["gpu"], options["preflight"]) == ("cpu", None, True)
    assert options["sandbox"].facts == apart.facts
    verdict = bench.judge()
    assert (verdict.provenance.gpu, verdict.provenance.gpu_held_s) == (None, None)


def test_no_more_images_are_counted_than_are_needed(bench, executed):
    """As the lab says when the message is taken in; a grading counts more, for its measurement has images like them."""
    bench.submit(mode="preflight", steps=["baseline"])
    bench.submit(steps=["baseline"])
    assert bench.run_all(bench.deps()) == [StageEnd.STORED] * 2
    assert [options["enough_images"] for options in executed] == [100, ENOUGH_IMAGES]


def test_unusable_and_cancelled_ones_are_no_grade_either(bench):
    """The mode says what they were."""
    bench.submit(source="", mode="preflight")
    bench.run_all(bench.deps())
    rejected = bench.judge()
    assert (rejected.mode, rejected.status, rejected.code) == (Mode.PREFLIGHT, Status.REJECTED, "submission.empty")
    submission_id = bench.submit(mode="preflight")
    cancel(bench.store, Named(submission_id), "the wrong lab", "operator")
    cancelled = bench.judge()
    assert (cancelled.mode, cancelled.code) == (Mode.PREFLIGHT, CANCELLED)


def test_it_goes_before_gradings_and_may_have_runners_of_its_own(bench):
    """A runner for preflights alone leaves all else; the others take what comes next."""
    graded = bench.submit()
    looked = bench.submit(mode="preflight")
    alone = bench.deps(preflights_only=True)
    assert [run_next(alone), run_next(alone)] == [StageEnd.STORED, StageEnd.NOTHING]
    assert bench.run(looked).state == "judge_queued"
    second = bench.submit(mode="preflight")
    assert run_next(bench.deps()) is StageEnd.STORED
    assert (bench.run(second).state, bench.run(graded).state) == ("judge_queued", "run_queued")


def test_the_same_id_means_one_thing(bench):
    """A preflight that is posted again is answered again; under its id nothing is graded."""
    submission_id = bench.submit(mode="preflight")
    bench.run_all(bench.deps())
    first = bench.judge()
    message = a_message(submission_id, mode="preflight")
    assert receive(bench._intake, message, "live", None).kind == "repeated"
    assert receive(bench._intake, a_message(submission_id), "live", None).kind == "refused"
    assert operations.whereabouts(bench.store, submission_id).verdict == first.model_dump_json()


def test_it_is_no_attempt_and_stands_in_no_table(bench):
    """Attempts, cohorts, re-grades, what learners handed in last, and the figures of a day pass over it."""
    graded = bench.submit(learner="ann", cohort="c")
    bench.run_all(bench.deps())
    bench.judge()
    bench.submit(learner="ann", cohort="c", source=QUICK + "\n", mode="preflight")
    bench.run_all(bench.deps())
    bench.judge()
    third = bench.submit(learner="ann", cohort="c", source=QUICK + "\n\n", mode="preflight")
    assert attempt_number(bench.store, third) == 1
    for chosen in (Selection(cohorts=("c",)), Selection(learners=("ann",), latest_only=True)):
        assert [entry.summary.submission_id for entry in cohorts.entries(bench.store, chosen)] == [graded]
        assert [one.submission_id for one in cohorts.candidates(bench.store, chosen)] == [graded]
    (summary,) = cohorts.cohorts(bench.store)
    assert (summary.submissions, summary.passed) == (1, 1)
    assert graded_lately(bench.store) == {"passed": 1}


def test_what_was_measured_does_not_spare_it(bench, executed):
    """Nor does it spare a grading of the same bytes."""
    bench.submit()
    claim = leases.claim(bench.store, "run", "before", 60)
    lab = load_lab("dali-pipelines", bench.registry)
    evidence = an_evidence(
        run=a_run(run_id=claim.run_id, device="cpu"), measurement=a_measurement(plan=lab.measurement)
    )
    assert results.store_evidence(bench.store, claim, "measured", evidence.model_dump_json().encode(), {})
    bench.judge()
    submission_id = bench.submit(mode="preflight")
    assert bench.run_all(bench.deps(reuse_days=1.0)) == [StageEnd.STORED]
    assert len(executed) == 1
    stored = results.load_evidence(bench.store, bench.run(submission_id).run_id)
    assert stored.kind == "evidence"
    assert Evidence.model_validate_json(stored.document).run.reused_from is None


def test_the_audit_trail_calls_it_what_it_is(bench):
    """So that figures of verdicts are those of grades."""
    submission_id = bench.submit(mode="preflight")
    bench.run_all(bench.deps())
    bench.judge()
    details = dict(bench.events(submission_id))
    assert details["accepted"]["purpose"] == "preflight"
    assert details["verdict"]["status"] == "preflight"


def test_other_modes_are_refused():
    """With what was expected."""
    with pytest.raises(Malformed, match="mode"):
        parse_message(a_message(mode="dry_run"))
    assert parse_message(a_message()).mode == "grade"


@pytest.mark.parametrize(("gpu", "apart"), [(GPU, True), (None, False)])
def test_beside_a_gpu_preflights_use_no_prepared_run(tmp_path, gpu, apart):
    """Its pods have the GPU; a runner that rehearses has prepared just what a preflight needs."""
    settings = Settings(state_dir=tmp_path, sandbox="process", preflights_only=True)
    deps = runner_deps(settings, open_store(settings), gpu, "here", gate=None)
    assert (deps.unprepared is not None) is apart
    assert deps.preflights_only
