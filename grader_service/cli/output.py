"""Consoles, and a progress display for terminals and for logs."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, OverflowMethod
from rich.status import Status
from rich.table import Table
from rich.text import Text

from grader_service.errors import UsageError


def console() -> Console:
    """Standard output: results."""
    return Console(soft_wrap=False, highlight=False)


def error_console() -> Console:
    """Standard error: progress and failures."""
    return Console(stderr=True, highlight=False)


def tell(text: str) -> None:
    """One line on standard error, as it is."""
    error_console().print(text, markup=False, soft_wrap=True)


def table_of(*headings: str, overflow: OverflowMethod = "fold") -> Table:
    """A table without lines, to be filled row by row.

    Args:
        headings: of its columns.
        overflow: what becomes of a text that is wider than its column.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow=overflow)
    return table


def when(seconds: float) -> str:
    """A moment in UTC, from seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def write_text(target: str, text: str) -> None:
    """Writes a result to a file, or to standard output for `-`.

    Raises:
        UsageError: the file cannot be written.
    """
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error}") from error


_LOG_EVERY_S = 30.0
"""In a log, between two lines about a stage that goes on."""


class _Running:
    """The stage that runs, as a terminal shows it whenever it draws the line anew."""

    def __init__(self, name: str, limit_s: float | None) -> None:
        self.name = name
        self.limit_s = limit_s
        self.since = time.monotonic()
        self.told = self.since
        self.line = ""

    def spent(self) -> str:
        """How long it has run, and may."""
        limit = "" if self.limit_s is None else f" of {self.limit_s:.0f}"
        return f"{time.monotonic() - self.since:.0f}{limit} s"

    def __rich__(self) -> Text:
        text = Text(f"{self.name} … {self.spent()}", no_wrap=True, overflow="ellipsis")
        return text.append(f"  │ {self.line}", style="dim") if self.line else text


class ProgressDisplay:
    """Shows stages with their times, and what the learner's code printed last.

    Live on a terminal; in a log a line for each stage, and one every half a minute in it; nothing when quiet.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._started = time.monotonic()
        self._stage: _Running | None = None
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if not self._quiet and error_console().is_terminal:
            self._status = error_console().status("starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_stage()
        if self._status is not None:
            self._status.stop()

    def stage(self, name: str, *, key: str = "", limit_s: float | None = None) -> None:
        """See `Progress.stage`."""
        del key
        self._end_stage()
        self._stage = _Running(name, limit_s)
        if self._status is not None:
            self._status.update(self._stage)
        else:
            self._line(f"{name} …")

    def note(self, text: str) -> None:
        """See `Progress.note`."""
        self._line(f"  {text}")

    def running(self, elapsed_s: float, limit_s: float | None, line: str) -> None:
        """See `Progress.running`."""
        stage = self._stage
        if stage is None:
            return
        now = time.monotonic()
        stage.since, stage.limit_s, stage.line = now - elapsed_s, limit_s, line
        if self._status is None and now - stage.told >= _LOG_EVERY_S:
            stage.told = now
            self._line(f"  {stage.spent()}{': ' if line else ''}{line}")

    def _end_stage(self) -> None:
        if self._stage is not None and self._status is not None:
            self._line(f"{self._stage.name}: {time.monotonic() - self._stage.since:.1f} s")
        self._stage = None

    def _line(self, text: str) -> None:
        if not self._quiet:
            elapsed = time.monotonic() - self._started
            error_console().print(Text(f"[{elapsed:6.1f} s] {text}", style="dim"))
