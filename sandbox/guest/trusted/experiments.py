"""Finds out what a graph does by running it: on files that show other pictures, and without some of its operators.

A graph gives the same images for the same files and seeds. What it does can be seen from what changes:

* on lossless twins of the JPEG files nothing may change (`alike`);
* where a file shows another picture, its image must change (`own`);
* what a decoder gives is as large as the window that it decoded (`area`), and changes with the lowest rows of a picture
  if it read them (`low`);
* what changes without an operator is what the operator did (`credits`).

This happens on the CPU, where the same work gives the same bits. On a GPU the graph runs once more, and if its images
are not those of the CPU, all of it happens there as well, and counts.
"""

import copy
import math
import random
import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ..graph import edit, flow, neutral
from ..graph.model import Graph
from ..graph.operators import kind
from .reference_plan import spatial
from .runs import Build, Outputs, Runs, Seen, alike, still
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


def examine(graph: Graph, output: int, files: Sequence[str], build: Build, device: str, threads: int) -> dict[str, Any]:
    """What was found, as JSON: see the service's model `GraphProof`, and `sizes`, see `reference_plan.plan`.

    Args:
        graph: edited for the clean room and pointed at held-out files.
        output: index of the output with images.
        files: JPEG files that may be read.
        build: makes a pipeline of a graph.
        device: `cuda` or `cpu`, where the graph is to be timed.
        threads: of the CPU.
    """
    started = time.monotonic()
    draw = random.SystemRandom()
    ready = still(graph, output, draw)
    samples = -(-LEAST_SAMPLES // graph.batch_size) * graph.batch_size
    found: dict[str, Any] = {"samples": samples, "doubt": flow.doubt(ready, 0)}
    if not flow.path_decoders(ready, 0):
        found["alike"] = samples  # and no image is a file's own, for no picture of a file gets there at all
    elif not found["doubt"]:
        try:
            chosen = draw.sample(list(files), min(len(files), samples, _MOST_FILES))
            decoder = ready.operators[flow.path_decoders(ready, 0)[0]]
            with Pictures(chosen, decoder, threads) as pictures:
                found |= _on_device(Experiments(pictures, build, samples, draw), ready, device)
        except Exception as error:
            found["doubt"] = f"Running the graph on other pictures failed: {error}"[:500]
    return found | {"seconds": round(time.monotonic() - started, 3)}


def _on_device(experiments: "Experiments", graph: Graph, device: str) -> dict[str, Any]:
    rows = [kind(graph.operators[place].name) for place in flow.behind(graph, 0)]
    if device == "cuda" and any(row is not None and row.gpu_only for row in rows):
        return experiments.facts(graph)
    on_cpu = copy.deepcopy(graph)
    edit.to_cpu(on_cpu)
    found = experiments.facts(on_cpu)
    if device == "cuda":
        found["on_gpu"] = experiments.resemblance(on_cpu, graph)
        if found["on_gpu"] < _MOSTLY * experiments.samples:
            found |= experiments.facts(graph)
    return found


class Experiments:
    """Runs versions of a graph on the same files.

    Args:
        pictures: of the files.
        build: makes a pipeline of a graph.
        samples: images in a run.
        draw: random numbers that no graph can know.
    """

    def __init__(self, pictures: Pictures, build: Build, samples: int, draw: random.Random) -> None:
        self.samples = samples
        self._pictures = pictures
        self._draw = draw
        self._runs = Runs(build, draw.choices(range(1000), k=samples))
        self._places = [place % len(pictures.files) for place in range(samples)]
        self._files = [pictures.files[place] for place in self._places]
        self._twins = self._named(pictures.twins)

    def facts(self, graph: Graph) -> dict[str, Any]:
        """All that can be found out of a graph on its device."""
        decoded = self._runs.run(graph, self._files)[0]
        inner = _inner_edges(graph)
        twin, *steps = self._with_steps(graph, inner)
        return {
            "alike": sum(map(alike, decoded, twin)),
            "own": self._own(graph, twin),
            "credits": self._credits(graph, twin, dict(zip(inner, steps, strict=False))),
            "sizes": {name: _mean_size(seen) for name, seen in zip(inner, steps, strict=False)},
            **self._windows(graph),
        }

    def resemblance(self, graph: Graph, other: Graph) -> int:
        """How many images of the files are the same for both."""
        one, two = (self._runs.run(version, self._files)[0] for version in (graph, other))
        return sum(map(alike, two, one))

    def _own(self, graph: Graph, twin: list[Seen]) -> int:
        """How many images changed whenever their own file showed another picture.

        Where one image can get into another one, only half of the files change at a time, halved anew by lot: an image
        that shows another file's picture stays as it is in some of these runs.
        """
        others, files = self._named(self._pictures.others(self._draw)), range(len(self._pictures.files))
        rounds = [set(files)]
        if flow.mixes(graph, flow.behind(graph, 0)):
            halves = [set(self._draw.sample(files, len(files) // 2)) for _ in range(_HALVINGS)]
            rounds = [part for half in halves for part in (half, set(files) - half)]
        own = [True] * self.samples
        for changed in rounds:
            names = [others[n] if place in changed else self._twins[n] for n, place in enumerate(self._places)]
            run = self._runs.run(graph, names)[0]
            for n, place in enumerate(self._places):
                own[n] &= place not in changed or run[n].digest != twin[n].digest
        return sum(own)

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
        all_pixels = decoded = low = 0
        for n, place in enumerate(self._places * rounds):
            pixels = _pixels(self._pictures.pixels[place].shape)
            all_pixels += pixels
            decoded += max(_pixels(part[n].shape) for part in seen)
            if any(a[n].digest != b[n].digest for a, b in zip(seen, changed, strict=True)):
                low += pixels
        return {"windows": len(seen[0]), "area": min(1.0, decoded / all_pixels), "low": low / all_pixels}

    def _credits(self, graph: Graph, twin: list[Seen], steps: dict[str, list[Seen]]) -> dict[str, float]:
        """Share of the images that each kind of work changed; a smaller one where it is done on smaller images."""
        found = {}
        for work, places in neutral.workers(graph, 0).items():
            try:
                run = self._runs.run(neutral.without(graph, places), self._twins)[0]
            except RuntimeError:
                continue  # it does more to an image than can be left out
            sources = {flow.plain_inputs(graph.operators[place])[0].name for place in places}
            pixels = [_mean_pixels(steps[name]) for name in sources if name in steps]
            weight = min(1.0, max(pixels) / _mean_pixels(twin)) if pixels else 1.0
            changed = sum(one.digest != other.digest for one, other in zip(run, twin, strict=True))
            found[work] = weight * changed / self.samples
        return {work: round(share, 2) for work, share in found.items() if share >= _LEAST_CREDIT}

    def _with_steps(self, graph: Graph, inner: list[str]) -> Outputs:
        """The images, and what they are on their way; only the images where DALI does not give those out."""
        try:
            return self._runs.run(graph, self._twins, inner)
        except RuntimeError:
            return self._runs.run(graph, self._twins)

    def _named(self, made: Sequence[int]) -> list[str]:
        return [path_of(made[place]) for place in self._places]


def _inner_edges(graph: Graph) -> list[str]:
    """Names of the images on their way to the output."""
    images = flow.image_edges(graph)
    operators = [graph.operators[place] for place in sorted(flow.behind(graph, 0))]
    return [edge.name for operator in operators for edge in operator.outputs if edge.name in images]


def _mean_size(seen: list[Seen]) -> list[float]:
    """Mean height and width of images; empty where there are none."""
    if not seen or any(len(sample.shape) != 3 for sample in seen):
        return []
    return [round(fmean(side), 1) for side in zip(*(spatial(sample.shape) for sample in seen), strict=True)]


def _mean_pixels(seen: list[Seen]) -> float:
    return fmean(_pixels(sample.shape) for sample in seen) if seen else 0.0


def _pixels(shape: tuple[int, ...]) -> int:
    return max(1, math.prod(spatial(shape))) if len(shape) == 3 else 1
