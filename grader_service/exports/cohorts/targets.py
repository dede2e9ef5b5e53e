"""Where an export goes: a file that appears when it is whole, or standard output."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from grader_service.errors import UsageError


@contextmanager
def writing(target: str) -> Iterator[IO[bytes]]:
    """A stream for bytes: standard output for `-`, else a file.

    A file is written beside its name and takes the name at the end, so that an export that fails leaves what was there
    before. What is no plain file, such as a pipe, is written to directly.

    Raises:
        UsageError: the file cannot be written.
    """
    if target == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        path = path.resolve()  # a link stays one, and what it names is replaced
        part = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as file:
                yield file
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written: {error.strerror}. Name a file in a folder that is there."
        ) from error
