"""Finds out what a graph does by running it: on files that show other pictures, and without some of its operators.

A graph gives the same images for the same files and seeds. What it does can be seen from what changes:

* on lossless twins of the JPEG files nothing may change (`alike`);
* where a file shows another picture, its image must change (`own`);
* what a decoder gives is as large as the window that it decoded (`area`), and changes with the lowest rows of a picture
  if it read them (`low`);
* what changes without an operator is what the operator did (`credits`).

This happens on the CPU, where the same work gives the same bits. On a GPU the graph runs once more meanwhile, and
if its images are not those of the CPU, all of it happens there as well, and counts.
"""

import copy
import math
import os
import random
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor, ThreadPoolExecutor
from statistics import fmean
from typing import Any

from ..graph import edit, flow, neutral
from ..graph.model import Graph
from ..graph.operators import kind
from .reference_plan import spatial
from .runs import DECODED, WORKED, Outputs, Runs, Seen, alike, still
from .twins import Pictures, path_of

LEAST_SAMPLES = 48
"""Images that are looked at in each run; a batch is never cut, since a graph may know its size."""
_MOST_FILES = 64
"""Different files; a larger batch has some of them more than once."""
_WINDOWS = 160
"""Windows of decoders that are measured."""
_HALVINGS = 2
_MOSTLY = 0.95
_LEAST_CREDIT = 0.01
_LARGEST = 4
"""Files that are always among those that are looked at."""


def examine(
    graph: Graph, output: int, files: Sequence[str], device: str, threads: int, cpu: Executor
) -> dict[str, Any]:
    """What was found, as JSON: see the service's model `GraphProof`, and `sizes`, see `reference_plan.plan`.

    Args:
        graph: edited for the clean room and pointed at held-out files.
        output: index of the output with images.
        files: JPEG files that may be read.
        device: `cuda` or `cpu`, where the graph is to be timed.
        threads: of the CPU.
        cpu: where pipelines for the CPU are built and run, see `children.without_gpu`.
    """
    started = time.monotonic()
    draw = random.SystemRandom()
    ready = still(graph, output, draw)
    samples = -(-LEAST_SAMPLES // graph.batch_size) * graph.batch_size
    found: dict[str, Any] = {"samples": samples, "doubt": flow.doubt(ready, 0)}
    decoders = flow.path_decoders(ready, 0)
    if not decoders:
        found |= {"alike": samples, "stayed": samples}  # no picture of a file gets there at all
    elif not found["doubt"]:
        try:
            chosen = _chosen(files, min(len(files), samples, _MOST_FILES), draw)
            decoder = ready.operators[decoders[0]]
            grey = decoder.scalar("output_type") == flow.GRAY and not flow.asks_for_shapes(ready)
            with Pictures(chosen, decoder, threads, cpu, grey=grey) as pictures:
                found |= _on_device(Experiments(pictures, samples, draw, cpu), ready, device)
        except Exception as error:
            found["doubt"] = f"Running the graph on other pictures failed: {error}"[:500]
    return found | {"seconds": round(time.monotonic() - started, 3)}


def _on_device(experiments: "Experiments", graph: Graph, device: str) -> dict[str, Any]:
    rows = [kind(graph.operators[place].name) for place in flow.behind(graph, 0)]
    if device == "cuda" and any(row is not None and row.gpu_only for row in rows):
        return experiments.facts(graph, experiments.images(graph), DECODED)
    on_cpu = copy.deepcopy(graph)
    edit.to_cpu(on_cpu)
    with ThreadPoolExecutor(1) as beside:
        on_gpu = beside.submit(experiments.images, graph) if device == "cuda" else None
        images = experiments.images(on_cpu)
        found = experiments.facts(on_cpu, images, 0.0)
    if on_gpu is not None:
        found["on_gpu"] = experiments.resembling(on_gpu.result(), images)
        if found["on_gpu"] < _MOSTLY * experiments.samples:
            found |= experiments.facts(graph, on_gpu.result(), DECODED)
    return found


def _chosen(files: Sequence[str], count: int, draw: random.Random) -> list[str]:
    """Files by lot, the largest ones among them: what is seldom may be most of the work."""
    by_size = sorted(files, key=os.path.getsize)
    cut = len(files) - min(_LARGEST, count)
    chosen = [*draw.sample(by_size[:cut], count - len(files) + cut), *by_size[cut:]]
    draw.shuffle(chosen)
    return chosen


class Experiments:
    """Runs versions of a graph on the same files.

    Args:
        pictures: of the files.
        samples: images in a run.
        draw: random numbers that no graph can know.
        cpu: where graphs for the CPU run.
    """

    def __init__(self, pictures: Pictures, samples: int, draw: random.Random, cpu: Executor) -> None:
        self.samples = samples
        self._pictures = pictures
        self._draw = draw
        self._runs = Runs(draw.choices(range(1000), k=samples), cpu)
        self._places = [place % len(pictures.files) for place in range(samples)]
        self._files = [pictures.files[place] for place in self._places]
        self._twins = self._named(pictures.twins)

    def images(self, graph: Graph) -> Outputs:
        """What a graph makes of the files and then of their twins, and what they are on their way."""
        return self._with_steps(graph, [*self._files, *self._twins])

    def resembling(self, on_gpu: Outputs, on_cpu: Outputs) -> int:
        """How many images are those of the CPU, of the files as well as of the twins, whose pixels are the same."""
        pairs = on_gpu[0], on_cpu[0]
        decoded, worked = (alike(*pairs, within) for within in (DECODED, WORKED))
        return sum(map(min, decoded[: self.samples], worked[self.samples :]))

    def facts(self, graph: Graph, both: Outputs, within: float) -> dict[str, Any]:
        """All that can be found out of a graph on its device.

        Args:
            graph: to try out.
            both: its `images`.
            within: how far images of the files may be from those of the twins, see `alike`.
        """
        if len({sample.shape for sample in both[0]}) > 1:
            return {
                "doubt": "Images of different batches have different sizes; resize or crop all of them to one size."
            }
        of_files = [seen[: self.samples] for seen in both]
        of_twins = self._with_steps(graph, self._twins)
        twin, *inner = of_twins
        steps = dict(zip(_inner_edges(graph), inner, strict=False))
        same = [
            same and all(one[n].shape == other[n].shape for one, other in zip(of_files, of_twins, strict=True))
            for n, same in enumerate(alike(of_files[0], twin, within))
        ]
        return {
            "alike": sum(same),
            **self._own(graph, twin),
            "credits": self._credits(graph, twin, steps),
            "sizes": {name: _mean_size(seen) for name, seen in steps.items()},
            **self._windows(graph),
        }

    def _own(self, graph: Graph, twin: list[Seen]) -> dict[str, int]:
        """How many images stayed as they were when all files showed other pictures; how many go by their own file.

        Where one image can get into another one, only half of the files change at a time then, halved anew by lot: an
        image that shows another file's picture stays as it is in some of these runs.
        """
        others, files = self._named(self._pictures.others(self._draw)), set(range(len(self._pictures.files)))

        def stays(changed: AbstractSet[int]) -> set[int]:
            """Images that are as they were though their own file shows another picture."""
            names = [others[n] if place in changed else self._twins[n] for n, place in enumerate(self._places)]
            run = self._runs.run(graph, names)[0]
            return {n for n, place in enumerate(self._places) if place in changed and run[n].digest == twin[n].digest}

        stayed = stays(files)
        not_own = set(stayed)
        if flow.mixes(graph, flow.behind(graph, 0)):
            for _ in range(_HALVINGS):
                half = set(self._draw.sample(sorted(files), len(files) // 2))
                not_own |= stays(half) | stays(files - half)
        return {"stayed": len(stayed), "own": self.samples - len(not_own)}

    def _windows(self, graph: Graph) -> dict[str, Any]:
        """Share of all pixels that is decoded, and share in pictures whose window reaches their lowest third."""
        decoders = [graph.operators[place] for place in flow.path_decoders(graph, 0)]
        if any(row is None or not row.window for row in (kind(decoder.name) for decoder in decoders)):
            return {}
        alone = copy.deepcopy(graph)
        alone.outputs = [decoder.outputs[0] for decoder in decoders]
        flow.drop_idle(alone)
        rounds = -(-_WINDOWS // self.samples)
        seen = self._runs.run(alone, self._twins * rounds)
        changed = self._runs.run(alone, self._named(self._pictures.changed_below()) * rounds)
        all_pixels = squares = decoded = low = 0
        for n, place in enumerate(self._places * rounds):
            pixels = _pixels(self._pictures.pixels[place].shape)
            windows = [_pixels(part[n].shape) for part in seen]
            largest = windows.index(max(windows))
            all_pixels += pixels
            squares += pixels**2
            decoded += windows[largest]
            if seen[largest][n].digest != changed[largest][n].digest:
                low += pixels
        return {"windows": all_pixels**2 // squares, "area": min(1.0, decoded / all_pixels), "low": low / all_pixels}

    def _credits(self, graph: Graph, twin: list[Seen], steps: dict[str, list[Seen]]) -> dict[str, float]:
        """Share of the images that each kind of work changed, by how large they are where it is done.

        Of several operators of a kind the one with the smallest images counts, and of one its input or output.
        """
        found = {}
        for work, places in neutral.workers(graph, 0).items():
            operators = [graph.operators[place] for place in places]
            edges = {edge.name for op in operators for edge in (flow.worked_on(op)[0], op.outputs[0])}
            if not edges <= steps.keys():
                continue
            try:
                run = self._runs.run(neutral.without(graph, places), self._twins)[0]
            except RuntimeError:
                continue  # it does more to an image than can be left out
            found[work] = fmean(
                min(1.0, *(_values(steps[name][n]) / _values(image) for name in edges))
                * (run[n].digest != image.digest)
                for n, image in enumerate(twin)
            )
        return {work: round(share, 2) for work, share in found.items() if share >= _LEAST_CREDIT}

    def _with_steps(self, graph: Graph, files: Sequence[str]) -> Outputs:
        """The images, and what they are on their way; only the images where DALI does not give those out."""
        try:
            return self._runs.run(graph, files, _inner_edges(graph))
        except RuntimeError:
            return self._runs.run(graph, files)

    def _named(self, made: Sequence[int]) -> list[str]:
        return [path_of(made[place]) for place in self._places]


def _inner_edges(graph: Graph) -> list[str]:
    """Names of the images on their way to the output, where every sample of a batch passes."""
    images = flow.image_edges(graph) - flow.branches(graph)
    operators = [graph.operators[place] for place in sorted(flow.behind(graph, 0))]
    return [edge.name for operator in operators for edge in operator.outputs if edge.name in images]


def _mean_size(seen: list[Seen]) -> list[float]:
    """Height and width of images: in their mean proportion, and of their mean area; empty where there are none."""
    if not seen or any(len(sample.shape) != 3 for sample in seen):
        return []
    height, width = (fmean(side) for side in zip(*(spatial(sample.shape) for sample in seen), strict=True))
    scale = math.sqrt(fmean(math.prod(spatial(sample.shape)) for sample in seen) / (height * width or 1.0))
    return [round(height * scale, 1), round(width * scale, 1)]


def _values(sample: Seen) -> int:
    return max(1, math.prod(sample.shape))


def _pixels(shape: tuple[int, ...]) -> int:
    return max(1, math.prod(spatial(shape))) if len(shape) == 3 else 1
