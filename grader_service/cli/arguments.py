"""What several commands read from their arguments and settings in the same way."""

import getpass
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from grader_service.errors import UsageError
from grader_service.model.base import neutralise
from grader_service.settings import Settings

if TYPE_CHECKING:
    from grader_service.store.engine import Store

ANY_ID = "Id of a submission or of one of its runs; a unique prefix of at least 4 characters is enough."
"""Help of an argument that `grader_service.store.ids` reads."""


def fresh_id(origin: str, path: Path) -> str:
    """A submission id for a file whose sender gave none, such as `local:notebook.ipynb:1f2e3d4c`."""
    stem = re.sub(r"[^A-Za-z0-9._:-]", "-", path.name)[:60]
    return f"{origin}:{stem}:{secrets.token_hex(4)}"


def service_store() -> "Store":
    """The service's database, opened in the role in which operators act.

    Raises:
        ConfigurationError: its schema is another version's.
        StoreUnavailable: it does not answer.
    """
    from grader_service import wiring  # noqa: PLC0415 - commands that need no database should not wait for its driver

    return wiring.operator_store(Settings())


def read_input(name: str) -> bytes:
    """The content of a file, or standard input for `-`.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error}") from error


def step_ids(text: str) -> tuple[str, ...]:
    """Step ids separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def operator() -> str:
    """Who gives the command, for the audit trail: `GRADER_OPERATOR`, or the name of the user."""
    name = " ".join((Settings().operator or "").split())
    try:
        return f"operator:{neutralise(name or getpass.getuser())}"
    except (KeyError, OSError):
        return "operator"
