"""Checks judge in a process of their own: what they do there stays there, and the next submission is judged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from checks.registry import Registry
from grader_service.errors import InfrastructureError, JudgeFailed
from grader_service.judging.checks import judge
from grader_service.judging.process import EvidenceUnreadable, JudgeLimits, JudgeProcess
from grader_service.judging.verdicts import compose
from grader_service.labs.catalogue import load_lab
from grader_service.model.lab import LabCheck, LabStep
from grader_service.model.submission import Submission
from grader_service.service.verdict_making import verdict_on
from tests.factories import an_evidence
from tests.judging.rogue import ROGUES
from tests.sandbox.guest.processes import state
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

ROGUE = Path(__file__).with_name("rogue.py").read_text()
SUBMISSION = Submission(submission_id="t:1", lab="dali-pipelines", filename="s.py", sha256="0" * 64, size_bytes=1)
LIMITS = JudgeLimits(check_timeout_s=60.0, memory_mib=768)
IMPATIENT = JudgeLimits(check_timeout_s=3.0, memory_mib=768)
"""For checks that never end."""


def step_of(*ids: str, advice: str = "") -> LabStep:
    checks = (LabCheck(id=name, points=int(name != advice), optional=name == advice) for name in ids)
    return LabStep(id="rogue", title="Rogue", checks=tuple(checks))


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    """A file for each rogue."""
    folder = tmp_path_factory.mktemp("rogues")
    found = [folder / f"{name}.py" for name in ROGUES]
    for file in found:
        file.write_text(ROGUE)
    return found


@pytest.fixture(scope="module")
def registry(files) -> Registry:
    return Registry(files=files)


@pytest.fixture
def process(files, request):
    rogue = request.getfixturevalue("rogue") if "rogue" in request.fixturenames else None
    with JudgeProcess(IMPATIENT if rogue == "hangs" else LIMITS, files) as judging:
        yield judging


@pytest.mark.parametrize(
    ("rogue", "reason"),
    [
        ("hangs", "not done within 3 s"),
        ("hoards", "MemoryError"),
        ("crashes", "status -11"),
        ("raises", "ZeroDivisionError"),
        ("writes", "Permission denied|File too large"),
        ("listens", "PermissionError"),
        ("exits", "status 3"),
    ],
)
def test_a_rogue_is_named_and_the_next_is_judged(process, registry, rogue, reason):
    """Its distribution and the reason are said, and the process is there for the next submission."""
    with pytest.raises(JudgeFailed, match=reason) as caught:
        process.judge(an_evidence(), [step_of(rogue)], registry)
    assert caught.value.check_id == rogue
    assert caught.value.distribution == f"file {rogue}.py"
    judged = process.judge(an_evidence(), [step_of("counts")], registry).checks
    assert judged[0].result.outcome == "passed"


def test_a_check_sees_no_secrets_and_says_nothing_aside(process, registry, monkeypatch, capfd):
    """Settings of the service stay out of its environment, and what it prints goes nowhere."""
    monkeypatch.setenv("GRADER_DATABASE_URL", "postgresql://secret")
    judged = process.judge(an_evidence(), [step_of("chats")], registry).checks
    assert "PATH" in judged[0].result.feedback
    assert "GRADER" not in judged[0].result.feedback
    assert capfd.readouterr() == ("", "")


def test_memory_of_a_check_ends_with_its_process(files, registry):
    """A process is replaced after its jobs, so that nothing is carried on for ever."""
    with JudgeProcess(JudgeLimits(most_jobs=2), files) as judging:
        judged = [judging.judge(an_evidence(), [step_of("counts")], registry).checks for _ in range(3)]
    texts = [one.result.feedback for [one] in judged]
    assert texts == ["1", "2", "1"]


def test_a_process_that_was_killed_meanwhile_is_replaced(process, registry):
    """Between two submissions it may be gone."""
    process.judge(an_evidence(), [step_of("counts")], registry)
    process._child._process.kill()
    process._child._process.wait()
    assert process.judge(an_evidence(), [step_of("counts")], registry).checks[0].result.feedback == "1"


def test_details_of_any_kind_are_written_down(process, registry):
    """As in the worker itself: numbers of numpy, sets, and text that UTF-8 cannot carry."""
    result = process.judge(an_evidence(), [step_of("details")], registry).checks[0].result
    assert result.details["number"] == 1.5
    assert result.details["set"] == "{1}"


def test_a_check_that_shouts_is_not_waited_for(process, registry):
    """The pipe of its standard error holds 64 KiB and nobody reads it meanwhile."""
    assert process.judge(an_evidence(), [step_of("shouts")], registry).checks[0].result.outcome == "passed"


@pytest.mark.parametrize("rogue", ["raises", "crashes", "hangs"])
def test_advice_that_fails_costs_no_verdict(process, registry, rogue):
    """An optional check that breaks, or takes its process down, is answered for; those around it are judged."""
    step = step_of("chats", rogue, "counts", advice=rogue)
    before, advice, after = process.judge(an_evidence(), [step], registry).checks
    assert (advice.result.outcome, advice.result.code) == ("error", "judge.failed")
    assert (before.check.id, after.check.id) == ("chats", "counts")
    assert before.result.outcome == after.result.outcome == "passed"


@pytest.mark.parametrize("document", [b"{}", b"no JSON", b'{"run": 1}'])
def test_what_is_no_evidence_is_said(process, registry, document):
    """A damaged document is no failure of a check, and the next one is judged."""
    with pytest.raises(EvidenceUnreadable):
        process.judge(document, [step_of("counts")], registry)
    assert process.judge(an_evidence(), [step_of("counts")], registry).checks[0].result.outcome == "passed"


def test_evidence_as_json_is_judged_as_the_same():
    """A verdict from a stored document says what one from the evidence itself says, whichever process judged."""
    own = Registry()
    lab = load_lab("dali-pipelines", own)
    evidence = an_evidence()
    document = evidence.model_dump_json().encode()
    with JudgeProcess() as judging:
        there = verdict_on(SUBMISSION, lab, evidence.run.run_id, "measured", document, own, judging)
    here = verdict_on(SUBMISSION, lab, evidence.run.run_id, "measured", document, own, None)
    given = compose(SUBMISSION, lab, lab.steps, judge(evidence, lab.steps, own), evidence)
    own_ones = {"verdict_id", "created_at"}
    assert there.model_dump(exclude=own_ones) == here.model_dump(exclude=own_ones) == given.model_dump(exclude=own_ones)


@pytest.mark.parametrize("part", ["run", "scan"])
def test_a_run_whose_document_cannot_be_read_is_named(part):
    """Whichever process finds out: what a verdict quotes is read by the service, the rest where checks judge."""
    own = Registry()
    lab = load_lab("dali-pipelines", own)
    document = json.dumps(an_evidence().model_dump(mode="json") | {part: {"wrong": 1}}).encode()
    with JudgeProcess() as judging:
        for process in (judging, None):
            with pytest.raises(InfrastructureError, match="the document of run r-7 cannot be read"):
                verdict_on(SUBMISSION, lab, "r-7", "measured", document, own, process)


def test_the_version_is_that_of_the_code_that_judged(tmp_path):
    """A plugin that was upgraded under a running worker is named as it judged, not as the worker knew it."""
    file = tmp_path / "counts.py"
    file.write_text(ROGUE)
    known = Registry(files=[file])
    file.write_text(ROGUE.replace('"1.0.0"', '"2.0.0"'))
    with JudgeProcess(LIMITS, [file]) as judging:
        assert judging.judge(an_evidence(), [step_of("counts")], known).checks[0].version == "2.0.0"


def test_a_judge_whose_worker_is_gone_ends_by_itself(files):
    """Nobody watches the time any more; the process does."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from checks.registry import Registry\n"
        "from grader_service.judging.process import JudgeLimits, JudgeProcess\n"
        "from tests.factories import an_evidence\n"
        "from tests.judging.test_process import step_of\n"
        "import threading, time\n"
        f"files = [Path({str(next(file for file in files if file.stem == 'spins'))!r})]\n"
        "judging = JudgeProcess(JudgeLimits(check_timeout_s=1.0), files)\n"
        "judging.start()\n"
        "print(judging._child._process.pid, flush=True)\n"
        "threading.Timer(4.0, os._exit, (9,)).start()\n"
        "judging._child.receive = lambda timeout_s: (time.sleep(600))\n"
        "judging.judge(an_evidence(), [step_of('spins')], Registry(files=files))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    pid = int(done.stdout)
    wait_for(lambda: state(pid) is None, 10.0)
