"""Runs submissions the way the learner's pod does; for use in children, which it leaves with another `__main__`."""

import contextlib
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grader_service.ingest.notebook import to_python
from sandbox.guest.learner import coerce, execution


def run_module(
    folder: Path, source: str | bytes, *, timeout_s: float = 30.0, entry: str = "submission.py", **other: Any
):
    """Writes `source` to the entry point, runs it, and returns how it ended with what `names` then hold."""
    path = folder / entry
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return _run(execution.Source(str(path.parent), entry), folder, timeout_s, **other)


def run_notebook(folder: Path, *cells: str, timeout_s: float = 30.0, numbers: list[int] | None = None, **other: Any):
    """Runs cells as they stand in a notebook, magics and all."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = list(zip(numbers or range(1, len(cells) + 1), map(to_python, cells), strict=True))
    return _run(execution.Source(str(folder), "lab.ipynb", sources), folder, timeout_s, **other)


def _run(
    source: execution.Source,
    folder: Path,
    timeout_s: float,
    *,
    names: str = "",
    abandon: Any = None,
    grace_s: float = 5.0,
) -> dict[str, Any]:
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for the rest of the child's life
    output = folder / "output.txt"
    with output.open("w") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        run, module = execution.execute(source, timeout_s, str(folder / "cells"), abandon, grace_s)
    return {
        **asdict(run),
        **{name: _plain(module.__dict__.get(name)) for name in names.split()},
        "printed": output.read_text(),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (str, int, float, bool, type(None), dict)):
        return value
    return coerce.text(value, 500)
