"""A runner whose runs take moments: every part of `grader worker run` but the grading itself.

    python bench/stub_runner.py SLOT

What a submission says decides its fate: `reject` is an answer, `fault` fails once as our own failures do, `hang` takes
a second.
"""

import os
import random
import sys
import time
from typing import Any

from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.logs import configure_logs
from grader_service.queue.run_worker import run_worker
from grader_service.service import runner
from grader_service.settings import Settings

_LONGEST_S = float(os.environ.get("STUB_LONGEST_S", "0.05"))


def execute(artifact: Any, *_: Any, **__: Any) -> Any:
    """In place of a grading: waits a moment and rejects, which is stored, judged and sent like any other outcome."""
    text = artifact.path.read_text()
    time.sleep(1.0 if "hang" in text else random.uniform(0.0, _LONGEST_S))
    if "fault" in text and random.random() < 0.5:
        raise InfrastructureError("a fault of ours, as asked for")
    raise SubmissionRejected("bench.stub", "Nothing was run: this is a stub.")


if __name__ == "__main__":
    configure_logs("stub-runner")
    runner.execute = execute
    raise SystemExit(run_worker(Settings(), slot=int(sys.argv[1])))
