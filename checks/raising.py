"""What the code of a check's author raised: the line of it at which that happened, and the traceback."""

import traceback
from dataclasses import dataclass
from pathlib import Path

from grader_service.model.base import neutralise

MOST = 4000
"""Characters of a traceback, its last ones: what was raised stands at the end."""
_MOST_TEXT = 500
_PASSED_ON = ("checks.contract", "checks.function")
"""Modules through which a check's own code is called."""


@dataclass(frozen=True)
class Raised:
    """For whoever runs the author's code."""

    text: str
    """In one line, such as `ZeroDivisionError at check.py, line 12: division by zero`."""
    traceback: str
    """From the author's first frame on."""


def raised(error: BaseException, file: Path | None = None, ours: int = 1) -> Raised:
    """Describes an exception where it is caught.

    Args:
        error: as it was caught.
        file: of the author; if absent, that of the first function of the author's that was called.
        ours: calls that are no author's: 1 where the function that caught it called the author's code itself.
    """
    inner = error.__traceback__
    for _ in range(ours):
        inner = inner.tb_next if inner is not None else None
    while inner is not None and inner.tb_frame.f_globals.get("__name__") in _PASSED_ON:
        inner = inner.tb_next
    frames = traceback.extract_tb(inner)
    if file is None and frames:
        file = Path(frames[0].filename)
    own = [frame for frame in frames if file is not None and Path(frame.filename).parent == file.parent]
    at = f" at {Path(own[-1].filename).name}, line {own[-1].lineno}" if own else ""
    whole = "".join(traceback.format_exception(type(error), error, inner))
    return Raised(
        text=neutralise(f"{type(error).__name__}{at}: {' '.join(_said(error).split())}"[:_MOST_TEXT]),
        traceback=neutralise(whole.strip())[-MOST:],
    )


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a text that cannot be made, either
        return "(an exception whose text cannot be read)"
