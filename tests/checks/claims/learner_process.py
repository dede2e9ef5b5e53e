"""Plays the learner's pod for many submissions in one process: runs each one for real, then probes what it left.

python -m tests.checks.claims.learner_process      one JSON request per line in, one JSON answer per line out

With `graphs` behind it torch stays as it is, as in the room where probes look at graphs.
"""

import gc
import importlib
import json
import os
import sys
import tempfile
import warnings
from typing import Any

from sandbox.guest.learner import execution, import_hooks, observe, rehearsal
from sandbox.guest.learner.graphs import Recorder
from sandbox.guest.learner.probe_context import LearnerContext
from sandbox.guest.probes import running
from sandbox.guest.trusted.graph_context import CarriedGraph, GraphContext


def main() -> None:
    """Answers until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what learners print does not mix with answers
    warnings.simplefilter("ignore")
    recorder = Recorder(rehearse=True)
    import_hooks.after_import({"nvidia.dali.pipeline": recorder.patch})
    if "graphs" not in sys.argv:
        import_hooks.after_import(
            {"torch": rehearsal.patch_torch, "nvidia.dali.plugin.pytorch": rehearsal.patch_dali_plugin}
        )
    importlib.import_module("nvidia.dali.plugin.pytorch")
    gc.freeze()  # what was imported is not looked through again after every submission
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line), recorder)) + "\n")
        answers.flush()
    answers.flush()
    os._exit(0)


def _answer(request: dict[str, Any], recorder: Recorder) -> dict[str, Any]:
    home, path = os.getcwd(), list(sys.path)
    recorder.records.clear()
    with tempfile.TemporaryDirectory(prefix="claims-") as root:
        cells = list(enumerate(request["texts"], 1)) if request["notebook"] else None
        if not cells:
            with open(os.path.join(root, "submission.py"), "w", encoding="utf-8") as file:
                file.write(request["texts"][0])
        source = execution.Source(root, "submission.py", cells)
        try:
            outcome, module = execution.execute(source, 60.0, os.path.join(root, "notebook-cells"))
            answer: dict[str, Any] = {"exception": outcome.exception, "probes": {}}
            loaders = observe.live_loaders(module)
            answer["loaders"] = [observe.loader_facts(*pair) for pair in loaders]
            answer["pipelines"], graphs = observe.pipelines(module, recorder)
            answer["variable"] = module.__dict__.get(request["variable"])
            carried = [
                CarriedGraph(facts["name"], graphs[facts["graph"]], "cpu", 2, facts)
                for facts in answer["pipelines"]
                if facts["graph"] is not None
            ]
            for probe in request["probes"]:
                given = {
                    "device": "cpu",
                    "params": request["params"],
                    "folder": tempfile.mkdtemp(dir=root),
                    "budget_s": probe["budget_s"],
                }
                context: Any = GraphContext(carried, **given)
                if probe["site"] == "learner":
                    context = LearnerContext(module, loaders, **given)
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
