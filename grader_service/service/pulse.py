"""A file whose age says whether a worker's sweeper still goes round; health checks look at it."""

import time
from pathlib import Path

_FILE = "pulse"


def beat(state_dir: Path) -> None:
    """The sweeper has done its round."""
    (state_dir / _FILE).touch()


def age_s(state_dir: Path) -> float | None:
    """Seconds since the last beat; None when there was none."""
    try:
        return max(0.0, time.time() - (state_dir / _FILE).stat().st_mtime)
    except OSError:
        return None
