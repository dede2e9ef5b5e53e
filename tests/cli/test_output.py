"""What commands print on, and where they write."""

import io
import os
import re
import sys
import time

import pytest
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from grader_service.cli import output
from grader_service.cli.output import ProgressDisplay, check_targets, console, error_console, table_of
from grader_service.errors import UsageError

LONG = "lms:100:" + "4711" * 31  # `:100:` is no emoji


@pytest.mark.parametrize(("made", "stream"), [(console, "stdout"), (error_console, "stderr")])
def test_a_console_is_as_wide_as_the_terminal_of_the_moment(monkeypatch, made, stream):
    """Commands of one process are not held to the width that the first one found."""
    monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    for width in (70, 150):
        monkeypatch.setenv("COLUMNS", str(width))
        assert made().width == width


class TestProgressDisplay:
    """What somebody sees who waits for a grading."""

    @pytest.fixture
    def shown(self, monkeypatch):
        """Everything on standard error, of a terminal of 100 columns or of a log."""
        written = io.StringIO()

        def of(*, terminal):
            made = Console(file=written, force_terminal=terminal, width=100, highlight=False)
            monkeypatch.setattr(output, "error_console", lambda: made)
            return written

        return of

    def test_on_a_terminal_it_is_live(self, shown):
        """Time, limit and the last line stand in one line, which is as wide as the terminal; markup is text."""
        written = shown(terminal=True)
        with ProgressDisplay() as display:
            display.stage("running the submission", key="learner", limit_s=900.0)
            time.sleep(0.2)
            display.running(12.4, 900.0, "[bold]epoch 3[/bold] " + "x" * 79)
            time.sleep(0.3)
            display.stage("counting")
            time.sleep(0.2)
        text = written.getvalue()
        assert "running the submission … 0 of 900 s" in text
        assert "running the submission … 12 of 900 s" in text
        assert "│ [bold]epoch 3[/bold] xxx" in text
        assert "counting … 0 s" in text
        assert "running the submission: 12." in text
        assert "x" * 79 not in text

    def test_in_a_log_it_is_a_line_now_and_then(self, shown, monkeypatch):
        """Not each of the hundreds of times that something could be said."""
        written = shown(terminal=False)
        monkeypatch.setattr(output, "_LOG_EVERY_S", 0.2)
        with ProgressDisplay() as display:
            display.running(1.0, None, "of no stage")
            display.stage("running the submission", key="learner", limit_s=900.0)
            for number in range(30):
                display.running(30.0, 900.0, f"step {number}")
                time.sleep(0.02)
            display.stage("counting")
            display.running(1.0, None, "")
        lines = written.getvalue().splitlines()
        assert lines[0].endswith("running the submission …")
        assert lines[-1].endswith("counting …")
        steps = [line for line in lines if "step" in line]
        assert 1 <= len(steps) < 30
        assert "  30 of 900 s: step " in steps[0]
        assert len(lines) == len(steps) + 2

    def test_when_quiet_it_says_nothing(self, shown):
        """Standard error stays for errors."""
        written = shown(terminal=False)
        with ProgressDisplay(quiet=True) as display:
            display.stage("running")
            display.note("a block")
            display.running(99.0, 1.0, "x")
        assert written.getvalue() == ""


@pytest.mark.parametrize("columns", ["20", None])
@pytest.mark.parametrize(("made", "stream"), [(console, "out"), (error_console, "err")])
def test_nothing_is_cut_where_there_is_no_terminal(monkeypatch, capsys, made, stream, columns):
    """Whatever is printed there and however wide the user's terminal is; lines end without blanks."""
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    rows = [(LONG, "waits"), ("short", "was [b]judged long ago")]
    made().print(table_of("submission", "state", rows=rows, overflow="ellipsis"))
    made().print(f"run {LONG}: " + "word " * 50, markup=False)
    made().print(Padding(Text(f"[b]{LONG} {LONG}"), (0, 0, 0, 2)))
    lines = getattr(capsys.readouterr(), stream).splitlines()
    assert [line.split() for line in lines[1:3]] == [[LONG, "waits"], ["short", "was", "[b]judged", "long", "ago"]]
    assert lines[3:] == [f"run {LONG}: {'word ' * 50}".rstrip(), f"  [b]{LONG} {LONG}"]
    assert all(line == line.rstrip() for line in lines)


def test_a_terminal_that_is_narrow_still_folds(monkeypatch, capsys):
    """A person reads there, and the terminal has a width."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    console().print(table_of("submission", rows=[(LONG,)]))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, plain.splitlines())) <= 40


@pytest.fixture
def submission(tmp_path):
    """A file that is graded."""
    path = tmp_path / "s.py"
    path.write_text("x = 1\n")
    return path


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (".", "is a folder; name a file in it"),
        ("none/v.json", "there is no folder none; make it first"),
        ("s.py/v.json", "there is no folder s.py; make it first"),
        ("s.py", "would overwrite the submission"),
        ("link.py", "would overwrite the submission"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_what_cannot_be_written_is_said_beforehand(submission, monkeypatch, target, problem):
    """With the option, and nothing was made meanwhile."""
    monkeypatch.chdir(submission.parent)
    (submission.parent / "link.py").symlink_to(submission)
    before = sorted(submission.parent.iterdir())
    with pytest.raises(UsageError, match=f"^--report {re.escape(target)} .*{re.escape(problem)}"):
        check_targets({"--json": None, "--report": target}, submission)
    assert sorted(submission.parent.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_may_not_be_written_is_said_beforehand(tmp_path):
    """A folder, and a file, of somebody else."""
    file = tmp_path / "v.json"
    file.touch(mode=0o400)
    with pytest.raises(UsageError, match=r"no permission to write to .*json"):
        check_targets({"--json": str(file)})
    file.unlink()
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match=f"no permission to write to {re.escape(str(tmp_path))}"):
        check_targets({"--json": str(file)})
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("pair", [("v.json", "./v.json"), ("-", "-")])
def test_one_file_for_two_options_is_refused(tmp_path, monkeypatch, pair):
    """The second would write over the first."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"--json and --evidence both write to .*; give each a file of its own"):
        check_targets(dict(zip(("--json", "--evidence"), pair, strict=True)))


def test_files_that_can_be_written_pass(submission):
    """New ones, those that are there, devices, and standard output."""
    (submission.parent / "old.json").write_text("{}")
    names = ("old.json", "new.json")
    check_targets(
        {name: str(submission.parent / name) for name in names} | {"--a": "-", "--b": "/dev/null"}, submission
    )
