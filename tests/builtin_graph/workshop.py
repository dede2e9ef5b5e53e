"""A process that imports torch and DALI once, builds pipelines from source text and runs probes on them.

Reads one JSON request per line: `source`, `probe`, `params`, `device`; answers with one JSON line: the pipelines that
the source left behind, as the learner's pod reports them, and what became of the probe; without a probe, the source's
variable `result`.
"""

import json
import logging
import os
import sys
import tempfile
import traceback
import types
import warnings
from pathlib import Path

import nvidia.dali.pipeline
import torch
from nvidia.dali.plugin import pytorch  # noqa: F401

from sandbox.guest.learner import observe
from sandbox.guest.learner.graphs import Recorder
from sandbox.guest.probes.graph_context import CarriedGraph, GraphContext
from sandbox.guest.probes.learner_context import LearnerContext
from sandbox.guest.probes.running import Budget, run

PROBES = Path(__file__).parents[2] / "checks" / "probes"
BUDGET_S = 200.0
"""Far more than a probe needs, on a machine that does other things besides."""


class Built:
    """What one source text left behind."""

    def __init__(self, source: str, recorder: Recorder, folder: str) -> None:
        recorder.records.clear()
        number = len(os.listdir(folder))
        path = os.path.join(folder, f"submission_{number}.py")
        Path(path).write_text(source)
        self.module = types.ModuleType("__main__")
        self.module.__file__ = path
        # DALI's conditionals read the source of the function that they convert.
        name = f"submission_{number}"
        self.module.__name__ = name
        sys.modules[name] = self.module
        exec(compile(source, path, "exec"), self.module.__dict__)  # noqa: S102 - a test's own text
        self.facts, self.graphs = observe.pipelines(self.module, recorder)

    def carried(self) -> list[CarriedGraph]:
        """As the probe room holds them."""
        return [
            CarriedGraph(facts["name"], self.graphs[facts["graph"]], "cpu", 2, facts)
            for facts in self.facts
            if facts["graph"] is not None
        ]


def main() -> None:
    """Answers requests until standard input ends."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # as the probe room does
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what DALI or a submission prints is no answer
    recorder = Recorder(rehearse=True)
    recorder.patch(nvidia.dali.pipeline)
    built: dict[str, Built] = {}
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            request = json.loads(line)
            source = request["source"]
            try:
                if source not in built:
                    built[source] = Built(source, recorder, folder)
                answer = {"pipelines": built[source].facts, "answer": _run(built[source], request)}
            except Exception:  # noqa: BLE001 - the test that asked is told
                answer = {"problem": traceback.format_exc()}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _run(built: Built, request: dict) -> dict:
    if not request["probe"]:
        return built.module.__dict__["result"]
    text = (PROBES / f"{request['probe']}.py").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        budget = Budget(BUDGET_S)
        if b'SITE = "learner"' in text:
            context = LearnerContext(
                built.module, [], device="cpu", dataset_dir=None, params=request["params"], folder=folder, budget=budget
            )
        else:
            context = GraphContext(built.carried(), "cpu", request["params"], folder, budget)
        return run(request["probe"], text, context, BUDGET_S)


main()
