"""What an author's code raises is shown with its line and traceback to whoever runs it, and nothing is promised."""

import json

import pytest

from checks.raising import MOST, raised
from checks.registry import Registry, load_file
from grader_service.cli import app as command_line
from grader_service.errors import ConfigurationError, JudgeFailed, SandboxUnavailable
from grader_service.judging.process import JudgeProcess
from grader_service.judging.verdicts import our_failure
from grader_service.labs.catalogue import load_lab
from grader_service.model.lab import LabCheck, LabStep
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode
from sandbox.api import SandboxFacts
from tests import reviewing
from tests.command_line import grader, invoked
from tests.factories import an_evidence

CHECK = '''
from checks.api import Check, Result, passed
from grader_service.model.base import Wire


class Nothing(Wire):
    pass


class Stumbles(Check):
    """Points: all. Cannot detect: anything."""

    id, version, title = "stumbles", "1.0.0", "Stumbles"
    needs, probes, params_model, observation_model = frozenset(), ("looks",), Nothing, Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params):
        return passed(str(self.helped(0)))

    def helped(self, number):
        return 1 / number  # the author's line


CHECK = Stumbles()
'''
PROBE = """
PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 10.0


def probe(context):
    return {"found": {}["nothing"]}
"""
LINE = CHECK.splitlines().index("        return 1 / number  # the author's line") + 1


@pytest.fixture
def stumbles(tmp_path):
    """A check that raises when it judges, with a probe that raises when it looks."""
    folder = tmp_path / "check"
    folder.mkdir()
    (folder / "stumbles.py").write_text(CHECK)
    (folder / "looks.py").write_text(PROBE)
    return folder / "stumbles.py"


def test_an_exception_is_told_from_the_authors_first_line_on(stumbles):
    """Also where a library of somebody else raised at last: the line is the author's."""

    def called():
        json.loads("{")

    try:
        called()
    except ValueError as error:
        told = raised(error)
    line = called.__code__.co_firstlineno + 1
    assert told.text.startswith(f"JSONDecodeError at test_raised.py, line {line}: Expecting property name")
    assert told.traceback.startswith("Traceback (most recent call last):\n")
    assert "in called" in told.traceback
    assert "test_an_exception" not in told.traceback
    assert told.traceback.endswith("char 1)")


def test_what_is_raised_is_bounded_and_safe_to_show():
    """Texts of learners are in it, and texts that cannot be made at all."""

    class Silent(Exception):
        def __str__(self):
            raise ValueError

    def raises(error):
        raise error

    def told_of(error):
        try:
            raises(error)
        except (Silent, ValueError) as caught:
            return raised(caught)

    hostile = told_of(ValueError("\x1b[31m" + "x" * 10_000))
    assert "\x1b" not in hostile.text + hostile.traceback
    assert len(hostile.text) <= 500
    assert len(hostile.traceback) <= MOST
    assert "(an exception whose text cannot be read)" in told_of(Silent()).text


def test_a_check_that_raises_in_its_process_is_told_with_its_line(stumbles):
    """The process that judges is another one, and its traceback comes over."""
    step = LabStep(id="s", title="S", checks=(LabCheck(id="stumbles", points=1),))
    with JudgeProcess(check_files=[stumbles]) as judging, pytest.raises(JudgeFailed) as caught:
        judging.judge(an_evidence(), [step], Registry(files=[stumbles]))
    assert str(caught.value) == (
        f"check 'stumbles' of file stumbles.py failed: ZeroDivisionError at stumbles.py, line {LINE}: division by zero"
    )
    assert f'stumbles.py", line {LINE}, in helped\n' in caught.value.traceback
    assert "return 1 / number  # the author's line" in caught.value.traceback
    assert "grader_service" not in caught.value.traceback


def test_a_file_that_does_not_run_is_told_with_its_line(stumbles):
    """Before anything is graded; and a file that is not there is said to be none."""
    stumbles.write_text("import json\n\nLIMIT = json.loads('{')\n")
    with pytest.raises(ConfigurationError, match=r"does not run: JSONDecodeError at stumbles\.py, line 3: "):
        load_file(stumbles)
    stumbles.unlink()
    with pytest.raises(ConfigurationError, match=r"there is no check file .*stumbles\.py; expected a Python file"):
        load_file(stumbles)


def test_the_terminal_shows_traceback_and_line(monkeypatch, capsys):
    """Of a check; what else ends a command has one line."""

    def fail():
        raise JudgeFailed("x", "file x.py", "ZeroDivisionError at x.py, line 3: \x1b[2J", "Traceback: [b]\n  line 3")

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    told = capsys.readouterr().err
    assert ended.value.code == 3
    assert told.startswith(
        "Traceback: [b]\n  line 3\n\ngrader: check 'x' of file x.py failed: ZeroDivisionError at x.py"
    )
    assert "\x1b[2J" not in told


def test_checks_run_names_the_observation(tmp_path, monkeypatch):
    """What came before it was answered."""
    reviewing.install(tmp_path / "installed", monkeypatch)
    lines = tmp_path / "observations.jsonl"
    lines.write_text('{"words": ["good"]}\n{"words": []}\n')
    with pytest.raises(JudgeFailed, match=r"at observation 2: IndexError at doubtful_check\.py, line \d+: ") as caught:
        invoked("checks", "run", reviewing.CHECK, "--lab", reviewing.LAB, "--observations", str(lines))
    assert 'if observation.words[0] == "good":' in caught.value.traceback


@pytest.mark.slow
@pytest.mark.integration
def test_checks_test_shows_a_traceback(stumbles):
    """Below the property that does not hold, for people and as JSON."""
    done = invoked("checks", "test", str(stumbles), "--skip-controls", status=1)
    assert f"ZeroDivisionError at stumbles.py, line {LINE}" in done.stdout
    assert f'stumbles.py", line {LINE}, in helped' in done.stdout
    done = invoked("checks", "test", str(stumbles), "--skip-controls", "--json", status=1)
    failed = {one["name"]: one["traceback"] for one in json.loads(done.stdout)["properties"] if one["traceback"]}
    assert "in helped" in failed["hostile"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (SandboxUnavailable("no engine"), "Nothing runs again by itself: grade it once more"),
        (JudgeFailed("x", "y", "z"), "tell the course's staff, who have to mend the check first"),
    ],
)
def test_a_verdict_of_our_failure_promises_nothing(error, says):
    """Only a queue would run it again, and the service makes no such verdict; nor does it tell our insides."""
    submission = Submission(submission_id="t:1", lab="dali-pipelines", filename="s.py", sha256="0" * 64, size_bytes=1)
    lab = load_lab("dali-pipelines", Registry())
    facts = SandboxFacts("process", isolated=False, image=None, image_digest=None, engine=None, gpu_access=None)
    verdict = our_failure(submission, lab, lab.steps, error, facts, Mode.REHEARSAL)
    assert verdict.status == "error"
    assert "this attempt does not count" in verdict.feedback
    assert says in verdict.feedback
    assert "will be run again" not in verdict.feedback
    assert "no engine" not in verdict.feedback


@pytest.mark.integration
def test_an_author_who_tries_a_check_sees_where_it_raised(stumbles, state_dir, tmp_path):
    """Check and probe, each with its line; the verdict is there, and the evidence of the run is not lost."""
    submission, evidence = tmp_path / "s.py", tmp_path / "e.json"
    submission.write_text("x = 1\n")
    done = grader(
        "grade", str(submission), "--check", str(stumbles), "--steps", "tried", "--sandbox", "process",
        "--device", "cpu", "--evidence", str(evidence), state_dir=state_dir,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("! A check of the grader failed")
    assert "\nERROR" in done.stdout
    assert "who have to mend the check first" in done.stdout
    assert "grader: probe looks 1.0.0 raised:" in done.stderr
    line = PROBE.splitlines().index('    return {"found": {}["nothing"]}') + 1
    assert f'File "<probe looks>", line {line}, in probe\n    return {{"found": {{}}["nothing"]}}' in done.stderr
    assert f'stumbles.py", line {LINE}, in helped' in done.stderr
    assert done.stderr.rstrip().endswith(f"ZeroDivisionError at stumbles.py, line {LINE}: division by zero")
    (record,) = json.loads(evidence.read_text())["probes"]
    assert (record["status"], record["text"]) == ("raised", "KeyError: 'nothing'")
