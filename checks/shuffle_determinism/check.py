"""The check `shuffle_determinism`: is data shuffled anew each epoch, and does a seed repeat the order?"""

import itertools
from collections.abc import Sequence
from typing import Literal

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.epoch_coverage.order import Order, OrderedGraph
from checks.listing import listed
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome, Tier

_WORD = "shuffle"
_IN_ORDER = 0.7
"""Share of neighbours that follow each other in the files' own order; of 13 shuffled ones about 0.08 do."""
_SHUFFLE = "fn.readers.file(..., random_shuffle=True)"
_STILL = "fn.readers.file(..., random_shuffle=False, shuffle_after_epoch=False)"


class Params(Wire):
    """What the lab asks of the order."""

    shuffle: bool = True
    """Whether the pipeline shuffles; false for one that must not."""
    deterministic: bool = False
    """Whether two builds of the same graph must give the same order, by a fixed seed."""
    validation: Literal["if_found", "required", "ignored"] = "if_found"
    """Whether pipelines with `val`, `eval` or `test` in their name must read in the files' order."""
    graph: ShortText | None = None
    """Variable of the training pipeline or iterator; the best candidate that is not for validation if absent."""


class ShuffleDeterminismCheck(Check[Params, Order]):
    """Judges the order in which the learner's reader gives its files: shuffled or not, new each epoch, repeatable.

    Evidence:
        probe `epoch_order`: numbers of 13 files over two epochs, and over one of a second build, of the learner's graph
            with its own seed, in a pod of ours.
    Points: all or nothing; the training pipeline is judged before those for validation.
    Errors: 0 false accepts on 8 failing and 0 false rejects on 9 passing controls in
        `tests/builtin_graph/test_shuffle_determinism.py`. A shuffled reader comes out in the files' order, or twice in
        the same, with a probability of about 1 in 13!, which is below 1e-9.
    Cannot detect: a list of files that Python shuffled before the pipeline was built: it has one order for ever, and
        counts as not shuffled. Whether a fixed seed was chosen on purpose.
    """

    id = "shuffle_determinism"
    version = "1.1.0"
    title = "Shuffling and seeds"
    word = _WORD
    needs = frozenset({Need.DISCOVERY})
    probes = ("epoch_order",)
    codes = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
        "shuffle.ok": "the order is what the lab wants",
        "shuffle.off": "files come in their own order",
        "shuffle.on": "files are shuffled, and the lab wants their own order",
        "shuffle.same_each_epoch": "both epochs have the same order",
        "shuffle.not_reproducible": "two builds give different orders",
        "shuffle.no_validation": "no pipeline for validation was found",
        "shuffle.validation_shuffled": "a pipeline for validation shuffles",
        "shuffle.no_numbers": "unverified: the order could not be seen",
    }
    params_model = Params
    observation_model = Order

    def observe(self, evidence: Evidence) -> Order | Result:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "epoch_order", Order, ProbeSite.GRAPH)

    def judge(self, observation: Order, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        usable = observation.usable()
        training = [graph for graph in usable if not graph.is_for_validation] or usable
        graph = observation.chosen(params.graph) if params.graph is not None else next(iter(training), None)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        result = _judge(graph, observation, params)
        if result is not None:
            return result
        others = [other for other in usable if other.is_for_validation and other is not graph]
        if params.validation == "required" and not others:
            told = Feedback(
                outcome="No pipeline for validation was found.",
                wanted="One was wanted, in a variable with `val`, `eval` or `test` in its name.",
                next=NextStep(text="Build a second pipeline, whose reader does not shuffle:", code=_STILL),
            )
            return failed(f"{_WORD}.no_validation", told, tier=Tier.GRAPH)
        wrong = None if params.validation == "ignored" else next(filter(_is_shuffled, others), None)
        if wrong is not None:
            told = Feedback(
                outcome=f"`{wrong.name}` is for validation, and shuffles its files.",
                wanted="Validation should see the same images in the same order every time.",
                next=NextStep(text="Turn shuffling off in its reader:", place=wrong.place, code=_STILL),
            )
            return failed(f"{_WORD}.validation_shuffled", told, tier=Tier.GRAPH)
        return _passed(graph, others, observation, params)


def _judge(graph: OrderedGraph, order: Order, params: Params) -> Result | None:
    """What is wrong with one graph; None when nothing is."""
    flat = [_flat(stream) for stream in graph.streams if stream is not None]
    if not flat or len(flat) < len(graph.streams):
        return undecided(Outcome.UNVERIFIED, f"{_WORD}.no_numbers", graph.not_told_apart, tier=Tier.GRAPH)
    details = {"graph": graph.name, "orders": [one[: order.files] for one in flat]}
    shuffled = not _in_file_order(flat[0], order.files)
    if params.shuffle and not shuffled:
        told = Feedback(
            outcome=f"`{graph.name}` reads its files in their own order, epoch after epoch.",
            seen="A list that Python shuffles once has one order in every epoch, too.",
            next=NextStep(text="Shuffle in the reader:", place=graph.place, code=_SHUFFLE),
        )
        return failed(f"{_WORD}.off", told, tier=Tier.GRAPH, details=details)
    if not params.shuffle and shuffled:
        told = Feedback(
            outcome=f"`{graph.name}` shuffles its files, and this lab wants them in their own order.",
            next=NextStep(text="Turn shuffling off in the reader:", place=graph.place, code=_STILL),
        )
        return failed(f"{_WORD}.on", told, tier=Tier.GRAPH, details=details)
    first, second = _epochs(flat[0], graph, order)
    if params.shuffle and first == second:
        told = Feedback(
            outcome=f"`{graph.name}` gives its files in the same order in both epochs.",
            next=NextStep(
                text="Shuffle in the reader, and do not reset the pipeline between epochs:",
                place=graph.place,
                code=_SHUFFLE,
            ),
        )
        return failed(f"{_WORD}.same_each_epoch", told, tier=Tier.GRAPH, details=details)
    if params.deterministic and len(flat) > 1 and flat[0][: len(flat[1])] != flat[1][: len(flat[0])]:
        told = Feedback(
            outcome=f"Two builds of `{graph.name}` give their files in different orders.",
            wanted="The same seed should repeat the order.",
            next=NextStep(text="Give the pipeline a seed:", code="@pipeline_def(..., seed=42)"),
        )
        return failed(f"{_WORD}.not_reproducible", told, tier=Tier.GRAPH, details=details)
    if params.deterministic and len(flat) < 2:
        told = Feedback(
            outcome=f"Whether two builds of `{graph.name}` give one order is not known, because only one ran.",
            seen=graph.stopped,
            next=NextStep(text="Build and run it twice yourself, and see where it stops."),
        )
        return undecided(Outcome.UNVERIFIED, f"{_WORD}.no_numbers", told, tier=Tier.GRAPH, details=details)
    return None


def _passed(graph: OrderedGraph, others: Sequence[OrderedGraph], order: Order, params: Params) -> Result:
    order_kept = "shuffles its files, anew in each epoch" if params.shuffle else "keeps the files' order"
    seen = ["Two builds give the same order."] if params.deterministic else []
    names = [f"`{other.name}`" for other in others if any(stream is not None for stream in other.streams)]
    if names and params.validation != "ignored":
        seen.append(f"{listed(names)} {'does' if len(names) == 1 else 'do'} not shuffle.")
    flat = [_flat(stream)[: order.files] for stream in graph.streams if stream is not None]
    told = Feedback(outcome=f"`{graph.name}` {order_kept}.", seen=" ".join(seen))
    return passed(told, tier=Tier.GRAPH, details={"graph": graph.name, "orders": flat})


def _is_shuffled(graph: OrderedGraph) -> bool:
    stream = next((stream for stream in graph.streams if stream is not None), None)
    return stream is not None and not _in_file_order(_flat(stream), 1 + max(map(max, stream)))


def _flat(stream: Sequence[Sequence[int]]) -> list[int]:
    return [number for batch in stream for number in batch]


def _in_file_order(numbers: Sequence[int], files: int) -> bool:
    """Whether nearly all neighbours follow each other; repeats that pad a batch are left out."""
    steps = [(after - before) % max(files, 1) for before, after in itertools.pairwise(numbers) if after != before]
    return not steps or sum(step == 1 for step in steps) >= _IN_ORDER * len(steps)


def _epochs(numbers: list[int], graph: OrderedGraph, order: Order) -> tuple[list[int], list[int]]:
    """The order of the first two epochs, without the repeats that pad them."""
    reader = graph.reader(order.files)
    sizes = reader.sizes()
    first = sizes[reader.shard % reader.shards]
    length = -(-max(sizes) // order.batch_size) * order.batch_size if reader.padded else first
    return _once(numbers[:length]), _once(numbers[length : 2 * length])


def _once(numbers: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


CHECK = ShuffleDeterminismCheck()
