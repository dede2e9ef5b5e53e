"""The experiments with one graph, which go on beside its first batch."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..graph import flow, model
from . import reference_plan
from .children import WithoutGpu
from .experiments import examine


class Examination:
    """What a graph does, and the job of a reference loader beside it.

    Which output holds images is seen in the first batch only. What a decoder leads to is the likely one.

    Args:
        cpu: where experiments run, while this process builds the graph.
        graph: edited for the clean room and pointed at held-out files.
        device: `cuda` or `cpu`, where the graph is to be timed.
    """

    def __init__(self, cpu: WithoutGpu, graph: model.Graph, files: list[str], device: str, threads: int) -> None:
        self._cpu, self._graph, self._files, self._device, self._threads = cpu, graph, files, device, threads
        self._beside = ThreadPoolExecutor(1)
        self._output: int | None = None
        self._found: Future[dict[str, Any]]

    def begin(self) -> None:
        """Begins with the likely output, if there is one; `result` or `drop` must follow."""
        outputs = range(len(self._graph.outputs))
        likely = next((place for place in outputs if flow.path_decoders(self._graph, place)), None)
        if likely is not None:
            self._begin(likely)

    def drop(self) -> None:
        """Waits for the end of what was begun: the process that runs it must be free for another graph."""
        self._beside.shutdown()

    def result(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Waits for what the graph does (`found`), and puts together the reference's job (`plan`).

        Raises:
            RuntimeError: the experiments failed.
            EOFError: the graph ended the process that runs them.
        """
        output = batch["output"]
        with self._beside:
            if self._output != output:
                self._begin(output)  # behind what was begun, if anything was
            found = self._found.result()
        plan = reference_plan.plan(
            self._graph,
            batch["shape"][1:],
            batch["dtype"],
            output,
            work=found.get("credits", {}),
            sizes=found.pop("sizes", {}),
        )
        return {"found": found, "plan": plan}

    def _begin(self, output: int) -> None:
        self._output = output
        job = (examine, self._graph, output, self._files, self._device, self._threads)
        self._found = self._beside.submit(self._cpu.call, *job)  # a thread, since part of it needs the GPU here
