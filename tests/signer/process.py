"""A real `grader signer` beside a test."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_for


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(path)) == 0


@contextmanager
def a_signer(folder: Path, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """One with its keys in `folder/keys`, listening at `folder/socket`."""
    command = [sys.executable, "-m", "grader_service", "signer", "--socket", str(folder / "socket")]
    process = subprocess.Popen(
        command,
        env={**os.environ, "GRADER_STATE_DIR": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for(lambda: _listens(folder / "socket"), 20)
        yield process
    finally:
        process.kill()
        process.communicate()
