"""Runs snippets as a learner's code would be run, and says what each of them raised.

A program of its own: it imports torch, torchvision and DALI once, then forks a child per snippet, so that no snippet
sees what another one left behind. JSON in on standard input (`folder`, `data`, `snippets`), one JSON line per snippet
out: its id and the exception as a run of the learner's pod describes it, or null when nothing was raised. A last line
holds what `checks/diagnosis/names.json` should say for the installed DALI.
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from sandbox.guest.learner import execution
from tests.checks.diagnosis import dali_names

SNIPPET_S = 60.0


def main() -> None:
    """See the module's docstring."""
    request = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    silent = os.open(os.devnull, os.O_RDWR)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    warnings.simplefilter("ignore")
    _import_the_lab()
    for snippet in request["snippets"]:
        folder = Path(request["folder"]) / snippet["id"]
        folder.mkdir(parents=True)
        (folder / "data").symlink_to(request["data"])
        out.write(json.dumps({"id": snippet["id"], "exception": _in_child(snippet, folder)}) + "\n")
    out.write(json.dumps({"names": dali_names.text()}) + "\n")
    out.flush()


def _import_the_lab() -> None:
    """Imports without running anything: what has threads of its own would not live on in a fork."""
    import nvidia.dali.fn
    import nvidia.dali.plugin.pytorch  # noqa: F401
    import PIL.Image  # noqa: F401
    import torch
    import torch.distributed
    import torchvision  # noqa: F401

    torch.set_num_threads(1)


def _in_child(snippet: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """What the snippet raised; a child that does not answer in time is killed and counts as an exception of its own."""
    answer = folder / "answer.json"
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            answer.write_text(json.dumps(_run(snippet, folder)))
        finally:
            os._exit(0)
    until = time.monotonic() + SNIPPET_S
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            break
        time.sleep(0.005)
    try:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
    if not answer.exists():
        return {"type": "NoAnswer", "message": "the child was killed or died", "place": None, "frames": []}
    return json.loads(answer.read_text())


def _run(snippet: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    (folder / "submission.py").write_text(snippet["source"])
    run, _ = execution.execute(execution.Source(str(folder), "submission.py"), SNIPPET_S, str(folder / "cells"))
    return run.exception


if __name__ == "__main__":
    main()
