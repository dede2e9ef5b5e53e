"""What tests see of processes from outside."""

from pathlib import Path


def state(pid):
    """The letter that the kernel has for a process; None where there is none, or where only its exit code is left."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if letter in "ZX" else letter
