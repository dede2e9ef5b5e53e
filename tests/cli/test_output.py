"""What commands print on."""

import io
import time

import pytest
from rich.console import Console

from grader_service.cli import output
from grader_service.cli.output import ProgressDisplay, console, error_console


@pytest.mark.parametrize("made", [console, error_console])
def test_a_console_is_as_wide_as_the_terminal_of_the_moment(monkeypatch, made):
    """Commands of one process are not held to the width that the first one found."""
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
