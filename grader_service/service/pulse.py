"""Files in which workers say at each round of their sweeper whether they can work; health checks read them.

Their age says whether the sweeper still runs.
"""

import contextlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ANY = "pulse"
"""Of a runner or judge; where several share a state folder, of the one that spoke last."""
REGRADE = "pulse-regrade"
"""Of the worker that re-grades: it may share its state folder, and so the signing key, with a judge."""


@dataclass(frozen=True)
class Pulse:
    """What a worker said last."""

    age_s: float
    problems: tuple[str, ...]
    """What keeps it from working; empty where it is ready."""


_SIZE = 4096
"""Bytes of a file, padded: one that is overwritten in place needs no new space, where the file system is full."""


def of_device(device: str) -> str:
    """The file of one runner, where several share a state folder."""
    return f"pulse-{device.replace(':', '-')}"


def beat(state_dir: Path, problems: Sequence[str] = (), file: str = ANY) -> None:
    """The sweeper goes round, and the worker says what keeps it from working.

    Raises:
        OSError: the file cannot be written, not even over the one before.
    """
    path = state_dir / file
    fresh = path.with_name(f".{file}.{os.getpid()}")
    said = json.dumps(list(problems)).encode().ljust(_SIZE)
    try:
        fresh.write_bytes(said)
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        with path.open("r+b") as kept:
            kept.write(said)


def last(state_dir: Path, file: str = ANY) -> Pulse | None:
    """What was said last; None when nothing was, or nothing that can be read."""
    path = state_dir / file
    try:
        age_s = max(0.0, time.time() - path.stat().st_mtime)
        said = json.loads(path.read_text() or "[]")
    except (OSError, ValueError):
        return None
    return Pulse(age_s, tuple(str(one) for one in said) if isinstance(said, list) else ())
