"""`grader`: the entry point, its commands, and the exit codes.

0 passed, or done · 1 failed · 2 usage or configuration · 3 our fault · 4 inconclusive or unverified · 5 rejected
"""

import sys
import traceback
from typing import Annotated

import typer

from grader_service import __version__
from grader_service.cli.loading import CommandsByName
from grader_service.cli.output import tell
from grader_service.errors import GraderError, InfrastructureError, JudgeFailed

app = typer.Typer(
    name="grader",
    cls=CommandsByName,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},  # of every command below, too
)


def _version(asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if asked:
        typer.echo(f"grader {__version__}")
        raise typer.Exit


@app.callback()
def grader(
    *,
    _: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Grades submissions of GPU labs. Numbers made by learner code never decide a grade."""


def main() -> None:
    """Runs the command line; our own failures become one line and their exit code.

    A defect of ours, which nothing expected, shows its traceback and exits as our fault: never as 1, which would say
    that a learner failed.
    """
    try:
        app()
    except GraderError as error:
        from grader_service.model.base import neutralise  # noqa: PLC0415 - most commands end well

        if isinstance(error, JudgeFailed) and error.traceback:
            tell(f"{error.traceback}\n", style="dim")
        tell(f"grader: {neutralise(str(error))}", style="bold red")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        tell("grader: stopped", style="bold red")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except Exception as error:  # noqa: BLE001 - there is nobody above
        traceback.print_exc()
        tell(f"grader: internal error ({type(error).__name__}); no verdict was made", style="bold red")
        sys.exit(InfrastructureError.exit_code)
