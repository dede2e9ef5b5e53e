"""A runner whose runs take moments: every part of `grader worker run` but the grading itself.

    python bench/stub_runner.py SLOT

What a submission says decides its fate: what says `measured` is, which makes it an attempt of its learner; `hang` is,
too, and takes five seconds; `fault` is, after it failed once as our own failures do; `poison` kills whoever runs it,
each time. These begin with a run space, as a grading does; all others are rejected, which is an answer.

`STUB_LONGEST_S` is what most of them take at most, seconds; `STUB_FAILED` a folder in which it is noted what failed.
"""

import contextlib
import os
import random
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any

from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.logs import configure_logs
from grader_service.model.evidence import RunPlan
from grader_service.queue.run_worker import run_worker
from grader_service.run.execution import RunOutcome, beginning
from grader_service.service import runner
from grader_service.settings import Settings
from sandbox.api import SpaceLimits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.factories import a_measurement, a_run, an_evidence

_LONGEST_S = float(os.environ.get("STUB_LONGEST_S", "0.05"))
_HANG_S = 5.0
_MEASURED = ("measured", "hang", "fault")
_SMALL = SpaceLimits(workspace_mib=1, workspace_inodes=100, shm_mib=1)


def execute(artifact: Any, _lab: Any, plan: RunPlan, sandbox: Any, *_: Any, run_id: str, **__: Any) -> Any:
    """In place of a grading: waits a moment, and answers with what is stored, judged and sent like any outcome."""
    text = artifact.path.read_text()
    kind = next((word for word in (*_MEASURED, "poison") if word in text), None)
    with contextlib.ExitStack() as stack:
        if kind is not None:
            with beginning():
                stack.enter_context(sandbox.open_run(secrets.token_hex(16), _SMALL))
        time.sleep(_HANG_S if kind == "hang" else random.uniform(0.0, _LONGEST_S))
        if kind == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "fault" and _first(run_id):
            raise InfrastructureError("a fault of ours, as asked for")
    if kind is None:
        raise SubmissionRejected("bench.stub", "Nothing was run: this is a stub.")
    return RunOutcome(an_evidence(run=a_run(run_id=run_id), measurement=a_measurement(attempt=plan.attempt)), {})


def _first(run_id: str) -> bool:
    """Whether it has not failed before, on whichever runner."""
    try:
        (Path(os.environ["STUB_FAILED"]) / run_id).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":
    configure_logs("stub-runner")
    runner.execute = execute
    raise SystemExit(run_worker(Settings(), slot=int(sys.argv[1])))
