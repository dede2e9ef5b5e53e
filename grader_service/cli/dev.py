"""`grader checks dev`: judge a submission again whenever a check's file is saved."""

import contextlib
import json
import os
import select
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader_service.cli.grade import SandboxOption, opened
from grader_service.cli.output import ProgressDisplay, say, tell
from grader_service.errors import UsageError
from grader_service.model.lab import LabSpec
from grader_service.settings import Settings

if TYPE_CHECKING:
    from grader_service.authoring.dev_loop import DevLoop, Looked

_KEYS = "save the file to judge again; r: run the submission again, c: keep it as a control, q: quit"


def dev(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The check's file, which is watched.")],
    submission: Annotated[Path, typer.Argument(help="A .py, .ipynb, .zip, .tar or .tar.gz submission.")],
    param: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A parameter of the check, with a TOML value.")
    ] = None,
    sandbox: SandboxOption = "process",
    once: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--once", help="Judge once and end.")
    ] = False,
) -> None:
    """Judge a submission again whenever the check's file is saved; the evidence of its run is kept for that.

    Prints the result, the observation that was judged, what the check's probe printed, and the traceback of what the
    check or the probe raised. The submission runs again only when the check needs other evidence.

    Exit codes of --once: 0 the check gave a result, 1 it raised or does not load; 2, 3 and 5 as for `grader grade`.
    """
    from grader_service.authoring.dev_loop import DevLoop  # noqa: PLC0415 - imports the whole flow
    from grader_service.authoring.trying import read_params  # noqa: PLC0415 - see above

    for path in (file, submission):
        if not path.is_file():
            raise UsageError(f"there is no file {path}")
    runner = opened(sandbox, LabSpec.model_fields["image"].default, Settings())
    params = read_params(param or [])
    loop = DevLoop(file, submission, params, runner=runner, progress=ProgressDisplay)
    if once:
        looked = loop.look()
        _show(looked, file)
        raise typer.Exit(0 if looked.problem is None else 1)
    with contextlib.suppress(KeyboardInterrupt), _keys() as pressed:
        _follow(loop, pressed, file)


def _follow(loop: "DevLoop", pressed: Callable[[float], str], file: Path) -> None:
    from grader_service.authoring.dev_loop import POLL_S  # noqa: PLC0415 - see above

    while True:
        written = loop.written()
        looked = loop.look()
        _show(looked, file)
        tell(_KEYS, "dim")
        while not loop.changed(written):
            key = pressed(POLL_S)
            if key == "q":
                return
            if key == "r":
                loop.forget()
                break
            if key == "c" and looked.result is not None:
                try:
                    told = f"kept as {loop.keep(looked)}: {looked.result.code}"
                except UsageError as error:
                    told = f"not kept: {error}"
                tell(told)


def _no_key(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _pressed_within(seconds: float) -> str:
    """The key that was pressed; empty after so many seconds without one."""
    if not select.select([sys.stdin], [], [], seconds)[0]:
        return ""
    return os.read(sys.stdin.fileno(), 1).decode("latin-1") or "q"


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Keys one by one, without Enter, and none where there is no terminal; as the terminal was afterwards."""
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415 - see above

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield _pressed_within
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _show(looked: "Looked", file: Path) -> None:
    from grader_service.authoring.dev_loop import shown  # noqa: PLC0415 - see above

    whole = "" if looked.ran_s is None else f", after a run of {looked.ran_s:.1f} s"
    lines = [f"── {datetime.now():%H:%M:%S}  {file.name}  judged in {looked.seconds:.2f} s{whole}"]  # noqa: DTZ005 - a person's clock
    for probe_id, text in looked.printed.items():
        lines += [f"probe {probe_id} printed:", textwrap.indent(text.rstrip(), "  ")]
    for probe_id, text in looked.probes_raised.items():
        lines += [f"probe {probe_id} raised:", textwrap.indent(text.rstrip(), "  ")]
    if observation := shown(looked.observation):
        lines += ["observation:", textwrap.indent(observation, "  ")]
    if looked.problem is not None:
        lines += [f"✗ {looked.problem.text}", textwrap.indent(looked.problem.traceback.rstrip(), "  ")]
    if (result := looked.result) is not None:
        tier = f", tier {result.tier.value}" if result.tier is not None else ""
        score = "no score" if result.score is None else f"score {result.score:g}"
        lines += [f"{result.outcome.value} {result.code} ({score}{tier})", textwrap.indent(result.feedback, "  ")]
        if result.details:
            lines += ["details:", textwrap.indent(json.dumps(dict(result.details), indent=2, default=str)[:2000], "  ")]
    say("\n".join(filter(None, lines)))
