"""What the command line exits with when something ends it."""

import pytest

from grader_service.cli import app as command_line
from grader_service.errors import SandboxUnavailable, UsageError
from grader_service.store.engine import StoreUnavailable
from tests.command_line import invoked


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no such lab"), 2, "grader: no such lab"),
        (SandboxUnavailable("no engine"), 3, "grader: no engine"),
        (ZeroDivisionError("division by zero"), 3, "grader: a defect of the grader, ZeroDivisionError"),
        (OSError(28, "No space left on device"), 3, "a defect of the grader, OSError"),
        (KeyboardInterrupt(), 130, "stopped"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_what_ends_a_command(monkeypatch, capsys, error, code, said):
    """1 says that a submission failed: nothing that goes wrong with us ends with it."""

    def fail():
        raise error

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(SystemExit) as exit_status:
        command_line.main()
    assert exit_status.value.code == code
    told = capsys.readouterr().err
    assert said in told
    assert ("Traceback" in told) == ("defect" in said)


def test_migrating_a_database_that_is_away_is_no_defect():
    """One sentence says so, in the log of compose's `migrate` too."""
    with pytest.raises(StoreUnavailable, match="the database does not answer"):
        invoked("store", "migrate", GRADER_DATABASE_URL="postgresql+psycopg://grader@127.0.0.1:1/grader")
