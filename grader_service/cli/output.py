"""Consoles, files that commands write, and a progress display for terminals and for logs."""

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from rich.console import Console, OverflowMethod
from rich.status import Status
from rich.table import Table
from rich.text import Text

from grader_service.errors import UsageError

_NO_WIDTH = 100_000
_BLANKS_AT_ENDS = re.compile(r" +$", re.MULTILINE)


class _Unbounded(Console):
    """Writes to a pipe or a file: no line is cut or wrapped, so that ids are whole, and none ends in blanks."""

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False, width=_NO_WIDTH, height=25)

    def print(self, *objects: Any, **how: Any) -> None:
        """See `rich.console.Console.print`."""
        with self.capture() as said:
            super().print(*objects, **how)
        try:
            self.file.write(_BLANKS_AT_ENDS.sub("", said.get()))
            self.file.flush()
        except BrokenPipeError:
            if not self.stderr:  # work goes on where nobody follows its progress
                _nobody_reads()


def _nobody_reads() -> NoReturn:
    """Ends as programs do whose reader has gone; never with 1, which would say that a submission failed."""
    with suppress(OSError, ValueError):  # no output that is left is tried once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(141)


def console() -> Console:
    """Standard output: results. An id such as `lms:100:7` holds no emoji."""
    return Console(highlight=False, emoji=False) if sys.stdout.isatty() else _Unbounded(stderr=False)


def error_console() -> Console:
    """Standard error: progress and failures."""
    return Console(stderr=True, highlight=False, emoji=False) if sys.stderr.isatty() else _Unbounded(stderr=True)


def say(text: str, style: str | None = None) -> None:
    """One line on standard output, as it is."""
    console().print(text, markup=False, soft_wrap=True, style=style)


def tell(text: str, style: str | None = None) -> None:
    """One line on standard error, as it is."""
    error_console().print(text, markup=False, soft_wrap=True, style=style)


def table_of(*headings: str, rows: Iterable[Iterable[str | Text]] = (), overflow: OverflowMethod = "fold") -> Table:
    """A table without lines, whose cells are shown as text, never as markup.

    Args:
        headings: of its columns.
        rows: its cells from left to right.
        overflow: what becomes of a text that is wider than its column.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow=overflow)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def when(seconds: float) -> str:
    """A moment in UTC, from seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def check_targets(targets: Mapping[str, str | None], source: Path | None = None) -> None:
    """Refuses, before any work is done, what could not be written after it.

    Args:
        targets: option to the file that it names, `-` for standard output, None where it was not given.
        source: what the work is done on, which no option may write over.

    Raises:
        UsageError: a folder, a file that may not be written or whose folder is not there, one file for two options.
    """
    options: dict[str, str] = {}
    for option, target in targets.items():
        if target is None:
            continue
        try:
            place = target if target == "-" else str(Path(target).resolve())
            problem = "" if target == "-" else _problem(Path(target), source)
        except OSError as error:
            place, problem = target, f"cannot be written: {error.strerror}"
        if problem:
            raise UsageError(f"{option} {target} {problem}. Nothing was done")
        if place in options:
            raise UsageError(f"{options[place]} and {option} both write to {target}; give each a file of its own")
        options[place] = option


def _problem(path: Path, source: Path | None) -> str:
    if path.is_dir():
        return "is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"cannot be written: there is no folder {path.parent}; make it first"
    there = path.exists()
    if not os.access(path if there else path.parent, os.W_OK):
        return f"cannot be written: no permission to write to {path if there else path.parent}"
    if there and source is not None and source.exists() and path.samefile(source):
        return "would overwrite the submission; name another file"
    return ""


def write_text(target: str, text: str) -> None:
    """Writes a result to a file, or to standard output for `-`.

    Raises:
        UsageError: the file cannot be written.
    """
    if target == "-":
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            _nobody_reads()
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

    @classmethod
    def beside(cls, json_file: str | None) -> Self:
        """One that is quiet in a log where the result itself goes to standard output."""
        return cls(quiet=json_file == "-" and not error_console().is_terminal)

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
