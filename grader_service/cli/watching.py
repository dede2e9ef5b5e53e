"""Follows a batch: a live bar on a terminal, a line now and then in a log, or lines of JSON."""

import time
from collections.abc import Callable

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from grader_service.cli.output import error_console, tell
from grader_service.model.regrade import BatchState, ItemState, Progress
from grader_service.store import regrades
from grader_service.store.engine import Store

_OPEN = (BatchState.PLANNED, BatchState.RUNNING)
_SUCCESS = (BatchState.FINISHED, BatchState.APPLIED)
_LOG_EVERY_S = 15.0
EXIT_ATTENTION = 1
EXIT_STOPPED = 4


def watch_batch(store: Store, batch_id: str, *, every_s: float, as_json: bool) -> int:
    """Looks until nothing is left to do; returns the exit code."""
    if as_json:
        progress = _look_on(store, batch_id, every_s, lambda found: typer.echo(found.model_dump_json()))
    elif error_console().is_terminal:
        progress = _with_bar(store, batch_id, every_s)
    else:
        progress = _look_on(store, batch_id, every_s, _Log())
    if progress.note:
        tell(progress.note)
    if progress.counts.get(ItemState.NEEDS_ATTENTION):
        return EXIT_ATTENTION
    return 0 if progress.state in _SUCCESS else EXIT_STOPPED


def words(progress: Progress) -> str:
    """How far it is, in a line."""
    text = f"{progress.state.value}: {progress.done} of {progress.total}"
    if progress.rate is not None:
        text += f", {progress.rate:.1f}/s"
    if progress.eta_s is not None:
        text += f", {progress.eta_s:.0f} s to go"
    failed = progress.counts.get(ItemState.NEEDS_ATTENTION, 0)
    return f"{text}, {failed} need attention" if failed else text


class _Log:
    """A line when the state changes, and every few seconds."""

    def __init__(self) -> None:
        self._said: tuple[BatchState, float] | None = None

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._said is None or self._said[0] is not progress.state or now - self._said[1] >= _LOG_EVERY_S:
            tell(words(progress))
            self._said = (progress.state, now)


def _look_on(store: Store, batch_id: str, every_s: float, say: Callable[[Progress], None]) -> Progress:
    while True:
        progress = regrades.progress(store, batch_id)
        say(progress)
        if progress.state not in _OPEN:
            return progress
        time.sleep(every_s)


def _with_bar(store: Store, batch_id: str, every_s: float) -> Progress:
    columns = (TextColumn("{task.fields[id]}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"))
    with Bar(*columns, console=error_console()) as bar:
        task = bar.add_task("", total=None, id=batch_id, words="")

        def show(progress: Progress) -> None:
            bar.update(task, total=progress.total, completed=progress.done, words=words(progress))

        return _look_on(store, batch_id, every_s, show)
