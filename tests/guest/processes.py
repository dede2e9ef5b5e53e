"""What tests see of processes from outside."""

from pathlib import Path

from tests.waiting import PATIENCE, wait_for

PATIENCE_S = 60.0


def state(pid):
    """The letter that the kernel has for a process; None where there is none, or where only its exit code is left."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if letter in "ZX" else letter


def becomes(condition):
    """True as soon as it is true; the limit is generous."""
    return wait_for(condition, PATIENCE_S / PATIENCE, every_s=0.01)
