"""What the command line exits with when something ends it."""

import pytest

from grader_service.cli import app as command_line
from grader_service.errors import ConfigurationError, SandboxUnavailable, StoreUnavailable, UsageError
from grader_service.store.engine import Store
from tests.command_line import invoked


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no such lab"), 2, "grader: no such lab"),
        (SandboxUnavailable("no engine"), 3, "grader: no engine"),
        (ZeroDivisionError("division by zero"), 3, "grader: internal error (ZeroDivisionError)"),
        (OSError(28, "No space left on device"), 3, "internal error (OSError)"),
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
    assert ("Traceback" in told) == ("internal error" in said)


def test_migrating_a_database_that_is_away_is_no_defect():
    """One sentence says so, in the log of compose's `migrate` too."""
    with pytest.raises(StoreUnavailable, match="the database does not answer"):
        invoked("store", "migrate", GRADER_DATABASE_URL="postgresql+psycopg://grader@127.0.0.1:1/grader")


@pytest.mark.parametrize("command", [("store", "migrate"), ("store", "check"), ("queue",)], ids=" ".join)
def test_a_schema_that_was_never_released_is_no_defect(tmp_path, command):
    """One sentence says so, also where a command brings the embedded database to this version by itself."""
    store = Store(f"sqlite:///{tmp_path}/grader.db")
    with store.transaction() as connection:
        connection.exec_driver_sql("create table alembic_version (version_num varchar(32))")
        connection.exec_driver_sql("insert into alembic_version values ('0016')")
    store.close()
    with pytest.raises(ConfigurationError, match=r"has schema 0016, which was never released; expected .*: start with"):
        invoked(*command, GRADER_STATE_DIR=str(tmp_path))
