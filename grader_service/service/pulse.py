"""A file whose age says whether a worker's sweeper still goes round; health checks look at it."""

import time
from pathlib import Path

ANY = "pulse"
"""Of a runner or judge; where several share a state folder, of any of them."""
REGRADE = "pulse-regrade"
"""Of the worker that re-grades: it may share its state folder, and so the signing key, with a judge."""


def of_device(device: str) -> str:
    """The file of one runner, where several share a state folder."""
    return f"pulse-{device.replace(':', '-')}"


def beat(state_dir: Path, file: str = ANY) -> None:
    """The sweeper has done its round."""
    (state_dir / file).touch()


def age_s(state_dir: Path, file: str = ANY) -> float | None:
    """Seconds since the last beat; None when there was none."""
    try:
        return max(0.0, time.time() - (state_dir / file).stat().st_mtime)
    except OSError:
        return None
