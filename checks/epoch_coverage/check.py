"""The check `epoch_coverage`: does an epoch of the learner's iterator hold every file, and none of them twice?"""

from typing import Annotated, Any, Literal

from pydantic import Field

from checks.api import FromProbe, Result, check, failed, passed, unverified
from checks.observations.iterating import Settings, epochs
from checks.observations.order import Order, OrderedGraph, not_told_apart
from checks.probing import no_such_graph
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import ProbeSite
from grader_service.model.verdict import Tier

_EPOCHS = 2
_POLICIES = ("FILL", "PARTIAL", "DROP")
_NAMED = 'fn.readers.file(..., name="Reader")\nDALIGenericIterator(..., reader_name="Reader")'
_PADDED = "fn.readers.file(..., pad_last_batch=True)"
_PARTIAL = "last_batch_policy=LastBatchPolicy.PARTIAL"
_ITERATOR = (
    'dali_iter = DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True,\n'
    f"                                {_PARTIAL})"
)


class Iterator(Wire):
    """Settings of an iterator, as the learner's process says; claims."""

    name: ShortText
    type: ShortText
    reader_name: ShortText
    size: Annotated[int, Field(ge=-1, le=2**40)] | None
    policy: ShortText
    padded: bool
    pipelines: Annotated[int, Field(ge=0, le=1024)]
    epoch_size: Annotated[int, Field(ge=0, le=2**40)] | None


class Claims(Wire):
    """The observations of `epoch_order_claims`."""

    iterators: Annotated[tuple[Iterator, ...], Field(max_length=16)]


@check(version="1.1.0", title="Every file once per epoch", word="epoch", tier=None)  # facts and claims together
def epoch_coverage(
    order: Annotated[Order, FromProbe("epoch_order")],
    claims: Annotated[Claims, FromProbe("epoch_order_claims", ProbeSite.LEARNER)],
    *,
    policy: Literal["exactly_once", "covers", "partial", "drop", "fill"] = "exactly_once",
    graph: ShortText | None = None,
) -> Result:
    """Judges whether two epochs of the learner's iterator deliver every file, and none of them twice.

    Evidence:
        probe `epoch_order`: numbers of the images that the learner's graph reads, batch by batch, on 13 files in
            batches of 4 (for K shards: one file more than full batches), in a pod of ours. Facts.
        probe `epoch_order_claims`: `reader_name`, `size`, `last_batch_policy` and `last_batch_padded` of the iterator,
            read in the learner's process. Claims: these settings exist nowhere else. A liar can gain a pass for an
            epoch that the liar's own iterator does not have; no number of the measurement depends on it.
        What the iterator makes of the reader's numbers is counted by hand (`iterating`).
    Points: all or nothing.
    Errors: 0 false accepts on 9 failing and 0 false rejects on 8 passing controls in
        `tests/checks/graphs/test_epoch_coverage.py`. A reader that shuffles without padding has every file in both
        epochs by chance once in 286 runs.
    Cannot detect: loops of the learner that stop an epoch early; iterators that are not in a variable. Of a sharded
        graph the other shards are made by the grader: see the check `shard_coverage` for what the learner wrote.

    Args:
        policy: `exactly_once`: every file once, by any settings. `covers`: every file at least once, repeats allowed.
            `partial`, `drop`, `fill`: the iterator has this policy; `partial` must also hold every file exactly once.
        graph: Variable of the iterator; the one that is measured if absent.
    """
    ordered = order.chosen(graph)
    if ordered is None:
        return no_such_graph(graph)
    name = ordered.name
    iterator = next((one for one in claims.iterators if one.name == name), None)
    if iterator is None:
        none_found = f"No DALI iterator was found around `{name}`, so where its epochs end is not known."
        action = "Wrap the pipeline, and keep the iterator in a variable:"
        return unverified("no_iterator", none_found, next=action, write=_ITERATOR)
    problem = _settings_problem(ordered, iterator)
    if problem is not None:
        return problem
    if None in ordered.streams or not ordered.streams:
        return not_told_apart(ordered)
    if policy in ("partial", "drop", "fill") and policy != iterator.policy.lower():
        wanted = f"LastBatchPolicy.{policy.upper()}"
        wrong = f"`{name}` ends its epochs by LastBatchPolicy.{iterator.policy}; this lab wants {wanted}."
        action, line = "Set the policy of the iterator:", f"last_batch_policy={wanted}"
        return failed("wrong_policy", wrong, next=action, write=line)
    came = _delivered(order, ordered, iterator)
    if came is None:
        return _not_whole(ordered)
    files, delivered = came
    counts, repeats = [len(epoch) for epoch in delivered], [len(epoch) - len(set(epoch)) for epoch in delivered]
    # What the epoch before read ahead of an epoch counts as its own.
    ahead = [[], *(epoch[files:] for epoch in delivered)]
    missing = [len(set(range(files)).difference(*both)) for both in zip(delivered, ahead, strict=False)]
    told: dict[str, Any] = {
        "seen": f"The grader ran it on {files} numbered files in batches of {order.batch_size}: "
        f"{' and '.join(map(str, counts))} images came in two epochs.",
        "numbers": {"files": files, "missing": max(missing), "repeats": max(repeats)},
        "details": {
            "graph": name, "files": files, "batch_size": order.batch_size, "policy": iterator.policy,
            "delivered": counts, "missing": missing, "repeats": repeats, "iterator": iterator.model_dump(mode="json"),
        },
    }  # fmt: skip
    if policy == "fill" or (policy == "drop" and not any(repeats)):
        return passed(f"`{name}` ends its epochs by LastBatchPolicy.{iterator.policy}, as this lab wants.", **told)
    if any(missing) and policy != "drop" and not (iterator.policy == "FILL" and any(repeats)):
        return _lacks_files(ordered, iterator, f"{max(missing)} of {files} files", told)
    if any(repeats) and policy != "covers":
        return _repeats_files(ordered, iterator, max(repeats), told)
    if any(missing):
        return passed(f"The epochs of `{name}` hold the files that this lab wants.", **told)
    once = "" if any(repeats) else " exactly once"
    return passed(f"Every file comes{once} in each epoch of `{name}`.", **told)


def _settings_problem(graph: OrderedGraph, iterator: Iterator) -> Result | None:
    """What already the iterator's settings decide."""
    size = iterator.size or 0
    if not iterator.reader_name and size <= 0:
        endless = f"`{graph.name}` has neither reader_name nor size, so a loop over it never ends."
        return failed("endless", endless, next="Name the reader in both places:", write=_NAMED, place=graph.place)
    if iterator.policy not in _POLICIES or iterator.pipelines < 1:
        unknown = f"What `{graph.name}` does with the last batch of an epoch could not be read."
        action = "Leave DALI's iterator classes as they are, and hand it in again."
        return unverified("policy_unknown", unknown, next=action)
    if iterator.reader_name or iterator.epoch_size is None:
        return None
    wanted = -(-iterator.epoch_size // graph.shard_count) * iterator.pipelines
    if size in (wanted, iterator.epoch_size // graph.shard_count * iterator.pipelines):
        return None
    wrong = f"`{graph.name}` has size={size}, but its reader gives {wanted} images per epoch."
    action, numbers = "Use the reader's name in place of a size:", {"size": size, "images": wanted}
    return failed("wrong_size", wrong, next=action, write=_NAMED, place=graph.place, numbers=numbers)


def _delivered(order: Order, graph: OrderedGraph, iterator: Iterator) -> tuple[int, list[list[int]]] | None:
    """The number of files, and per epoch the numbers that all shards together deliver; None when one is unknown."""
    files, streams = order.files, graph.streams[:1]
    if graph.shard_count > 1:
        if graph.shards is None or len(graph.shards.numbers) != graph.shard_count:
            return None
        files, streams = graph.shards.files, graph.shards.numbers
    settings = Settings(iterator.policy, bool(iterator.reader_name), iterator.padded)
    together: list[list[int]] = [[] for _ in range(_EPOCHS)]
    for shard, stream in enumerate(streams):
        reader = graph.reader(files, shard)
        own = [] if stream is None else epochs(stream, order.batch_size, settings, reader, _EPOCHS)
        if len(own) < _EPOCHS:
            return None
        for epoch, numbers in zip(together, own, strict=True):
            epoch.extend(numbers)
    return files, together


def _not_whole(graph: OrderedGraph) -> Result:
    """The result where too few batches of a graph were seen to say what an epoch holds."""
    if graph.shard_count > 1:
        out, place = f"Not all of the {graph.shard_count} shards of `{graph.name}` could be looked at.", graph.place
        action = "Build it with four shards at most, and run each of them yourself."
        return unverified("no_numbers", out, seen=graph.stopped, next=action, place=place, tier=Tier.GRAPH)
    unseen = f"Two whole epochs of `{graph.name}` could not be seen, so nothing is counted."
    action = "Give its reader a name, and the iterator reader_name, so that an epoch ends where the reader's does:"
    return unverified("no_numbers", unseen, next=action, write=_NAMED, place=graph.place, tier=Tier.GRAPH)


def _lacks_files(graph: OrderedGraph, iterator: Iterator, lost: str, told: dict[str, Any]) -> Result:
    if iterator.policy == "DROP":
        drops = f"`{graph.name}` drops the last, incomplete batch of an epoch, and {lost} with it."
        return failed("drops_files", drops, next="Keep that batch:", write=_PARTIAL, **told)
    lacks = f"An epoch of `{graph.name}` lacks {lost}, which its reader gave to the epoch before."
    action = "Let the reader pad its last batch:"
    return failed("not_padded", lacks, next=action, write=_PADDED, place=graph.place, **told)


def _repeats_files(graph: OrderedGraph, iterator: Iterator, count: int, told: dict[str, Any]) -> Result:
    padded = graph.flag("pad_last_batch")
    lines = [*([] if padded else [_PADDED]), *([_PARTIAL] if iterator.policy == "FILL" else [])]
    twice = f"Images come twice in an epoch of `{graph.name}` (LastBatchPolicy.{iterator.policy}): {count} too many."
    wanted, place = "No file should come twice in an epoch.", None if padded else graph.place
    action = "Set this in the reader and in the iterator:" if len(lines) > 1 else "Set this:"
    line = "\n".join(lines or [_NAMED])
    return failed("repeats", twice, wanted=wanted, next=action, write=line, place=place, **told)
