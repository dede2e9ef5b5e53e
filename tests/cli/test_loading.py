"""Each command is there, and waits for its own modules alone."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from grader_service.cli.app import app
from grader_service.cli.loading import CommandsByName

RUN = (
    "import json, sys\n"
    "from grader_service.cli import app as command_line\n"
    "sys.argv = ['grader', *{arguments!r}]\n"
    "try:\n"
    "    command_line.main()\n"
    "except SystemExit as error:\n"
    "    assert not error.code, error.code\n"
    "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
)
NAMES = sorted(CommandsByName(name="grader").commands)


def loaded_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(arguments=list(arguments))], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_there(name):
    """By the name that the help gives it."""
    told = CliRunner().invoke(app, [name, "--help"], prog_name="grader")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith(f"Usage: grader {name}")


def all_below(command, *words):
    """The words that lead to a command and to each of those below it."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from all_below(inner, *words, name)


@pytest.mark.parametrize("name", NAMES)
def test_h_asks_for_help_everywhere(name):
    """Of the commands of commands, too."""
    for words in all_below(CommandsByName(name="grader").commands[name], name):
        told = CliRunner().invoke(app, [*words, "-h"], prog_name="grader")
        assert told.exit_code == 0, told.output
        assert told.stdout.startswith(f"Usage: grader {' '.join(words)}")


def test_the_help_names_all_of_them():
    """Each with the first line of its own help."""
    told = CliRunner().invoke(app, ["--help"], prog_name="grader").stdout
    listed = told.partition("Commands:")[2].split("\n")
    assert sorted(line.split()[0] for line in listed if line.startswith("  ") and line[2] != " ") == NAMES
    assert all(len(line.split()) > 2 for line in listed if line.strip())


@pytest.mark.parametrize(
    ("arguments", "not_for_it"),
    [
        (["--version"], {"sqlalchemy", "pydantic_settings", "checks.registry", "celery", "docker"}),
        (["regrade", "--help"], {"sqlalchemy", "grader_service.cli.checks", "grader_service.cli.grade", "docker"}),
        (["export", "--format", "junit", "docs/gpu/verdict-h100.json"], {"sqlalchemy", "pydantic_settings", "celery"}),
        (["checks", "list"], {"sqlalchemy", "grader_service.cli.regrade", "docker"}),
    ],
)
def test_a_command_does_not_wait_for_the_others(arguments, not_for_it):
    """What only they need is not imported."""
    assert not loaded_by(*arguments) & not_for_it


def test_a_slip_in_a_name_is_answered_with_names_that_there_are():
    """Also of commands that nothing has loaded yet."""
    told = CliRunner().invoke(app, ["regrad"])
    assert told.exit_code == 2
    assert "Did you mean 'regrade'" in told.output
