"""The check `shard_coverage`: do the learner's shards hold every file exactly once, in equally many steps?"""

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import Field

from checks.api import FromProbe, Result, check, failed, passed, unverified
from checks.listing import listed
from checks.observations.order import Order, OrderedGraph
from checks.probing import no_such_graph

_MOST_CARRIED = 4
_BOTH = "fn.readers.file(..., shard_id=rank, num_shards={shards})"
_EACH = "pipes = [train_pipeline(shard_id=rank, num_shards={shards}) for rank in range({shards})]"
_PADDED = 'fn.readers.file(..., pad_last_batch=True, name="Reader")\nDALIGenericIterator(..., reader_name="Reader")'


@check(
    version="1.1.0",
    title="Shards of the data",
    word="shards",
    codes={
        "sticks": "readers have `stick_to_shard`, and the lab wants none",
        "rotates": "readers lack `stick_to_shard`",
        "overlap": "files are read by more than one shard",
        "incomplete": "files are read by no shard",
    },
)
def shard_coverage(
    order: Annotated[Order, FromProbe("epoch_order")],
    *,
    shards: Annotated[int, Field(ge=2, le=_MOST_CARRIED)] = 2,
    pipelines: Literal["each", "one"] = "each",
    equal_steps: bool = True,
    stick_to_shard: bool | None = None,
) -> Result:
    """Judges whether the pipelines that the learner built for several ranks share the files between them.

    Evidence:
        probe `epoch_order`: `shard_id` and `num_shards` as they stand in each carried graph, and the numbers of the
            files that it reads with exactly these, in a pod of ours.
    Points: all or nothing.
    Errors: 0 false accepts on 9 failing and 0 false rejects on 6 passing controls in
        `tests/checks/graphs/test_shard_coverage.py`.
    Cannot detect: where the learner's process gets its rank from; with `pipelines = "one"`, whether `shard_id` follows
        the rank at all, since the grader set it for the other shards: the feedback says so. A run carries four graphs,
        so more than four shards are not asked for.

    Args:
        shards: How many ranks the lab has; `num_shards` of every pipeline.
        pipelines: `each`: one pipeline per shard was built, as a loop over ranks does. `one`: one is enough, and the
            grader makes the others by setting its `shard_id`.
        equal_steps: Whether every rank must have equally many batches, also where files do not divide evenly.
        stick_to_shard: Whether the readers must have it set, or must not; not looked at if absent.
    """
    usable = order.usable()
    if not usable:
        return no_such_graph(None)
    sharded = [graph for graph in usable if graph.shard_count > 1]
    result = (
        _counts(usable, sharded, shards)
        or _numbering(sharded, shards, len(usable), one_is_enough=pipelines == "one")
        or _settings(sharded, equal_steps=equal_steps, stick_to_shard=stick_to_shard)
        or _coverage(sharded, shards, order.batch_size)
    )
    readers = {graph.name: [dict(reader) for reader in graph.readers] for graph in sharded or usable}
    return result.model_copy(update={"details": {"readers": readers, **result.details}})


def _counts(usable: list[OrderedGraph], sharded: list[OrderedGraph], shards: int) -> Result | None:
    """Whether the readers are written for as many shards as the lab has."""
    if not sharded:
        only_id = any(graph.shard_id > 0 for graph in usable)
        said = "A reader sets shard_id without num_shards" if only_id else "No reader sets num_shards"
        not_sharded, place = f"{said}, so every rank reads all files.", usable[0].place
        action = "Give the reader both, from the rank and the number of ranks:"
        return failed("not_sharded", not_sharded, next=action, write=_BOTH.format(shards=shards), place=place)
    counts = sorted({graph.shard_count for graph in sharded})
    if counts == [shards]:
        return None
    other_count = f"The readers are written for {listed(counts)} shards, and this lab has {shards}."
    action, line = "Set num_shards to the number of ranks, in every pipeline:", f"num_shards={shards}"
    place, numbers = sharded[0].place, {"shards": counts[0], "needed": shards}
    return failed("wrong_count", other_count, next=action, write=line, place=place, numbers=numbers)


def _numbering(sharded: list[OrderedGraph], shards: int, usable: int, *, one_is_enough: bool) -> Result | None:
    """Whether the learner built a pipeline for every shard, each with a number of its own."""
    built = Counter(graph.shard_id for graph in sharded)
    missing = sorted(set(range(shards)) - set(built))
    if not missing:
        return None
    lost, each, place = listed(missing), _EACH.format(shards=shards), sharded[0].place
    twice = next((shard for shard, count in built.items() if count > 1), None)
    if twice is not None:
        same = sorted(f"`{graph.name}`" for graph in sharded if graph.shard_id == twice)
        they = f"{listed(same)} {'both' if len(same) == 2 else 'all'}"
        same_shard = f"{they} read shard {twice} of {shards}, and nobody reads shard {lost}."
        action = "Make shard_id a parameter of the pipeline, and pass the rank:"
        return failed("same_shard", same_shard, next=action, write=each, place=place)
    if one_is_enough:
        return None
    if usable >= _MOST_CARRIED:
        unknown = f"Whether a pipeline reads shard {lost} is not known: only {usable} pipelines are looked at."
        return unverified("too_many", unknown, next=f"Keep no pipelines but the {shards} of your ranks in variables.")
    left_out = f"No pipeline reads shard {lost} of {shards}."
    seen, action = (
        f"There are pipelines for shard {listed(sorted(built))}.",
        "Build one per rank, and keep them in a list:",
    )
    return failed("missing", left_out, seen=seen, next=action, write=each, place=place)


def _settings(sharded: list[OrderedGraph], *, equal_steps: bool, stick_to_shard: bool | None) -> Result | None:
    first, place = sharded[0], sharded[0].place
    for name in ("pad_last_batch", "stick_to_shard", "random_shuffle"):
        if len({graph.flag(name) for graph in sharded}) > 1:
            mixed = f"The pipelines of different shards do not agree on `{name}`."
            action = "Build all of them by one function that takes the rank."
            return failed("mixed_settings", mixed, next=action, place=place)
    sticks = first.flag("stick_to_shard")
    if stick_to_shard not in (None, sticks):
        unwanted = f"The readers have stick_to_shard={sticks}, and this lab wants {stick_to_shard}."
        seen = "With it, a rank reads the same files in every epoch; without it, the shards go round."
        action, line = "Set it in fn.readers.file:", f"stick_to_shard={stick_to_shard}"
        return failed("sticks" if sticks else "rotates", unwanted, seen=seen, next=action, write=line, place=place)
    if equal_steps and not first.flag("pad_last_batch") and not all(graph.reader_name for graph in sharded):
        unequal = "Ranks may have unequal numbers of batches: one that has finished leaves the others waiting."
        seen = "This happens where the files do not divide evenly."
        action = "Pad the shards, and name the reader in the iterator:"
        return failed("unequal_steps", unequal, seen=seen, next=action, write=_PADDED, place=place)
    return None


def _coverage(sharded: list[OrderedGraph], shards: int, batch_size: int) -> Result:
    """What the shards read: each with its own graph; where one pipeline is enough, others by the first graph."""
    built = {graph.shard_id: graph for graph in reversed(sharded)}
    files = next((graph.shards.files for graph in sharded if graph.shards is not None), 0)
    read: list[list[int]] = []
    for shard in range(shards):
        graph = built.get(shard, sharded[0])
        numbers = graph.shards.numbers if graph.shards is not None and graph.shards.files == files else ()
        stream = numbers[shard] if shard < len(numbers) else None
        if stream is None:
            unseen = f"What shard {shard} of `{graph.name}` reads could not be seen."
            action, line = "Return the reader's labels from the pipeline:", "return images, labels"
            return unverified("no_numbers", unseen, seen=graph.stopped, next=action, write=line)
        size = graph.reader(files, shard).size(shard)
        read.append([number for batch in stream for number in batch][:size])
    counts = Counter(number for numbers in read for number in numbers)
    shared = sum(count > 1 for count in counts.values())
    lost = len(set(range(files)) - set(counts))
    told: dict[str, Any] = {
        "numbers": {"files": files, "shared": shared, "lost": lost},
        "details": {"read": read, "files": files},
    }
    if shared or lost:
        wrong = f"Of {files} files, more than one shard reads {shared}, and none reads {lost}."
        action = "Let fn.readers.file make the shards, and change nothing about them afterwards:"
        line, place = _BOTH.format(shards=shards), sharded[0].place
        return failed("overlap" if shared else "incomplete", wrong, next=action, write=line, place=place, **told)
    seen = f"They read {listed([len(one) for one in read])} of {files} files, in batches of {batch_size}."
    if set(range(shards)) - set(built):
        seen += f" You built shard {listed(sorted(built))}; the grader set shard_id for the others."
    return passed(f"{shards} shards are disjoint, and together hold every file once.", seen=seen, **told)
