"""One grader per device and host, on cores of its own: locks that the kernel releases when their holder is gone.

A lock's file says which cores its holder measures on: two that measure on the same ones disturb each other.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from grader_service.errors import ConfigurationError

_TRIES = 20
_PAUSE_S = 0.05
_CHOICE = "grader-cores.lock"
"""Held while cores are chosen: two graders that start at once would choose the same."""


@dataclass(frozen=True)
class Neighbour:
    """Another grader of this host that measures on some of the same cores."""

    device: str
    cpus: tuple[int, ...]
    """Those that both have."""


@dataclass(frozen=True)
class Hold:
    """What the holder of a device may use beside it."""

    usable: tuple[int, ...]
    """Cores that nobody else measures on, no more than its share; where too few of them are left, all. Those that
    nobody else may use at all come first, so that it measures on them."""
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class _Other:
    device: str
    cpus: tuple[int, ...]
    """On which it measures."""
    usable: tuple[int, ...]


@contextmanager
def hold_device(
    path: Path, device: str, cpus: Sequence[int] = (), wanted: int = 0, share: int | None = None
) -> Iterator[Hold]:
    """Holds the device for the length of the block.

    Args:
        path: of the device's lock; locks of one host lie in one folder.
        cpus: cores that the holder may use, in the order in which it takes them.
        wanted: how many of them it measures on.
        share: how many it may have in all; every free one if absent.

    Raises:
        ConfigurationError: another process of this host holds it, or the lock cannot be kept.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _opened(path)
    except OSError as error:
        raise ConfigurationError(
            f"the lock of {device} cannot be kept: {error}; expected a folder that every grader of this host may write "
            "to (GRADER_LOCK_DIR)"
        ) from error
    with file:
        if not _locked(file):
            raise ConfigurationError(
                f"another grader of this host holds {device}; stop it, or name another GPU with GRADER_GPU "
                "(on a host without GPUs: another --slot)"
            )
        with _opened(path.with_name(_CHOICE)) as choosing:
            fcntl.flock(choosing, fcntl.LOCK_EX)
            others = tuple(_others(path))
            usable = _free(cpus, wanted, others)[:share]
            measured = usable[:wanted]
            file.truncate(0)
            file.write(json.dumps({"device": device, "cpus": measured, "usable": usable}))
            file.flush()
        shared = ((other.device, tuple(sorted(set(measured) & set(other.cpus)))) for other in others)
        yield Hold(usable, tuple(Neighbour(device, cpus) for device, cpus in shared if cpus))


def _free(cpus: Sequence[int], wanted: int, others: Sequence[_Other]) -> tuple[int, ...]:
    taken = {cpu for other in others for cpu in other.cpus}
    used = {cpu for other in others for cpu in other.usable}
    free = tuple(sorted((cpu for cpu in cpus if cpu not in taken), key=used.__contains__))
    return free if len(free) >= wanted else tuple(cpus)


def _opened(path: Path) -> IO[str]:
    """For whoever runs a grader here: in a folder for all, an existing file must not be opened as if to make it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o666)  # whatever the umask says
    return os.fdopen(descriptor, "a+")


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


def _others(own: Path) -> Iterator[_Other]:
    """Everybody else of this host."""
    for path in sorted(own.parent.glob("*.lock")):
        if path not in (own, own.with_name(_CHOICE)) and (said := _of_holder(path)):
            yield _Other(str(said["device"]), tuple(said["cpus"]), tuple(said["usable"]))


def _of_holder(path: Path) -> dict[str, Any] | None:
    """What the holder of this lock wrote; None where nobody holds it or has written yet."""
    try:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                said = json.loads(file.read())
                lists = isinstance(said, dict) and all(isinstance(said.get(name), list) for name in ("cpus", "usable"))
                return said if lists else None
    except (OSError, ValueError):
        pass
    return None
