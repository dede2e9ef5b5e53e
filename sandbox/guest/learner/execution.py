"""Runs a submission once, top to bottom, as Python or a notebook would, and says how it ended."""

import builtins
import inspect
import linecache
import math
import os
import re
import shutil
import sys
import time
import traceback
import types
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT, parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import coerce, ipython_stand_in
from .deadline import GRACE_S, Deadline, LearnerTimeout, impatient
from .notebook_shell import NotebookShell
from .stalling import StallWatch

if TYPE_CHECKING:
    import asyncio

MAX_FRAMES = 32
_CELL_FILE = re.compile(r"cell_(\d{3,6})\.py")


@dataclass
class Source:
    """What to run: one module file, or the code cells of a notebook."""

    root: str
    """Folder of the entry point; the working directory of the run."""
    entry: str
    """Path of the entry point, relative to the workspace."""
    cells: list[tuple[int, str]] | None = None
    """(1-based number of the code cell, its Python source); None for a module."""


@dataclass
class Run:
    """How the code ended."""

    ran: str = "completed"
    duration_s: float = 0.0
    exit_code: int | None = None
    exception: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)


Abandon = Callable[[Run, types.ModuleType], None]


def bring_files(submission: str, workspace: str) -> None:
    """Copies the unpacked submission into the writable workspace."""
    shutil.copytree(submission, workspace, dirs_exist_ok=True, symlinks=True)


def execute(
    source: Source,
    timeout_s: float,
    cell_folder: str,
    abandon: Abandon | None = None,
    grace_s: float = GRACE_S,
    stall_s: float = math.inf,
) -> tuple[Run, types.ModuleType]:
    """Runs the source in a fresh `__main__`; returns unless the process itself is ended.

    Code that catches even the timeout does not end: then `abandon` is called with what would have been returned.

    Args:
        timeout_s: seconds of wall clock that it gets.
        cell_folder: where a notebook's cells are written.
        grace_s: from the timeout's exception to the end of patience.
        stall_s: seconds without any activity after which it is stopped before its time is up.
    """
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    os.chdir(source.root)
    sys.path.insert(0, source.root)
    sys.argv = [_full_path(source) if source.cells is None else "ipykernel_launcher.py"]
    ipython_stand_in.install()
    run = Run()
    started = time.monotonic()

    def ring(frame: types.FrameType | None) -> None:
        run.duration_s = time.monotonic() - started
        run.ran = "timed_out" if run.duration_s >= timeout_s else "stalled"
        run.exception = {
            "type": LearnerTimeout.__name__,
            "message": f"stopped after {run.duration_s:.0f} s",
            **_places(reversed(list(traceback.walk_stack(frame))), source, cell_folder),
        }

    deadline = Deadline(timeout_s, ring, None if abandon is None else lambda: abandon(run, module), grace_s)
    stall = StallWatch(stall_s, deadline.ring_now)
    raised: BaseException | None = None
    try:
        try:
            deadline.start()
            if stall_s < timeout_s:
                stall.start()
            if source.cells is None:
                _run_module(source, module)
            else:
                _run_cells(source.cells, module, run, cell_folder)
        finally:
            deadline.over = True
            stall.stop()
    except BaseException as error:
        # What follows a timeout, such as workers that were interrupted, is a consequence of it.
        if run.ran not in {"timed_out", "stalled"}:
            raised = error
    deadline.stop()
    if raised is not None:
        with impatient(source.root, cell_folder):  # its message is a method of the learner's
            _ended(raised, run, source, cell_folder)
    run.duration_s = run.duration_s or time.monotonic() - started
    return run, module


def _ended(error: BaseException, run: Run, source: Source, cell_folder: str) -> None:
    if isinstance(error, SystemExit):
        code = error.code
        run.exit_code = 0 if code is None else code & 0xFF if type(code) is int else int(code is not False)
        if run.exit_code == 0 and _in_last_statement(error, source, cell_folder):
            return  # sys.exit(main()) at the very end: all of it ran
    run.ran = "exited" if isinstance(error, SystemExit) else "raised"
    run.exception = describe(error, source, cell_folder)


def _in_last_statement(error: BaseException, source: Source, cell_folder: str) -> bool:
    """Whether it left the code from the last statement of the module, or of the last cell."""
    if source.cells is None:
        name = _full_path(source)
        with open(name, "rb") as file:
            text: str | bytes = file.read()
    elif source.cells:
        number, text = source.cells[-1]
        name = _cell_path(cell_folder, number)
    else:
        return False
    try:
        last = parse(text).body[-1]
    except (SyntaxError, ValueError, IndexError):  # a cell with magics
        return False
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename != name:
        place = place.tb_next
    return place is not None and place.tb_lineno >= last.lineno


def _full_path(source: Source) -> str:
    return os.path.join(source.root, os.path.basename(source.entry))


def _run_module(source: Source, module: types.ModuleType) -> None:
    full_path = _full_path(source)
    module.__dict__["__file__"] = full_path
    with open(full_path, "rb") as file:
        # From bytes: a BOM and a coding line are the compiler's to read.
        code = compile(file.read(), full_path, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _cell_path(folder: str, number: int) -> str:
    return os.path.join(folder, f"cell_{number:03d}.py")


def _run_cells(cells: list[tuple[int, str]], module: types.ModuleType, run: Run, folder: str) -> None:
    shell = NotebookShell(module.__dict__, run.notes)
    shell.install()
    os.makedirs(folder, exist_ok=True)
    import asyncio  # a script need not wait for it, which takes as long as all else that a pod imports first

    # One loop for all cells, as in a notebook: a task that one cell starts can be awaited in another.
    loop = asyncio.Runner()
    for number, text in cells:
        # On disk, because inspect and DALI's autograph read functions back from their file.
        path = _cell_path(folder, number)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        run_source(text, path, module.__dict__, loop)


def run_source(text: str, path: str, namespace: dict[str, Any], loop: "asyncio.Runner") -> None:
    """Runs one cell's source; a cell may await at its top level, as notebooks allow."""
    code = compile(text, path, "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        loop.run(_await_cell(code, namespace))
    else:
        exec(code, namespace)


async def _await_cell(code: types.CodeType, namespace: dict[str, Any]) -> None:
    await eval(code, namespace)  # noqa: S307 - the learner's own code, in the learner's pod


def describe(error: BaseException, source: Source, cell_folder: str) -> dict[str, Any]:
    """A `LearnerException`: type, message, and the learner's own lines, innermost last."""
    extra = []
    if isinstance(error, SyntaxError) and type(error.filename) is str and type(error.lineno) is int:
        extra = [_place(error.filename, error.lineno, source, cell_folder)]
    return {
        "type": coerce.type_name(error, 100),
        "message": coerce.text(error, coerce.MAX_ITEM),
        **_places(traceback.walk_tb(error.__traceback__), source, cell_folder, extra),
    }


def _places(
    walk: Iterable[tuple[types.FrameType, int]],
    source: Source,
    cell_folder: str,
    extra: Iterable[dict[str, Any] | None] = (),
) -> dict[str, Any]:
    """The `place` and `frames` of an exception, from (frame, line) pairs with the innermost last."""
    found: list[dict[str, Any]] = []
    for frame, line in walk:
        place = _place(frame.f_code.co_filename, line, source, cell_folder)
        if place is not None:
            found.append({**place, "function": coerce.text(frame.f_code.co_name, 100)})
    found += [place for place in extra if place is not None]
    return {"place": found[-1] if found else None, "frames": found[-MAX_FRAMES:]}


def _place(path: str, line: int | None, source: Source, cell_folder: str) -> dict[str, Any] | None:
    cell = None
    if path.startswith(cell_folder + os.sep):
        name = _CELL_FILE.fullmatch(os.path.basename(path))
        cell = int(name[1]) if name else None
        shown = os.path.basename(source.entry)
    elif path.startswith(source.root + os.sep):
        shown = os.path.relpath(path, source.root)
    else:
        return None
    line = min(max(1, line or 1), 10_000_000)
    return {
        "file": coerce.text(shown, 160),
        "line": line,
        "cell": cell,
        "source": coerce.text(linecache.getline(path, line).strip(), 160),
        **_context(path, line),
    }


def _context(path: str, line: int) -> dict[str, Any]:
    """The line with the one before and the one after."""
    first = max(1, line - 1)
    lines = linecache.getlines(path)[first - 1 : line + 1]
    return {"context": [coerce.text(text.rstrip("\r\n"), 160) for text in lines], "context_from": first}
