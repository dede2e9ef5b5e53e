"""Verdicts of every kind: as our own functions make them, as a GPU run left them, and as Hypothesis thinks them up."""

import json
from datetime import UTC, datetime

from hypothesis import strategies as st

from checks.api import failed, passed, undecided
from checks.registry import Registry
from checks.stopped import not_reached
from grader_service.errors import SandboxUnavailable, SubmissionRejected
from grader_service.judging import verdicts
from grader_service.judging.checks import Judged, Judgement
from grader_service.judging.run_reporting import report
from grader_service.labs.catalogue import load_lab
from grader_service.model.feedback import Advice, Feedback, NextStep
from grader_service.model.place import Place
from grader_service.model.run_report import RunEnding, RunReport
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode, Outcome, Status, Verdict
from sandbox.api import SandboxFacts
from tests.factories import an_evidence
from tests.levels.parts import ROOT
from tests.report.cases import CASES
from tests.report.factories import check, provenance, stopped_run, verdict
from tests.report.hostile import HOSTILE

CANARY = "only-for-staff-7f3a"
"""Stands in the staff details of every check below."""
UNDECIDED = (Outcome.INCONCLUSIVE, Outcome.UNVERIFIED, Outcome.ERROR)


def _submission():
    return Submission(
        submission_id="platform:4711", lab="dali-pipelines", filename="s.py", sha256="ab" * 32, size_bytes=10
    )


def composed(*outcomes, run=None):
    """The verdict of the real rubric on the real lab, with these outcomes of its four checks; the code ran to its end.

    Args:
        run: how it ended otherwise.
    """
    lab = load_lab("dali-pipelines", Registry())
    results = {
        Outcome.PASSED: passed("Good.", code="check.ok", details={"staff": CANARY}),
        Outcome.FAILED: failed("check.too_few", "Too few: 3, wanted 100.", score=0.5, details={"staff": CANARY}),
        Outcome.SKIPPED: not_reached(needs_gpu=run is not None and run.code == "run.needs_gpu"),
    } | {outcome: undecided(outcome, "check.open", "Not decided.", details={"staff": CANARY}) for outcome in UNDECIDED}
    pairs = [(step, item) for step in lab.steps for item in step.checks]
    judged = [
        Judged(step, item, "1.0.0", "1.0.0 (here 1)", results[outcome])
        for (step, item), outcome in zip(pairs, outcomes, strict=True)
    ]
    evidence = an_evidence()
    made = verdicts.compose(_submission(), lab, lab.steps, Judgement(run or report(evidence), judged), evidence)
    return made.model_copy(update={"mode": Mode.OFFICIAL})


def _without_run(make, error):
    lab = load_lab("dali-pipelines", Registry())
    facts = SandboxFacts(
        name="docker", isolated=True, image="grader-lab", image_digest=None, engine="docker 27.1", gpu_access=None
    )
    return make(_submission(), lab, lab.steps, error, facts, Mode.OFFICIAL)


def _corpus():
    passing, failing = Outcome.PASSED, Outcome.FAILED
    found = {f"report_{name}": build() for name, build in CASES.items()}
    found["gpu"] = Verdict.model_validate_json((ROOT / "docs/gpu/verdict-h100.json").read_text())
    found["all_passed"] = composed(passing, passing, passing, passing)
    found["one_failed"] = composed(passing, passing, failing, passing)
    found["all_failed"] = composed(failing, failing, failing, failing)
    for outcome in UNDECIDED:
        found[f"one_{outcome.value}"] = composed(passing, passing, outcome, passing)
        found[f"failed_and_{outcome.value}"] = composed(failing, passing, outcome, passing)
    nothing = (Outcome.SKIPPED,) * 4
    found["not_reached"] = composed(*nothing, run=stopped_run())
    found["syntax_error"] = composed(*nothing, run=stopped_run(state=RunEnding.NOT_STARTED, code="run.syntax_error"))
    found["half_reached"] = composed(passing, failing, Outcome.SKIPPED, Outcome.SKIPPED, run=stopped_run())
    found["needs_gpu"] = composed(passing, *nothing[1:], run=stopped_run(code="run.needs_gpu"))
    found["passed_and_stopped"] = composed(passing, passing, passing, passing, run=stopped_run())
    found["our_fault_and_stopped"] = composed(passing, Outcome.ERROR, passing, passing, run=stopped_run())
    found["passed_without_points"] = verdict(checks=(check(score=None),))
    found["more_than_all_points"] = verdict(score=60.0)
    link = SubmissionRejected("archive.link", "The archive holds a link; take it out.")
    found["rejected"] = _without_run(verdicts.rejected, link)
    found["error"] = _without_run(verdicts.our_failure, SandboxUnavailable(CANARY))
    found["queue_full"] = verdicts.refused("lms:1", "dali-pipelines", "queue.full", "Send it again later.")
    found["cancelled"] = verdicts.refused("lms:3", "dali-pipelines", "submission.cancelled", "Staff cancelled it.")
    found["malformed"] = verdicts.refused("lms:2", "none", "message.malformed", "learner: must be text.")
    return found


CORPUS = _corpus()

_text = st.one_of(
    st.text(max_size=60), st.sampled_from(HOSTILE), st.text("<>&\"'`]\\\n\r\t\x00\x1b\ufffe\uffff", max_size=20)
)
_points = st.one_of(st.none(), st.just(0.0), st.floats(0, 1e6))
_known = st.floats(0, 1e6)
_whole = st.floats(1e-3, 1e6)
_ids = st.from_regex(r"[A-Za-z0-9._:-]{1,20}", fullmatch=True)
_codes = st.sampled_from(["jpeg.ok", "ratio.too_low", "queue.full", "grader.failed", "a.b.c"])
_places = st.none() | st.builds(
    Place, file=_text, line=st.integers(1, 99), source=_text, context=st.lists(_text, max_size=3).map(tuple)
)
_steps = st.none() | st.builds(NextStep, text=_text, code=_text, place=_places)
_advice = st.lists(st.builds(Advice, code=_codes, text=_text, next=_text, place=_places), max_size=2).map(tuple)
_runs = st.none() | st.builds(
    RunReport,
    state=st.sampled_from(RunEnding),
    code=_codes,
    outcome=_text,
    place=_places,
    cause=_text,
    remedy=_text,
    output_tail=_text,
    traceback=_text,
)


@st.composite
def checks(draw, *, decided):
    """A check with any text and a secret for staff; with any outcome and score, or one that was decided with points."""
    parts = draw(st.none() | st.builds(Feedback, outcome=_text, seen=_text, wanted=_text, next=_steps, advice=_advice))
    return check(
        draw(_ids),
        draw(st.sampled_from(["baseline", "benchmark", "a..b"])),
        draw(st.sampled_from([Outcome.PASSED, Outcome.FAILED] if decided else Outcome)),
        code=draw(_codes),
        score=draw(_known if decided else _points),
        max_score=draw(_whole),
        feedback=draw(_text) if parts is None else parts.text[:8192],
        parts=parts,
        details={"staff": CANARY, draw(_text): draw(_text)},
    )


@st.composite
def any_verdicts(draw):
    """Any verdict that the schema allows, whether or not its parts agree; half of them hold a grade."""
    decided = draw(st.booleans())
    known = {"timings_s": draw(st.dictionaries(st.text(max_size=5), st.floats(0, 1e308), max_size=3))}
    return verdict(
        submission_id=draw(_ids),
        mode=draw(st.sampled_from(Mode)),
        status=draw(st.sampled_from([Status.PASSED, Status.FAILED] if decided else Status)),
        code=draw(_codes),
        feedback=draw(_text),
        score=draw(_known if decided else _points),
        max_score=draw(_whole if decided else st.one_of(st.none(), _whole)),
        created_at=draw(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))),  # noqa: DTZ001
        checks=tuple(draw(st.lists(checks(decided=decided), max_size=4))),
        run=draw(_runs),
        measurement=None,
        provenance=provenance(host={"staff": CANARY}, gpu={"staff": CANARY}, **known),
    )


def may_hold_a_grade(item):
    """Whether a number of points may leave the service, said again in other words than the code's."""
    scores = [item.score, item.max_score, *(part.score for part in item.checks)]
    words = {part.outcome.value for part in item.checks}
    return None not in scores and item.status in {"passed", "failed"} and words <= {"passed", "failed", "skipped"}


def as_lines(*items):
    """JSON lines."""
    return "".join(json.dumps(item.model_dump(mode="json")) + "\n" for item in items)


def many_checks(count, length):
    """A verdict with so many checks whose feedback is so long."""
    parts = tuple(check(f"check_{number}", outcome=Outcome.FAILED, feedback="é" * length) for number in range(count))
    return verdict(status=Status.FAILED, score=0.0, checks=parts)
