"""What a probe at the site `graph` sees: the learner's DALI graphs, and a way to run them on images of its own."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..graph import edit, model
from ..graph.model import GraphRefused
from ..graph.wire import WireError
from ..probes.running import Context, NoGraph
from .graph_run import Run, reader_facts, run_graph


class CarriedGraph:
    """One pipeline that the learner's code built, as data."""

    def __init__(self, name: str, data: bytes, device: str, threads: int, facts: Mapping[str, Any]) -> None:
        self.name = name
        """Variable in which it was found."""
        self.facts = dict(facts)
        """As `grader_service.model.discovery.PipelineFacts`: claims of the learner's process."""
        self._data = data
        self._device = device
        self._threads = threads
        self.refused = ""
        """Why it may not be run on other images; empty when it may."""
        self.batch_size = 0
        self.operators: list[dict[str, Any]] = []
        """In order: `name`, `device`, `file`, `line`, `inputs` and `outputs` (names of edges), `arguments` (scalars and
        lists as the learner wrote them)."""
        self.output_devices: list[str] = []
        """`gpu` or `cpu` per output."""
        self.readers: list[dict[str, Any]] = []
        """Arguments of every reader that decide order, padding and shards; absent ones have DALI's default."""
        try:
            self._read()
        except (GraphRefused, WireError) as problem:
            self.refused = str(problem)

    def run(
        self,
        files: Sequence[str],
        labels: Sequence[int] | None = None,
        *,
        batches: int,
        batch_size: int | None = None,
        **reader: int | bool,
    ) -> Run:
        """Runs the graph on these JPEG files; see `graph_run.run_graph`.

        Raises:
            GraphProblem: it stopped; leave it to the caller of the probe, which tells the learner.
        """
        names = [str(file) for file in files]
        return run_graph(
            self._data,
            names,
            list(range(len(names))) if labels is None else [int(label) for label in labels],
            device=self._device,
            threads=self._threads,
            batches=batches,
            batch_size=batch_size,
            reader=dict(reader),
        )

    def _read(self) -> None:
        graph = model.read(self._data)
        self.batch_size = graph.batch_size
        self.output_devices = [edge.device for edge in graph.outputs]
        self.readers = reader_facts(graph)
        for operator in graph.operators:
            file, line = operator.origin
            self.operators.append(
                {
                    "name": operator.name,
                    "device": str(operator.scalar("device") or ""),
                    "file": os.path.basename(file),
                    "line": line,
                    "inputs": [edge.name for edge in operator.inputs],
                    "outputs": [edge.name for edge in operator.outputs],
                    "arguments": {
                        argument.name: argument.values if argument.is_vector else argument.scalar
                        for argument in operator.arguments
                        if not argument.name.startswith("_origin_stack")
                    },
                }
            )
        edit.check(graph)
        if self._device == "cpu":
            edit.require_cpu(graph)


class GraphContext(Context):
    """The argument of `probe(context)`."""

    def __init__(self, graphs: Sequence[CarriedGraph], **given: Any) -> None:
        super().__init__(**given)
        self.graphs = tuple(graphs)
        """Best candidate first; may be empty."""

    @property
    def graph(self) -> CarriedGraph:
        """The best candidate that may be run on other images.

        Raises:
            NoGraph: there is none; leave it to the caller of the probe, which tells the learner.
        """
        for graph in self.graphs:
            if not graph.refused:
                return graph
        raise NoGraph(self.graphs[0].refused if self.graphs else "No DALI graph came.")

    def write_jpegs(self, images: Sequence[Any], *, quality: int = 95) -> list[str]:
        """Writes uint8 arrays [H, W, 3] as JPEG files without chroma subsampling; returns their paths in order."""
        from PIL import Image

        paths = []
        for number, image in enumerate(images, len(os.listdir(self.folder))):
            paths.append(os.path.join(self.folder, f"image-{number:05d}.jpg"))
            Image.fromarray(image).save(paths[-1], "JPEG", quality=quality, subsampling=0)
        return paths
