"""Runs the learner's graphs on images of one colour each, and on images with two halves; says what values came out.

A picture of one colour stays one under crops, flips and resizes, so the values tell layout, type, channel order and
normalisation, whatever the augmentation. No opinions: medians and shares only.
"""

from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "graph"
BUDGET_S = 45.0

SIDE = 384
"""Pixels; larger than any usual crop."""
GREYS = (0, 32, 64, 96, 128, 160, 192, 224, 255)
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (0, 255, 255), (255, 0, 255), (200, 110, 40))
REPEATS = 3
HALVES = 6
FEW = 4
"""An axis of at most so many entries may be that of the channels."""


def probe(context: Any) -> dict[str, Any]:
    """Observations of every graph that may be run; the best candidate first."""
    import numpy as np

    context.graph  # noqa: B018 - raises where no graph can be run at all
    wanted = [(level, level, level) for level in GREYS] + list(COLOURS)
    pictures = [np.full((SIDE, SIDE, 3), colour, dtype=np.uint8) for colour in wanted]
    left_right = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
    left_right[:, SIDE // 2 :] = 255
    paths = context.write_jpegs([*pictures, left_right, left_right.transpose(1, 0, 2).copy()])
    files = [path for path in paths[: len(wanted)] for _ in range(REPEATS)] + paths[-2:] * HALVES
    inputs = [_decoded(path) for path in paths[: len(wanted)]]
    runnable = [graph for graph in context.graphs if not graph.refused]
    graphs = [_observed(context, graph, files, len(wanted), first=place == 0) for place, graph in enumerate(runnable)]
    return {"inputs": inputs, "greys": len(GREYS), "graphs": graphs}


def _decoded(path: Any) -> Any:
    """The colour that an image has after it was encoded, as Pillow decodes it: [red, green, blue]."""
    import numpy as np
    from PIL import Image

    with Image.open(path) as image:
        return [float(value) for value in np.median(np.asarray(image.convert("RGB")), axis=(0, 1))]


def _observed(context: Any, graph: Any, files: Any, colours: Any, *, first: bool) -> Any:
    normalisers = [op for op in graph.operators if context.operator_row(op["name"]).normalises]
    facts = {
        "name": graph.name,
        "operators": sorted({operator["name"] for operator in graph.operators})[:300],
        "normalisers": [_normaliser(operator) for operator in normalisers[:8]],
        "problem": "",
        "outputs": [],
        "images": [],
    }
    try:
        run = graph.run(files, batches=1, batch_size=len(files), random_shuffle=False, shuffle_after_epoch=False)
    except Exception as problem:
        if first:
            raise
        return facts | {"problem": f"{type(problem).__name__}: {problem}"[:500]}
    for index, (layout, dtype, device) in enumerate(zip(run.layouts, run.dtypes, run.devices, strict=True)):
        samples = run.output(index)
        shape = list(samples[0].shape)
        facts["outputs"].append({"dtype": dtype, "shape": shape, "layout": layout, "device": device})
        if len(shape) == 3:
            image = {"output": index, "ragged": len({sample.shape for sample in samples}) > 1}
            image |= {"axes": _axes(samples, colours), "halves": _halves(samples[-2 * HALVES :])}
            facts["images"].append(image)
    return facts


def _normaliser(operator: Any) -> Any:
    arguments = operator["arguments"]
    numbers = {}
    for name in ("mean", "std", "stddev", "scale", "shift"):
        value = arguments.get(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        numbers[name] = [float(v) for v in values[:4] if isinstance(v, (int, float))]
    wired = len(operator["inputs"]) > 1
    return {"name": operator["name"], "line": operator["line"], "file": operator["file"], "wired": wired, **numbers}


def _axes(samples: Any, colours: Any) -> Any:
    """Per short axis, per colour and repeat: the median of each slice, and the share of its values that are near it.

    The share is that of the repeat with the fewest others: a rotation leaves corners empty, which is no mixing.
    """
    import numpy as np

    found = []
    for axis, length in enumerate(samples[0].shape):
        if not 1 <= length <= FEW:
            continue
        medians, shares = [], []
        for sample in samples[: colours * REPEATS]:
            slices = np.moveaxis(np.asarray(sample, dtype=np.float64), axis, 0).reshape(sample.shape[axis], -1)
            middle = np.median(slices, axis=1)
            # One grey level of the range that this sample's type and normalisation give is not known here: what is
            # compared are exact neighbours in value, relative to the sample's own spread.
            spread = float(np.abs(slices).max()) if slices.size else 0.0
            near = np.abs(slices - middle[:, None]) <= 1e-3 + 0.02 * spread
            medians.append([float(value) for value in middle])
            shares.append([float(value) for value in near.mean(axis=1)])
        by_colour = range(0, colours * REPEATS, REPEATS)
        found.append(
            {
                "axis": axis,
                "medians": [medians[start : start + REPEATS] for start in by_colour],
                "shares": [max(min(row) for row in shares[start : start + REPEATS]) for start in by_colour],
            }
        )
    return found


def _halves(samples: Any) -> Any:
    """Per axis, the largest contrast between its two ends: of an image split left and right, of one split in height."""
    import numpy as np

    contrasts = {"left_right": [0.0, 0.0, 0.0], "top_bottom": [0.0, 0.0, 0.0]}
    for place, sample in enumerate(samples):
        into = contrasts["left_right" if place % 2 == 0 else "top_bottom"]
        for axis in range(3):
            ends = np.moveaxis(np.asarray(sample, dtype=np.float64), axis, 0)
            quarter = max(1, len(ends) // 4)
            into[axis] = max(into[axis], float(abs(ends[:quarter].mean() - ends[-quarter:].mean())))
    return contrasts
