"""What tests see of processes from outside."""

import time
from pathlib import Path

PATIENCE_S = 60.0


def state(pid):
    """The letter that the kernel has for a process; None where there is none, or where only its exit code is left."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if letter in "ZX" else letter


def becomes(condition):
    """Whether it becomes true within the limit, which is generous."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
