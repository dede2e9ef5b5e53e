"""Plays the learner's pod for many submissions in one process: runs each one for real, then probes what it left.

python -m tests.builtin_claims.learner_process      one JSON request per line in, one JSON answer per line out
"""

import gc
import json
import os
import sys
import tempfile
import warnings
from typing import Any

from sandbox.guest.learner import execution, import_hooks, observe, rehearsal
from sandbox.guest.learner.graphs import Recorder
from sandbox.guest.probes import running
from sandbox.guest.probes.learner_context import LearnerContext, dataset_dir_of


def main() -> None:
    """Answers until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what learners print does not mix with answers
    warnings.simplefilter("ignore")
    import_hooks.after_import(
        {
            "nvidia.dali.pipeline": Recorder(rehearse=True).patch,
            "torch": rehearsal.patch_torch,
            "nvidia.dali.plugin.pytorch": rehearsal.patch_dali_plugin,
        }
    )
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()
    answers.flush()
    os._exit(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    home = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="claims-") as root:
        for name, text in request["files"].items():
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        cells = request["cells"]
        source = execution.Source(
            root, "submission.py", [(n, text) for n, text in enumerate(cells, 1)] if cells else None
        )
        path = list(sys.path)
        try:
            outcome, module = execution.execute(source, 60.0, os.path.join(root, "notebook-cells"))
            answer: dict[str, Any] = {"ran": outcome.ran, "exception": outcome.exception, "probes": {}}
            loaders = observe.live_loaders(module)
            answer["loaders"] = [observe.loader_facts(*pair) for pair in loaders]
            for probe in request["probes"]:
                folder = tempfile.mkdtemp(dir=root)
                context = LearnerContext(
                    module,
                    loaders,
                    device="cpu",
                    dataset_dir=dataset_dir_of(module),
                    params=request["params"],
                    folder=folder,
                    budget=running.Budget(probe["budget_s"]),
                )
                answer["probes"][probe["id"]] = running.run(
                    probe["id"], probe["source"].encode(), context, probe["budget_s"]
                )
            return answer
        finally:
            os.chdir(home)
            sys.path[:] = path
            gc.collect()


if __name__ == "__main__":
    main()
