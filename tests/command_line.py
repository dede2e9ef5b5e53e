"""The `grader` command as people run it."""

import os
import subprocess
from functools import partial

from typer.testing import CliRunner

from grader_service.cli.app import app
from tests.levels.parts import BIN


def grader(*arguments, state_dir, timeout=280, text_in=None, **changes):
    """The command after it ended; of our environment it gets what finds programs and an engine, and these changes."""
    environment = {name: os.environ[name] for name in ("PATH", "DOCKER_HOST") if name in os.environ}
    environment |= {"GRADER_STATE_DIR": str(state_dir), "COLUMNS": "120", **changes}
    command = [BIN / "grader", *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=timeout, env=environment, input=text_in
    )


def invoked(*words, status=0, **environment):
    """What came of `grader …` in this process, which must end with this status."""
    done = CliRunner().invoke(app, words, env=environment)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == status, done.output
    return done


def by_operator(state_dir, *words, name="ann"):
    """`invoked` with these words before its own, as this operator beside this state folder types them."""
    return partial(invoked, *words, GRADER_STATE_DIR=str(state_dir), GRADER_OPERATOR=name, COLUMNS="200")


def typed(*words, **environment):
    """What it printed, line by line."""
    return invoked(*words, **environment).stdout.splitlines()
