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


def test_it_is_answered_without_a_score(local):
    """Signed, `unverified`, and with what is there and what is missing in the steps that were asked for."""
    submission_id = local.submit(mode="preflight")
    assert local.run(submission_id).purpose == "preflight"
    assert local.run_all(local.deps()) == [StageEnd.STORED]
    verdict = local.judge()
    assert (verdict.submission_id, verdict.mode, verdict.status) == (submission_id, Mode.PREFLIGHT, Status.UNVERIFIED)
    assert (verdict.code, verdict.score, verdict.checks, verdict.steps) == ("preflight.ready", None, (), ())
    assert verdict.preflight.ready
    assert [part.wanted.name for part in verdict.preflight.names] == ["where_dali_wins", "where_dali_loses"]
    assert verdict.signature is not None
    assert "Nothing is missing" in verdict.feedback


def test_another_process_says_the_same(local):
    """Where judges have one for judging; what is missing has its action in the plain text."""
    local.submit(source="where_dali_wins = ['TODO']\n", mode="preflight")
    local.run_all(local.deps())
    with JudgeProcess() as judging:
        verdict = judge_next(JudgeDeps(local.store, local.registry, local.signer, "local", judging=judging))
    assert verdict.code == "preflight.missing"
    assert "`where_dali_loses` is not defined." in verdict.feedback
    assert "Write 3 more" in verdict.feedback


def test_no_gpu_is_held(local, executed):
    """A runner with a GPU executes it on the CPU, apart from the runs that it has prepared, and measures nothing."""
    apart = ProcessRunner(local.state_dir)
    local.submit(mode="preflight")
    assert local.run_all(local.deps(device="cuda", gpu=GPU, unprepared=apart)) == [StageEnd.STORED]
    (options,) = executed
    assert (options["device"], options["gpu"], options["preflight"]) == ("cpu", None, True)
    assert options["sandbox"].facts == apart.facts
    verdict = local.judge()
    assert (verdict.provenance.gpu, verdict.provenance.gpu_held_s) == (None, None)


def test_no_more_images_are_counted_than_are_needed(local, executed):
    """As the lab says when the message is taken in; a grading counts more, for its measurement has images like them."""
    local.submit(mode="preflight", steps=["baseline"])
    local.submit(steps=["baseline"])
    assert local.run_all(local.deps()) == [StageEnd.STORED] * 2
    assert [options["enough_images"] for options in executed] == [100, ENOUGH_IMAGES]


def test_unusable_and_cancelled_ones_are_no_grade_either(local):
    """The mode says what they were."""
    local.submit(source="", mode="preflight")
    local.run_all(local.deps())
    rejected = local.judge()
    assert (rejected.mode, rejected.status, rejected.code) == (Mode.PREFLIGHT, Status.REJECTED, "submission.empty")
    submission_id = local.submit(mode="preflight")
    cancel(local.store, Named(submission_id), "the wrong lab", "operator")
    cancelled = local.judge()
    assert (cancelled.mode, cancelled.code) == (Mode.PREFLIGHT, CANCELLED)


def test_it_goes_before_gradings_and_may_have_runners_of_its_own(local):
    """A runner for preflights alone leaves all else; the others take what comes next."""
    graded = local.submit()
    looked = local.submit(mode="preflight")
    alone = local.deps(preflights_only=True)
    assert [run_next(alone), run_next(alone)] == [StageEnd.STORED, StageEnd.NOTHING]
    assert local.run(looked).state == "judge_queued"
    second = local.submit(mode="preflight")
    assert run_next(local.deps()) is StageEnd.STORED
    assert (local.run(second).state, local.run(graded).state) == ("judge_queued", "run_queued")


def test_the_same_id_means_one_thing(local):
    """A preflight that is posted again is answered again; under its id nothing is graded."""
    submission_id = local.submit(mode="preflight")
    local.run_all(local.deps())
    first = local.judge()
    message = a_message(submission_id, mode="preflight")
    assert receive(local._intake, message, "live", None).kind == "repeated"
    assert receive(local._intake, a_message(submission_id), "live", None).kind == "refused"
    assert operations.whereabouts(local.store, submission_id).verdict == first.model_dump_json()


def test_it_is_no_attempt_and_stands_in_no_table(local):
    """Attempts, cohorts, re-grades, what learners handed in last, and the figures of a day pass over it."""
    graded = local.submit(learner="ann", cohort="c")
    local.run_all(local.deps())
    local.judge()
    local.submit(learner="ann", cohort="c", source=QUICK + "\n", mode="preflight")
    local.run_all(local.deps())
    local.judge()
    third = local.submit(learner="ann", cohort="c", source=QUICK + "\n\n", mode="preflight")
    assert attempt_number(local.store, third) == 1
    for chosen in (Selection(cohorts=("c",)), Selection(learners=("ann",), latest_only=True)):
        assert [entry.summary.submission_id for entry in cohorts.entries(local.store, chosen)] == [graded]
        assert [one.submission_id for one in cohorts.candidates(local.store, chosen)] == [graded]
    (summary,) = cohorts.cohorts(local.store)
    assert (summary.submissions, summary.passed) == (1, 1)
    assert graded_lately(local.store) == {"passed": 1}


def test_what_was_measured_does_not_spare_it(local, executed):
    """Nor does it spare a grading of the same bytes."""
    local.submit()
    claim = leases.claim(local.store, "run", "before", 60)
    lab = load_lab("dali-pipelines", local.registry)
    evidence = an_evidence(
        run=a_run(run_id=claim.run_id, device="cpu"), measurement=a_measurement(plan=lab.measurement)
    )
    assert results.store_evidence(local.store, claim, "measured", evidence.model_dump_json().encode(), {})
    local.judge()
    submission_id = local.submit(mode="preflight")
    assert local.run_all(local.deps(reuse_days=1.0)) == [StageEnd.STORED]
    assert len(executed) == 1
    stored = results.load_evidence(local.store, local.run(submission_id).run_id)
    assert stored.kind == "evidence"
    assert Evidence.model_validate_json(stored.document).run.reused_from is None


def test_the_audit_trail_calls_it_what_it_is(local):
    """So that figures of verdicts are those of grades."""
    submission_id = local.submit(mode="preflight")
    local.run_all(local.deps())
    local.judge()
    details = dict(local.events(submission_id))
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
