"""Runs every carried graph on numbered images for two epochs; says in which order their numbers came.

The graph keeps its reader's own shuffling, padding, seed and shard; only the files and the batch size are ours.
"""

from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "graph"
BUDGET_S = 60.0

SIDE = 384
BATCH = 4
FILES = 13
"""Three batches and one more image."""
MOST_SHARDS = 4
SHARD_EPOCHS = 2


def probe(context: Any) -> dict[str, Any]:
    """Per graph: its reader, and the numbers of the images that came, batch by batch, in several builds."""
    context.graph  # noqa: B018 - raises where no graph can be run at all
    files = _numbered(context, MOST_SHARDS * BATCH + 1)
    graphs = []
    for graph in context.graphs:
        if graph.refused:
            graphs.append({"name": graph.name, "refused": graph.refused[:500]})
        elif context.remaining_s > BUDGET_S / 4 or not graphs:
            graphs.append(_observed(context, graph, files, first=not graphs))
    return {"batch_size": BATCH, "files": FILES, "graphs": graphs}


def _numbered(context: Any, count: Any) -> Any:
    """Files of grey images; the brighter, the larger their number."""
    import numpy as np

    levels = np.linspace(8, 248, count).round().astype(np.uint8)
    return context.write_jpegs([np.full((SIDE, SIDE, 3), level, dtype=np.uint8) for level in levels])


def _observed(context: Any, graph: Any, files: Any, *, first: bool) -> Any:
    rows = [(op, context.operator_row(op["name"])) for op in graph.operators]
    lines = [{"file": op["file"], "line": op["line"]} for op, row in rows if row.reads and not row.old]
    facts = {
        "name": graph.name,
        "refused": "",
        "reader_name": str(graph.facts.get("reader_name") or ""),
        "iterator_type": str(graph.facts.get("iterator_type") or ""),
        "declared_batch_size": graph.batch_size,
        "readers": [
            {key: value for key, value in reader.items() if isinstance(value, (bool, int, str))}
            for reader in graph.readers[:8]
        ],
        "lines": lines[:8],
        "problem": "",
        "streams": [],
        "shards": None,
    }
    own = _shard_of(graph)
    epoch = -(-FILES // BATCH)
    try:
        for epochs in (2, 1):
            facts["streams"].append(_numbers(graph, files[:FILES], epoch * epochs, own))
        count = own.get("num_shards", 1)
        if 1 < count <= MOST_SHARDS:
            facts["shards"] = _shards(graph, files, count)
    except Exception as problem:
        if first and not facts["streams"]:
            raise
        facts["problem"] = f"{type(problem).__name__}: {problem}"[:500]
    return facts


def _shard_of(graph: Any) -> Any:
    """The reader's own `shard_id` and `num_shards`; empty where the graph is not sharded."""
    for reader in graph.readers:
        count = reader.get("num_shards", 1)
        if type(count) is int and count > 1:
            return {"num_shards": count, "shard_id": int(reader.get("shard_id", 0))}
    return {}


def _shards(graph: Any, files: Any, count: Any) -> Any:
    """The same graph as every one of its shards, on a set of which the last shard has one image more."""
    rounds = max(1, (len(files) - 1) // (count * BATCH))
    some = files[: count * BATCH * rounds + 1]
    batches = (rounds + 1) * SHARD_EPOCHS
    return {
        "files": len(some),
        "numbers": [
            _numbers(graph, some, batches, {"num_shards": count, "shard_id": number}) for number in range(count)
        ],
    }


def _numbers(graph: Any, files: Any, batches: Any, shard: Any) -> Any:
    """Per batch, the numbers of its images; null where neither labels nor pictures tell them."""
    run = graph.run(files, batches=batches, batch_size=BATCH, **_fitting(shard, len(files)))
    for read in (_labels, _ranks, _brightness):
        for index in range(len(run.layouts)):
            found = read(run, index, len(files))
            if found is not None:
                return found
    return None


def _fitting(shard: Any, files: Any) -> Any:
    """DALI refuses more shards than files."""
    if not shard:
        return {}
    return {"num_shards": min(shard["num_shards"], files), "shard_id": min(shard["shard_id"], files - 1)}


def _labels(run: Any, index: Any, files: Any) -> Any:
    """An output with one whole number per sample, below the number of files."""
    values = _single(run, index)
    if values is None or any(value != int(value) or not 0 <= value < files for batch in values for value in batch):
        return None
    if len({value for batch in values for value in batch}) < 2:
        return None
    return [[int(value) for value in batch] for batch in values]


def _ranks(run: Any, index: Any, files: Any) -> Any:
    """An output with one number per sample and as many different ones as there are files, such as a shifted label."""
    values = _single(run, index)
    return None if values is None else _ranked(values, files)


def _brightness(run: Any, index: Any, files: Any) -> Any:
    """An output of images: as many different levels of grey as there are files."""
    import numpy as np

    if any(np.ndim(sample) < 2 for sample in run.output(index)):
        return None
    levels = [[round(float(np.median(sample)), 4) for sample in batch[index]] for batch in run.batches]
    return _ranked(levels, files)


def _single(run: Any, index: Any) -> Any:
    import numpy as np

    if any(np.size(sample) != 1 for sample in run.output(index)):
        return None
    return [[float(np.ravel(sample)[0]) for sample in batch[index]] for batch in run.batches]


def _ranked(values: Any, files: Any) -> Any:
    levels = sorted({value for batch in values for value in batch})
    if len(levels) != files:
        return None
    rank = {level: number for number, level in enumerate(levels)}
    return [[rank[value] for value in batch] for batch in values]
