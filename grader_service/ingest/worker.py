"""Opens one archive or notebook in a process of its own, with memory and time limits; writes one JSON line.

python -P -m grader_service.ingest.worker KIND ARTIFACT INTO LIMITS      KIND: zip, tar or ipynb; LIMITS: JSON
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import NoReturn

from grader_service.errors import SubmissionRejected
from grader_service.ingest.archive import unpack
from grader_service.ingest.entry import choose_entry
from grader_service.ingest.limits import IngestLimits


def prepare(kind: str, artifact: Path, into: Path, limits: IngestLimits) -> dict[str, object]:
    """Unpacks or reads the artifact into `into`; returns the entry point and, for a notebook, its cells.

    Raises:
        SubmissionRejected: the artifact is unusable.
        OSError: our disk failed or is full.
    """
    if kind == "ipynb":
        entry = "submission.ipynb"
        _check_notebook_size(artifact, limits)
        (into / entry).write_bytes(artifact.read_bytes())
    else:
        entry = choose_entry(unpack(artifact, kind, into, limits))
    path = into / entry
    cells = None
    if entry.lower().endswith(".ipynb"):
        # IPython costs 0.3 s, and most archives need none of it.
        from grader_service.ingest.notebook import read_cells  # noqa: PLC0415

        _check_notebook_size(path, limits)
        cells = read_cells(path.read_bytes(), limits)
    elif path.stat().st_size > limits.source_bytes:
        raise SubmissionRejected(
            "submission.too_large",
            f"{ascii(entry)[:80]} has more than {limits.source_bytes >> 20} MiB, which is the most that source code "
            "may have. Put data into files of their own.",
        )
    return {"entry": entry, "cells": cells}


def _check_notebook_size(path: Path, limits: IngestLimits) -> None:
    if path.stat().st_size > limits.notebook_bytes:
        raise SubmissionRejected(
            "notebook.too_large",
            f"The notebook has more than {limits.notebook_bytes >> 20} MiB, which is the most that is read. "
            "Clear its outputs and save it again.",
        )


def main() -> NoReturn:
    """Sets the limits, prepares, and reports."""
    kind, artifact, into, limits_json = sys.argv[1:5]
    limits = IngestLimits(**json.loads(limits_json))
    resource.setrlimit(resource.RLIMIT_AS, (limits.worker_memory_bytes, limits.worker_memory_bytes))
    # The soft limit is reached first: its signal says that time ran out, and not that something else killed us.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.worker_cpu_s, limits.worker_cpu_s + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    largest_file = max(limits.unpacked_bytes, 64 << 20)  # the answer is a file, too
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    try:
        answer = prepare(kind, Path(artifact), Path(into), limits)
    except SubmissionRejected as rejection:
        answer = {"code": rejection.code, "feedback": rejection.feedback}
    except MemoryError:
        answer = {
            "code": "submission.too_large",
            "feedback": "Opening the submission needs more memory than any honest one. Send fewer or smaller files.",
        }
    json.dump(answer, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # taking the interpreter apart takes longer than the work


if __name__ == "__main__":
    main()
