"""`grader checks dev`: one run, judged at every save; what went wrong is shown where it is; a key keeps a control."""

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time
import tomllib

import pytest

from checks.api import failed, passed
from checks.authoring.material import CONTROLS_FILE, read_controls
from checks.authoring.scaffold import ProbeChoice, create_package
from checks.authoring.target import load_target
from grader_service.authoring.controls import examine_controls
from grader_service.authoring.dev_loop import DevLoop
from grader_service.authoring.pytest_plugin import grader_process_runner  # noqa: F401 - a fixture
from grader_service.authoring.recording import record_control
from grader_service.authoring.trying import read_params
from grader_service.errors import UsageError
from grader_service.run.progress import Silent

CHECK = '''"""Words."""

from checks.api import LearnerProbe, Observation, Result, check, failed, passed, probe


class Words(Observation):
    count: int


@probe(version="1.0.0")
def counted(context: LearnerProbe) -> Words:
    """Counts."""
    print("looked at", len(context.names["words"]))
    return Words(count=len(context.names["words"]))


@check(version="1.0.0")
def enough_words(words: Words, *, least: int = 2) -> Result:
    """There are enough words."""
    if words.count < least:
        return failed("too_few", f"Words: {words.count}.", next="Write more.")
    return passed(f"Words: {words.count}.")
'''


@pytest.fixture
def check(tmp_path):
    """The check's file."""
    path = tmp_path / "enough_words.py"
    path.write_text(CHECK)
    return path


@pytest.fixture
def submission(tmp_path):
    """Two words."""
    path = tmp_path / "submission.py"
    path.write_text("words = ['a', 'b']\n")
    return path


@pytest.fixture
def loop(check, submission, grader_process_runner):  # noqa: F811 - the fixture
    """A loop in this process."""
    progress = contextlib.nullcontext(Silent())
    return DevLoop(check, submission, {}, runner=grader_process_runner, progress=lambda: progress)


@pytest.mark.integration
def test_a_save_is_judged_from_the_kept_run(loop, check):
    """Another sentence or default needs no run; another probe does, and another default of one that reads it."""
    first = loop.look()
    assert (first.result.code, first.observation.words.count) == ("enough_words.ok", 2)
    assert first.ran_s is not None
    assert first.printed == {"counted": "looked at 2\n"}

    check.write_text(CHECK.replace("least: int = 2", "least: int = 3"))
    second = loop.look()
    assert (second.result.code, second.ran_s) == ("enough_words.too_few", None)
    assert second.seconds < 1

    check.write_text(CHECK.replace("looked at", "saw"))
    third = loop.look()
    assert third.ran_s is not None
    assert third.printed == {"counted": "saw 2\n"}

    reads = CHECK.replace('print("looked at"', 'print(context.params["enough_words"]["least"], "of"')
    for least in (2, 3):
        check.write_text(reads.replace("least: int = 2", f"least: int = {least}"))
        assert loop.look().printed == {"counted": f"{least} of 2\n"}
    loop.forget()
    assert loop.look().ran_s is not None


@pytest.mark.integration
def test_what_is_wrong_is_shown_where_it_is(loop, check):
    """In the check, in its probe, in the file, in the parameters; the loop goes on."""
    loop.look()
    broken = CHECK.replace("return passed(f", "return passed(missing + f")
    check.write_text(broken)
    line = next(number for number, text in enumerate(broken.splitlines(), 1) if "missing" in text)
    problem = loop.look().problem
    assert problem.text == f"NameError at enough_words.py, line {line}: name 'missing' is not defined"
    assert "return passed(missing" in problem.traceback

    check.write_text(CHECK.replace('context.names["words"]))', 'context.names["wrods"]))', 1))
    looked = loop.look()
    assert "KeyError" in looked.probes_raised["counted"]
    line = next(number for number, text in enumerate(check.read_text().splitlines(), 1) if "wrods" in text)
    assert f"line {line}" in looked.probes_raised["counted"]
    assert looked.result.outcome != "passed"

    check.write_text(f"{CHECK}\nx = = 3\n")
    assert f"line {len(CHECK.splitlines()) + 2}" in loop.look().problem.text
    check.write_text("")
    assert "defines no check" in loop.look().problem.text
    check.unlink()
    assert "there is no check file" in loop.look().problem.text
    check.write_text(CHECK)
    loop.params["lest"] = 1
    problem = loop.look().problem
    assert 'lest: no such parameter; did you mean "least"' in problem.text
    assert problem.traceback == ""
    loop.params.clear()
    assert loop.look().result.code == "enough_words.ok"


GOOD = passed("Good.", code="enough_words.ok")
FEW = failed("enough_words.too_few", "Few.")


def record(check, content=b"words = ['a', 'b']\n", params=None, result=GOOD, name="submission.py"):
    """Records a control of the check."""
    return record_control(load_target(f"file:{check}"), name, content, params or {}, result)


def recorded(check):
    """What the suite reads of it."""
    return read_controls(load_target(f"file:{check}"))[1].control


def test_a_result_is_kept_as_a_control(check):
    """Its submission, parameters and code, which the suite then holds the check to; twice is once."""
    kept = record(check, params={"least": 1})
    assert record(check, params={"least": 1}) == kept
    record(check, params={"least": 5}, result=FEW)
    assert kept == check.with_suffix("") / "controls" / "passed" / "submission.py"
    assert kept.read_bytes() == b"words = ['a', 'b']\n"
    entries = tomllib.loads((kept.parents[1] / CONTROLS_FILE).read_text())["control"]
    assert [(one["file"], one["code"], one["params"]) for one in entries] == [
        ("passed/submission.py", "enough_words.ok", {"least": 1}),
        ("failed/submission.py", "enough_words.too_few", {"least": 5}),
    ]
    folder, read = read_controls(load_target(f"file:{check}"))
    assert (folder, len(read.control)) == (kept.parents[1], 2)


def test_another_submission_of_the_same_name_is_kept_beside_the_first(check):
    """Nothing is overwritten."""
    first, second = record(check), record(check, b"words = ['c', 'd']\n")
    assert (first.name, second.name) == ("submission.py", "submission-2.py")
    assert (first.read_bytes(), second.read_bytes()) == (b"words = ['a', 'b']\n", b"words = ['c', 'd']\n")
    assert record(check, b"words = ['c', 'd']\n") == second
    assert [one.file for one in recorded(check)] == ["passed/submission.py", "passed/submission-2.py"]
    assert record(check, b"x", name="a b.tar.gz").name == "a_b.tar.gz"
    assert record(check, b"y", name="a b.tar.gz").name == "a_b-2.tar.gz"


def test_entries_are_compared_and_not_their_texts(check):
    """An entry whose text goes on where another one ends is another entry; one with other spaces is the same."""
    record(check, params={"least": 1})
    record(check)
    assert [dict(one.params) for one in recorded(check)] == [{"least": 1}, {}]
    known = check.with_suffix("") / "controls" / CONTROLS_FILE
    known.write_text(known.read_text().replace(" = ", "="))
    before = known.read_text()
    record(check, params={"least": 1})
    assert known.read_text() == before


def test_what_contradicts_the_recorded_controls_is_refused(check):
    """The same bytes and parameters with another result, or a parameter that the file sets for all: nothing changes."""
    kept = record(check)
    known = kept.parents[1] / CONTROLS_FILE
    before = known.read_text()
    with pytest.raises(UsageError, match=r"expects passed enough_words\.ok of passed/submission\.py"):
        record(check, result=FEW)
    known.write_text(f"params = {{ least = 3 }}\n{before}")
    with pytest.raises(UsageError, match="--param least=3"):
        record(check, b"other")
    assert record(check, params={"least": 3}) == kept
    known.write_text("control = []\n")
    with pytest.raises(UsageError, match="with this control"):
        record(check, b"other")
    with pytest.raises(UsageError, match="with this control"):
        record(check, name="submission.txt")
    assert known.read_text() == "control = []\n"
    assert [path.name for path in kept.parent.iterdir()] == ["submission.py"]


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("it={a=1, 'b c'=[true, {d='x'}]}", {"a": 1, "b c": [True, {"d": "x"}]}),
        ("it='\U0001f600 \u2028 \x85'", "\U0001f600 \u2028 \x85"),
        (r'it="\u007f\u0000\n\"\\"', '\x7f\0\n"\\'),
        ("it=-1e-300", -1e-300),
        ("it=2026-01-02", "2026-01-02"),
        ("it=2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("größe=3", 3),
    ],
)
def test_parameters_come_back_from_the_file_as_they_were(check, pair, value):
    """Whatever `--param` takes; dates as their texts, which is how a check is given them."""
    params = read_params([pair])
    record(check, params=params)
    record(check, params=params)
    (control,) = recorded(check)
    assert dict(control.params) == dict.fromkeys(params, value)


@pytest.mark.parametrize("text", ["inf", "[nan]", "{a=-inf}"])
def test_numbers_without_end_are_refused(check, text):
    """The file would not be read again, so nothing is written."""
    with pytest.raises(UsageError, match=r"with this control: control\.0\.params"):
        record(check, params=read_params([f"it={text}"]))
    assert not check.with_suffix("").exists()


@pytest.mark.integration
def test_only_what_was_run_is_kept(loop, check, submission):
    """A submission that was saved meanwhile is another one."""
    looked = loop.look()
    submission.write_text("words = []\n")
    with pytest.raises(UsageError, match="press r"):
        loop.keep(looked)
    assert not check.with_suffix("").exists()
    loop.forget()
    with pytest.raises(UsageError, match="no result to keep"):
        loop.keep(looked)
    kept = loop.keep(loop.look())
    assert kept.read_text() == "words = []\n"
    assert recorded(check)[0].code == "enough_words.too_few"


@pytest.mark.integration
def test_a_check_that_ends_its_process_is_told(loop, check, grader_process_runner):  # noqa: F811 - the fixture
    """As what it raises, here and with its controls."""
    record(check)
    ends = CHECK.replace("return passed(f", "raise SystemExit(0)\n    return passed(f")
    check.write_text(ends)
    assert "SystemExit at enough_words.py, line" in loop.look().problem.text
    found = examine_controls(load_target(f"file:{check}"), runner=grader_process_runner)
    assert (found.status, "the check raised SystemExit" in found.text) == ("failed", True)


@pytest.mark.integration
def test_a_check_of_a_package_imports_from_it(tmp_path, monkeypatch, submission, grader_process_runner):  # noqa: F811
    """Without being installed; what is imported is as new as the check's file."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = create_package("many_words", ProbeChoice.NONE, tmp_path) / "src" / "grader_check_many_words"
    (folder / "words.py").write_text("LEAST = 2\n")
    check = folder / "check.py"
    text = CHECK.replace("enough_words", "many_words").replace("least: int = 2", "least: int = LEAST")
    text = text.replace(
        "\nclass", "\nfrom .words import LEAST\nfrom grader_check_many_words.words import LEAST as SAME\n\nclass", 1
    )
    check.write_text(text)
    progress = contextlib.nullcontext(Silent())
    loop = DevLoop(check, submission, {}, runner=grader_process_runner, progress=lambda: progress)
    looked = loop.look()
    assert (looked.problem, looked.result.code) == (None, "many_words.ok")
    (folder / "words.py").write_text("LEAST = 3\n")
    looked = loop.look()
    assert (looked.result.code, looked.ran_s) == ("many_words.too_few", None)
    assert (folder / "controls").is_dir()
    assert loop.keep(looked) == folder / "controls" / "failed" / "submission.py"


def dev(check, submission, *options, **kwargs):
    """The command, as an author types it."""
    command = [sys.executable, "-m", "grader_service", "checks", "dev", str(check), str(submission), *options]
    return subprocess.Popen(command, cwd=check.parent, text=True, **kwargs)


@pytest.mark.integration
def test_once_ends_with_a_status(check, submission):
    """0 where the check answered, whatever it answered; 1 where it did not; 2 for what cannot be tried."""
    for options, text, status in (
        (("--param", "least=9"), CHECK, 0),
        ((), CHECK.replace("return passed(f", "return passed(missing + f"), 1),
        (("--param", "least"), CHECK, 2),
    ):
        check.write_text(text)
        done = dev(check, submission, "--once", *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        told, errors = done.communicate(timeout=120)
        assert done.returncode == status, errors
    assert "expected key=value" in errors
    assert told == ""


@pytest.mark.integration
def test_an_author_saves_keeps_a_control_and_ends(check, submission):
    """At a terminal, with its keys."""
    ours, theirs = pty.openpty()
    process = dev(check, submission, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)

    def until(end):
        shown, deadline = "", time.monotonic() + 60
        while end not in shown:
            assert time.monotonic() < deadline, shown
            assert process.poll() is None, shown
            if select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 65536).decode(errors="replace")
        return shown

    try:
        shown = until("q: quit")
        assert "probe counted printed:" in shown
        assert '"count": 2' in shown
        assert "passed enough_words.ok (score 1, tier D)" in shown
        check.write_text(CHECK.replace("least: int = 2", "least: int = 3"))
        shown = until("q: quit")
        assert "failed enough_words.too_few" in shown
        assert float(re.search(r"judged in ([\d.]+) s", shown)[1]) < 1
        assert "after a run" not in shown
        os.write(ours, b"c")
        assert "enough_words.too_few" in until("kept as")
        os.write(ours, b"c")
        until("kept as")
        submission.write_text("words = ['a']\n")
        os.write(ours, b"c")
        until("press r")
        os.write(ours, b"r")
        assert "after a run of" in until("q: quit")
        os.write(ours, b"q")
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        os.close(ours)
    assert (check.with_suffix("") / "controls" / "failed" / "submission.py").is_file()
