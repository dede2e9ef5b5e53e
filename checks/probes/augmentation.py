"""Runs the learner's graphs many times on the same few images; says how what came out differs.

Ramps of grey show which part of an image a sample holds and which way round it is; one colour shows changes of colour.
"""

import itertools
from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "graph"
BUDGET_S = 75.0

SIDE = 384
"""Pixels; larger than any usual crop."""
BATCH = 16
COUNTS = (64, 32, 32, 4, 4)
"""Samples of the ramp across, the ramp down, the plain colour, black and white: whole batches of the first three."""
AGAIN = 32
"""Samples that a second build gives, to be compared with those of the first."""
COLOUR = (190, 110, 60)
AUTOMATIC = ("auto_augment.py", "rand_augment.py", "trivial_augment.py", "_augmentation.py", "augmentations.py",
             "_select.py")  # fmt: skip


def probe(context: Any) -> dict[str, Any]:
    """Per graph, the training graph's candidates first: its random operators and what its samples looked like."""
    context.graph  # noqa: B018 - raises where no graph can be run at all
    import numpy as np

    across = np.linspace(0, 255, SIDE).round().astype(np.uint8)
    ramp = np.repeat(np.tile(across, (SIDE, 1))[:, :, None], 3, axis=2)
    plain = [np.full((SIDE, SIDE, 3), colour, dtype=np.uint8) for colour in (COLOUR, (0, 0, 0), (255, 255, 255))]
    files = context.write_jpegs([ramp, ramp.transpose(1, 0, 2).copy(), *plain])
    graphs = []
    for graph in context.graphs:
        if graph.refused:
            graphs.append({"name": graph.name, "refused": graph.refused[:500]})
        elif context.remaining_s > BUDGET_S / 3 or not graphs:
            graphs.append(_observed(context, graph, files, first=not graphs))
    return {"graphs": graphs, "batch_size": BATCH}


def _observed(context: Any, graph: Any, files: Any, *, first: bool) -> Any:
    rows = {operator["name"]: context.operator_row(operator["name"]) for operator in graph.operators}
    random = [op for op in graph.operators if rows[op["name"]].varies]
    origins = {name: sum(op["file"] == name for op in graph.operators) for name in AUTOMATIC}
    facts = {
        "name": graph.name,
        "refused": "",
        "problem": "",
        "random": [_described(operator) for operator in random[:32]],
        "operators": len(graph.operators),
        "crops": sorted(name for name, row in rows.items() if row.cuts),
        "splits": sum(rows[op["name"]].branch == "split" for op in graph.operators),
        "origins": {name: count for name, count in origins.items() if count},
        "runs": [],
        "equal_runs": False,
    }
    # In the reader's own order the kinds come one after the other; a graph that shuffles is told not to.
    order = [file for file, count in zip(files, COUNTS, strict=True) for _ in range(count)]
    try:
        samples = _drawn(graph, order, len(order))
        if not samples:
            return facts | {"problem": "no output holds images"}
        pooled = [_pooled(sample) for sample in samples]
        facts["runs"].append(_measured(samples, pooled))
        far = _apart(facts["runs"][0]["span"])
        again = [_pooled(sample) for sample in _drawn(graph, order, AGAIN)]
        facts["equal_runs"] = all(_alike(one, other, far) for one, other in zip(pooled, again, strict=False))
    except Exception as problem:
        if first and not facts["runs"]:
            raise
        facts["problem"] = f"{type(problem).__name__}: {problem}"[:500]
    return facts


def _drawn(graph: Any, files: Any, count: int) -> Any:
    """The first samples of a new build; empty when no output holds images."""
    run = graph.run(
        files, [0] * len(files), batches=-(-count // BATCH), batch_size=BATCH, random_shuffle=False,
        shuffle_after_epoch=False,
    )  # fmt: skip
    index = _images(run)
    return [] if index is None else run.output(index)[:count]


def _described(operator: Any) -> Any:
    """A random operator, its place, and the probability of a coin where the graph says it in a number."""
    arguments = operator["arguments"]
    probability = arguments.get("probability")
    return {
        "name": operator["name"],
        "file": operator["file"],
        "line": operator["line"],
        "probability": float(probability) if isinstance(probability, (int, float)) else None,
    }


def _images(run: Any) -> Any:
    """Index of the first output that holds images."""
    for index in range(len(run.layouts)):
        if run.output(index)[0].ndim == 3:
            return index
    return None


def _planes(sample: Any) -> Any:
    """The sample as [channel, height, width]."""
    return sample if sample.shape[0] <= 4 else sample.transpose(2, 0, 1)


def _pooled(sample: Any) -> Any:
    """Means of 8 x 8 parts of each channel: the same for two decodes of one file by different hardware."""
    import numpy as np

    planes = _planes(sample)
    height, width = (side // 8 * 8 for side in planes.shape[1:])
    if not height or not width:
        return np.asarray(planes, dtype=np.float64).reshape(-1)
    few = planes[:, :height, :width].astype(np.float32)
    return few.reshape(len(planes), 8, height // 8, 8, width // 8).mean(axis=(2, 4), dtype=np.float64).reshape(-1)


def _apart(span: Any) -> Any:
    """Six grey levels, in the values that the graph gives: more than decoders differ."""
    return 6.0 * (abs(span) or 255.0) / 255.0


def _alike(one: Any, other: Any, far: Any) -> Any:
    return one.shape == other.shape and float(abs(one - other).max(initial=0.0)) <= far


def _distinct(pooled: Any, far: Any) -> Any:
    """How many samples differ from each other visibly."""
    known: list[Any] = []
    for sample in pooled:
        if not any(_alike(sample, other, far) for other in known):
            known.append(sample)
    return len(known)


def _measured(samples: Any, pooled: Any) -> Any:
    """What the samples of one build looked like; positions and levels in grey levels of the image that went in."""
    import numpy as np

    starts = [sum(COUNTS[:place]) for place in range(len(COUNTS) + 1)]
    across, down, plain, black, white = (samples[a:b] for a, b in itertools.pairwise(starts))
    grey = [_grey(part) for part in (across, down, black, white)]
    known = [float(np.median(plane)) for plane in grey[2] + grey[3]]
    low, high = min(known), max(known)
    far = _apart(high - low)
    return {
        "span": high - low,
        "distinct": [_distinct(pooled[a:b], far) for a, b in itertools.pairwise(starts[:4])],
        # Of each whole batch of one of the ramps.
        "distinct_per_batch": [_distinct(pooled[at : at + BATCH], far) for at in range(0, starts[2], BATCH)],
        "across": [_ends(sample, 1, low, high) for sample in grey[0]],
        "down": [_ends(sample, 0, low, high) for sample in grey[1]],
        "turned": [_ends(sample, 0, low, high)[1] for sample in grey[0]],
        "colours": [_colour(sample, low, high) for sample in plain],
        "filled": [_filled(sample) for sample in plain],
    }


def _grey(samples: Any) -> Any:
    """Each sample as one plane [height, width]: its channels are equal but for their normalisation."""
    import numpy as np

    grey = []
    for planes in map(_planes, samples):
        step = max(1, min(planes.shape[1:]) // 64)
        grey.append(np.asarray(planes[:, ::step, ::step], dtype=np.float64).mean(axis=0))
    return grey


def _ends(plane: Any, axis: int, low: float, high: float) -> list[float]:
    """[level at its middle, growth from one end of the axis to the other], by a line through its inner part."""
    import numpy as np

    scale = 255.0 / (high - low) if high != low else 0.0
    profile = (np.median(plane, axis=1 - axis) - low) * scale
    inner = profile[len(profile) // 8 : max(len(profile) // 8 + 2, len(profile) * 7 // 8)]
    if len(inner) < 2:
        return [float(inner.mean()) if len(inner) else 0.0, 0.0]
    slope, _ = np.polyfit(np.arange(len(inner)), inner, 1)
    return [round(float(np.median(profile)), 2), round(float(slope * len(profile)), 2)]


def _colour(sample: Any, low: Any, high: Any) -> Any:
    """The middle value of each channel, in shares of the span from black to white: what it is worth is not known."""
    import numpy as np

    planes = _planes(sample)[:, ::3, ::3].astype(np.float64)
    span = abs(high - low) or 1.0
    return [round(255.0 * float(np.median(plane)) / span, 2) for plane in planes[:4]]


def _filled(sample: Any) -> Any:
    """Share of the sample that has not its middle colour, such as corners that a rotation left empty."""
    import numpy as np

    plane = _planes(sample)[:, ::3, ::3].astype(np.float64).mean(axis=0)
    spread = float(np.abs(plane).max()) or 1.0
    return round(float((np.abs(plane - np.median(plane)) > 0.02 * spread + 1e-3).mean()), 3)
