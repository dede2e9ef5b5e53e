"""Draws batches from the learner's graph, on JPEGs of eight sizes, and tells their shapes.

Runs in a pod of ours with the learner's serialized graph and none of its Python.
"""

PROBE_API = 1
VERSION = "1.0.0"
SITE = "graph"
BUDGET_S = 30.0

SIZES = (
    (240, 320),
    (320, 240),
    (256, 256),
    (200, 360),
    (300, 300),
    (360, 280),
    (224, 400),
    (260, 340),
)
"""Height and width, pixels. All are at least 200, so that usual crops fit."""


def probe(context):
    """Returns the shapes of each batch, and the operators that decide on them."""
    import numpy as np

    wanted = max(params["batches"] for params in context.params.values())
    graph = context.graph
    # The first batch is of mixed sizes; in those after it all images have one size, and each batch has another.
    size = max(2, min(graph.batch_size, 32))
    images = []
    for number in range(size * wanted):
        batch = number // size
        height, width = SIZES[(batch if batch else number) % len(SIZES)]
        images.append(np.full((height, width, 3), 5 + number % 240, dtype=np.uint8))
    files = context.write_jpegs(images)
    run = graph.run(files, batches=wanted, batch_size=size, random_shuffle=False)
    batches = []
    for batch in run.batches:
        shapes = {tuple(int(side) for side in image.shape) for image in batch[0]}
        batches.append({"images": len(batch[0]), "shapes": sorted(shapes)[:8]})
    deciding = [
        {"operator": one["name"], "file": one["file"], "line": one["line"]}
        for one in graph.operators
        if any(word in one["name"] for word in ("Resize", "Crop", "Pad", "Slice"))
    ]
    return {"batches": batches, "dtype": run.dtypes[0], "places": deciding[-8:]}
