"""The check `shuffle_determinism`: is data shuffled anew each epoch, and does a seed repeat the order?"""

import itertools
from collections.abc import Sequence
from typing import Annotated, Literal

from checks.api import FromProbe, Result, check, failed, passed, unverified
from checks.listing import listed
from checks.observations.carried import training_graph
from checks.observations.order import Order, OrderedGraph, not_told_apart
from checks.probing import no_such_graph
from grader_service.model.base import ShortText

_IN_ORDER = 0.7
"""Share of neighbours that follow each other in the files' own order; of 13 shuffled ones about 0.08 do."""
_SHUFFLE = "fn.readers.file(..., random_shuffle=True)"
_STILL = "fn.readers.file(..., random_shuffle=False, shuffle_after_epoch=False)"


@check(
    version="1.1.0",
    title="Shuffling and seeds",
    word="shuffle",
    codes={"ok": "the order is what the lab wants", "no_numbers": "unverified: the order could not be seen"},
)
def shuffle_determinism(
    order: Annotated[Order, FromProbe("epoch_order")],
    *,
    shuffle: bool = True,
    deterministic: bool = False,
    validation: Literal["if_found", "required", "ignored"] = "if_found",
    graph: ShortText | None = None,
) -> Result:
    """Judges the order in which the learner's reader gives its files: shuffled or not, new each epoch, repeatable.

    Evidence:
        probe `epoch_order`: numbers of 13 files over two epochs, and over one of a second build, of the learner's graph
            with its own seed, in a pod of ours.
    Points: all or nothing; the training pipeline is judged before those for validation.
    Errors: 0 false accepts on 8 failing and 0 false rejects on 9 passing controls in
        `tests/checks/graphs/test_shuffle_determinism.py`. A shuffled reader comes out in the files' order, or twice in
        the same, with a probability of about 1 in 13!, which is below 1e-9.
    Cannot detect: a list of files that Python shuffled before the pipeline was built: it has one order for ever, and
        counts as not shuffled. Whether a fixed seed was chosen on purpose.

    Args:
        shuffle: Whether the pipeline shuffles; false for one that must not.
        deterministic: Whether two builds of the same graph must give the same order, by a fixed seed.
        validation: Whether pipelines with `val`, `eval` or `test` in their name must read in the files' order.
        graph: Variable of the training pipeline or iterator; the best candidate that is not for validation if absent.
    """
    training = training_graph(order.graphs, graph)
    if training is None:
        return no_such_graph(graph)
    builds = [_flat(stream) for stream in training.streams if stream is not None]
    if not builds or len(builds) < len(training.streams):
        return not_told_apart(training)
    details = {"graph": training.name, "orders": [numbers[: order.files] for numbers in builds]}
    problem = _problem(training, builds, order, shuffle=shuffle, deterministic=deterministic)
    if problem is not None:
        return problem.model_copy(update={"details": details})
    others = [other for other in order.usable() if other.is_for_validation and other is not training]
    if validation == "required" and not others:
        not_found = "No pipeline for validation was found."
        wanted = "One was wanted, in a variable with `val`, `eval` or `test` in its name."
        action = "Build a second pipeline, whose reader does not shuffle:"
        return failed("no_validation", not_found, wanted=wanted, next=action, write=_STILL)
    if validation == "ignored":
        others = []
    wrong = next(filter(_is_shuffled, others), None)
    if wrong is not None:
        shuffled = f"`{wrong.name}` is for validation, and shuffles its files."
        wanted = "Validation should see the same images in the same order every time."
        action, place = "Turn shuffling off in its reader:", wrong.place
        return failed("validation_shuffled", shuffled, wanted=wanted, next=action, write=_STILL, place=place)
    kept = "shuffles its files, anew in each epoch" if shuffle else "keeps the files' order"
    seen = ["Two builds give the same order."] if deterministic else []
    names = [f"`{other.name}`" for other in others if any(stream is not None for stream in other.streams)]
    if names:
        seen.append(f"{listed(names)} {'does' if len(names) == 1 else 'do'} not shuffle.")
    return passed(f"`{training.name}` {kept}.", seen=" ".join(seen), details=details)


def _problem(
    graph: OrderedGraph, builds: list[list[int]], order: Order, *, shuffle: bool, deterministic: bool
) -> Result | None:
    """What is wrong with the order of the training pipeline; None when nothing is."""
    place = graph.place
    shuffled = not _in_file_order(builds[0], order.files)
    if shuffle and not shuffled:
        off = f"`{graph.name}` reads its files in their own order, epoch after epoch."
        seen = "A list that Python shuffles once has one order in every epoch, too."
        return failed("off", off, seen=seen, next="Shuffle in the reader:", write=_SHUFFLE, place=place)
    if not shuffle and shuffled:
        on = f"`{graph.name}` shuffles its files, and this lab wants them in their own order."
        return failed("on", on, next="Turn shuffling off in the reader:", write=_STILL, place=place)
    first, second = _epochs(builds[0], graph, order)
    if shuffle and first == second:
        same = f"`{graph.name}` gives its files in the same order in both epochs."
        action = "Shuffle in the reader, and do not reset the pipeline between epochs:"
        return failed("same_each_epoch", same, next=action, write=_SHUFFLE, place=place)
    if not deterministic:
        return None
    if len(builds) < 2:
        unknown = f"Whether two builds of `{graph.name}` give one order is not known, because only one ran."
        action = "Build and run it twice yourself, and see where it stops."
        return unverified("no_numbers", unknown, seen=graph.stopped, next=action)
    if all(one == other for one, other in zip(*builds, strict=False)):
        return None
    differ = f"Two builds of `{graph.name}` give their files in different orders."
    wanted, line = "The same seed should repeat the order.", "@pipeline_def(..., seed=42)"
    return failed("not_reproducible", differ, wanted=wanted, next="Give the pipeline a seed:", write=line)


def _is_shuffled(graph: OrderedGraph) -> bool:
    stream = next((stream for stream in graph.streams if stream is not None), None)
    return stream is not None and not _in_file_order(_flat(stream), 1 + max(map(max, stream)))


def _flat(stream: Sequence[Sequence[int]]) -> list[int]:
    return [number for batch in stream for number in batch]


def _in_file_order(numbers: Sequence[int], files: int) -> bool:
    """Whether nearly all neighbours follow each other; repeats that pad a batch are left out."""
    steps = [(after - before) % max(files, 1) for before, after in itertools.pairwise(numbers) if after != before]
    return not steps or sum(step == 1 for step in steps) >= _IN_ORDER * len(steps)


def _epochs(numbers: list[int], graph: OrderedGraph, order: Order) -> list[list[int]]:
    """The order of the first two epochs, without the repeats that pad them."""
    reader = graph.reader(order.files)
    length = reader.size(reader.shard % reader.shards)
    if reader.padded:
        length = -(-order.files // (reader.shards * order.batch_size)) * order.batch_size
    return [list(dict.fromkeys(numbers[start : start + length])) for start in (0, length)]
