"""One worker per device and host: a lock that the kernel releases when its holder is gone, however it went.

The lock's file says which processors its holder measures on: two that measure on the same ones disturb each other.
"""

import fcntl
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from grader_service.errors import ConfigurationError

_TRIES = 20
_PAUSE_S = 0.05


@dataclass(frozen=True)
class Neighbour:
    """Another worker of this host that measures on some of the same processors."""

    device: str
    cpus: tuple[int, ...]
    """Those that both have."""


@contextmanager
def hold_device(path: Path, device: str, cpus: Sequence[int] = ()) -> Iterator[tuple[Neighbour, ...]]:
    """Holds the device for the length of the block; gives the workers that have some of the same processors.

    Args:
        path: of the device's lock; locks of one host lie in one folder.
        device: its name.
        cpus: processors that the holder measures on.

    Raises:
        ConfigurationError: another process of this host holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        if not _locked(file):
            raise ConfigurationError(
                f"another worker of this host holds {device}; stop it, or name another GPU with GRADER_GPU "
                "(on a host without GPUs: another --slot)"
            )
        file.truncate(0)
        file.write(json.dumps({"device": device, "cpus": list(cpus)}))
        file.flush()
        yield tuple(_neighbours(path, cpus))


def _locked(file: IO[str]) -> bool:
    """Tried for a while: a neighbour that starts touches each lock for an instant, to see whether it is held."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _neighbours(own: Path, cpus: Sequence[int]) -> Iterator[Neighbour]:
    for path in sorted(own.parent.glob("*.lock")):
        if path == own or not (said := _of_holder(path)):
            continue
        shared = sorted(set(cpus) & set(said["cpus"]))
        if shared:
            yield Neighbour(str(said["device"]), tuple(shared))


def _of_holder(path: Path) -> dict[str, Any] | None:
    """What the holder of this lock wrote; None where nobody holds it or has written yet."""
    try:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                said = json.loads(file.read())
                return said if isinstance(said, dict) and isinstance(said.get("cpus"), list) else None
    except (OSError, ValueError):
        pass
    return None
