"""One worker per device and host: a lock that the kernel releases when its holder is gone, however it went."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grader_service.errors import ConfigurationError


@contextmanager
def hold_device(path: Path, device: str) -> Iterator[None]:
    """Holds the device for the length of the block.

    Raises:
        ConfigurationError: another process of this host holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                f"another worker of this host holds {device}; stop it, or name another GPU with GRADER_GPU "
                "(on a host without GPUs: another --slot)"
            ) from None
        yield
