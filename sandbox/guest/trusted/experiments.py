"""Finds out what a graph does by running it: on files that show other pictures, and without some of its operators.

A graph gives the same images for the same files and seeds. What it does can be seen from what changes:

* on lossless twins of the JPEG files nothing may change (`alike`);
* where a file shows another picture, its image must change (`own`);
* what a decoder gives is as large as the window that it decoded (`area`), and changes with the lowest rows of a picture
  if it read them (`low`);
* what changes without an operator is what the operator did (`credits`).

This happens on the CPU, where the same work gives the same bits. On a GPU the graph runs once more meanwhile, and
if its images, their sizes on the way or what decoders cut out are not those of the CPU, all of it happens there as
well, and counts: a graph can tell the two apart by their arithmetic.
"""

import copy
import math
import os
import random
import time
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from typing import Any

from ..graph import edit, flow, neutral
from ..graph.model import Graph
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
"""Files that are always among those that are looked at; they count for themselves, the others for all others."""
_SCANT = 1 / 16
"""Share of a picture of which less is no window of the standard augmentation."""


def examine(
    with_gpu: Callable[..., Any], graph: Graph, output: int, files: Sequence[str], device: str, threads: int
) -> dict[str, Any]:
    """What was found, as JSON: see the service's model `GraphProof`, and `sizes`, see `reference_plan.plan`.

    For a process that sees no GPU, see `children.WithoutGpu`.

    Args:
        with_gpu: calls a function in the process that has the GPU.
        graph: edited for the clean room and pointed at held-out files.
        output: index of the output with images.
        device: `cuda` or `cpu`, where the graph is to be timed.
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
            largest, others = _chosen(files, min(len(files), samples, _MOST_FILES), draw)
            decoder = ready.operators[decoders[0]]
            asks_for_shapes = any(operator.row.reads_header for operator in ready.operators)
            grey = decoder.scalar("output_type") == flow.GRAY and not asks_for_shapes
            with Pictures([*largest, *others], decoder, threads, grey=grey) as pictures:
                pictures.shuffle(draw)
                weights = _weights(pictures.files, largest, len(files))
                found |= _on_device(Experiments(pictures, weights, samples, draw, with_gpu), ready, device)
        except Exception as error:
            found["doubt"] = f"Running the graph on other pictures failed: {error}"[:500]
    return found | {"seconds": round(time.monotonic() - started, 3)}


def _on_device(experiments: "Experiments", graph: Graph, device: str) -> dict[str, Any]:
    if device == "cuda" and any(graph.operators[place].row.gpu_only for place in flow.behind(graph, 0)):
        return experiments.facts(graph, experiments.of_files(graph), DECODED)
    on_cpu = copy.deepcopy(graph)
    edit.to_cpu(on_cpu)
    with ThreadPoolExecutor(1) as beside:
        on_gpu = beside.submit(experiments.images, graph) if device == "cuda" else None
        images = experiments.images(on_cpu) if on_gpu is not None else experiments.of_files(on_cpu)
        found = experiments.facts(on_cpu, images, 0.0)
    if on_gpu is not None:
        found["on_gpu"] = experiments.resembling(on_gpu.result(), images)
        if found["on_gpu"] < _MOSTLY * experiments.samples:
            found |= experiments.facts(graph, on_gpu.result(), DECODED)
    return found


def _chosen(files: Sequence[str], count: int, draw: random.Random) -> tuple[list[str], list[str]]:
    """The largest files, and others by lot."""
    by_size = sorted(files, key=os.path.getsize)
    cut = len(files) - min(_LARGEST, count)
    return by_size[cut:], draw.sample(by_size[:cut], count - len(files) + cut)


def _weights(seen: Sequence[str], largest: Collection[str], files: int) -> list[float]:
    """How many files each of these stands for: the largest for itself, the others for all others.

    What is seldom may be most of the work, but is no more of it than it is.

    Args:
        files: in all.
    """
    others = sum(file not in largest for file in seen)
    return [1.0 if file in largest else (files - len(largest)) / others for file in seen]


class Experiments:
    """Runs versions of a graph on the same files.

    Args:
        weights: how many files each of these stands for.
        draw: random numbers that no graph can know.
        with_gpu: calls a function in the process that has the GPU, where graphs for it run.
    """

    def __init__(
        self,
        pictures: Pictures,
        weights: Sequence[float],
        samples: int,
        draw: random.Random,
        with_gpu: Callable[..., Any],
    ) -> None:
        self.samples = samples
        self._pictures = pictures
        self._draw = draw
        self._runs = Runs(draw.choices(range(1000), k=samples), with_gpu)
        self._places = [place % len(pictures.files) for place in range(samples)]
        self._files = [pictures.files[place] for place in self._places]
        self._weights = [weights[place] for place in self._places]
        self._twins = self._named(pictures.twins)

    def of_files(self, graph: Graph) -> Outputs:
        """What a graph makes of the files, what decoders cut out, and sizes on the way."""
        return self._with_steps(graph, self._files)

    def images(self, graph: Graph) -> Outputs:
        """The same of the files and then of their twins, in one run."""
        return self._with_steps(graph, [*self._files, *self._twins])

    def resembling(self, on_gpu: Outputs, on_cpu: Outputs) -> int:
        """How many images are those of the CPU, of the files as well as of the twins, whose pixels are the same."""
        decoded, worked = (alike(on_gpu, on_cpu, within) for within in (DECODED, WORKED))
        return sum(map(min, decoded[: self.samples], worked[self.samples :]))

    def facts(self, graph: Graph, images: Outputs, within: float) -> dict[str, Any]:
        """All that can be found out of a graph on its device.

        Args:
            images: its `images` or `of_files`.
            within: how far images of the files may be from those of the twins, see `alike`.
        """
        if len({sample.shape for sample in images[0]}) > 1:
            return {
                "doubt": "Images of different batches have different sizes; resize or crop all of them to one size."
            }
        of_files = [seen[: self.samples] for seen in images]
        of_twins = self._with_steps(graph, self._twins)
        twin, *inner = of_twins
        steps = dict(zip([*_windows(graph), *_sized(graph)], inner, strict=False))
        return {
            "alike": sum(alike(of_files, of_twins, within)),
            **self._own(graph, twin),
            "credits": self._credits(graph, twin, steps),
            "sizes": {name: _mean_size(seen, self._weights) for name, seen in steps.items()},
            **self._decoded(graph),
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

    def _decoded(self, graph: Graph) -> dict[str, Any]:
        """How much is decoded, by pixels and by images, and share of the pixels in pictures read to their end."""
        windows = _windows(graph)
        if not windows:
            return {}
        alone = copy.deepcopy(graph)
        alone.outputs = [edge for operator in alone.operators for edge in operator.outputs if edge.name in windows]
        flow.drop_idle(alone)
        rounds = -(-_WINDOWS // self.samples)
        seen = self._runs.run(alone, self._twins * rounds)
        changed = self._runs.run(alone, self._named(self._pictures.changed_below()) * rounds)
        images = pixels = squares = decoded = low = scant = 0.0
        for n, (place, weight) in enumerate(zip(self._places * rounds, self._weights * rounds, strict=True)):
            whole = _pixels(self._pictures.pixels[place].shape)
            shown = [_pixels(part[n].shape) for part in seen]
            largest = shown.index(max(shown))
            images += weight
            pixels += weight * whole
            squares += (weight * whole) ** 2
            decoded += weight * shown[largest]
            scant += weight * (shown[largest] < _SCANT * whole)
            low += weight * whole * (seen[largest][n].digest != changed[largest][n].digest)
        return {
            "windows": int(pixels**2 / squares),
            "area": min(1.0, decoded / pixels),
            "low": low / pixels,
            "scant": scant / images,
        }

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
            shares = (
                min(1.0, *(_values(steps[name][n]) / _values(image) for name in edges))
                * (run[n].digest != image.digest)
                for n, image in enumerate(twin)
            )
            found[work] = fmean(shares, self._weights)
        return {work: round(share, 2) for work, share in found.items() if share >= _LEAST_CREDIT}

    def _with_steps(self, graph: Graph, files: Sequence[str]) -> Outputs:
        """The images, what decoders cut out, and sizes on the way; no sizes where DALI does not give those out."""
        try:
            return self._runs.run(graph, files, _windows(graph), _sized(graph))
        except RuntimeError:
            return self._runs.run(graph, files, _windows(graph))

    def _named(self, made: Sequence[int]) -> list[str]:
        return [path_of(made[place]) for place in self._places]


def _windows(graph: Graph) -> list[str]:
    """Names of what decoders give, where none of them decodes whole files."""
    decoders = [graph.operators[place] for place in flow.path_decoders(graph, 0)]
    cut = all(decoder.row.window for decoder in decoders)
    return [decoder.outputs[0].name for decoder in decoders] if cut else []


def _sized(graph: Graph) -> list[str]:
    """Names of the other images on their way to the output, where every sample of a batch passes."""
    images = flow.image_edges(graph) - flow.branches(graph) - set(_windows(graph))
    operators = [graph.operators[place] for place in sorted(flow.behind(graph, 0))]
    return [edge.name for operator in operators for edge in operator.outputs if edge.name in images]


def _mean_size(seen: list[Seen], weights: Sequence[float]) -> list[float]:
    """Height and width of images: in their mean proportion, and of their mean area; empty where there are none."""
    shapes = [_image(sample.shape) for sample in seen]
    if not shapes or any(len(shape) != 3 for shape in shapes):
        return []
    height, width = (fmean(side, weights) for side in zip(*map(spatial, shapes), strict=True))
    area = fmean((math.prod(spatial(shape)) for shape in shapes), weights)
    scale = math.sqrt(area / (height * width or 1.0))
    return [round(height * scale, 1), round(width * scale, 1)]


def _image(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of an image of one channel, or of frames one below the other, as one of an image with channels."""
    return (*shape, 1) if len(shape) == 2 else (shape[0] * shape[1], *shape[2:]) if len(shape) == 4 else shape


def _values(sample: Seen) -> int:
    return max(1, math.prod(sample.shape))


def _pixels(shape: tuple[int, ...]) -> int:
    return max(1, math.prod(spatial(shape))) if len(shape) == 3 else 1
