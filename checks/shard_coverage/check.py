"""The check `shard_coverage`: do the learner's shards hold every file exactly once, in equally many steps?"""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.epoch_coverage.order import Order, OrderedGraph
from checks.listing import listed
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome, Tier

_WORD = "shards"
_MOST_CARRIED = 4
_EACH = "pipes = [train_pipeline(shard_id=rank, num_shards={shards}) for rank in range({shards})]"


class Params(Wire):
    """What the lab asks of the shards."""

    shards: Annotated[int, Field(ge=2, le=_MOST_CARRIED)] = 2
    """How many ranks the lab has; `num_shards` of every pipeline."""
    pipelines: Literal["each", "one"] = "each"
    """`each`: one pipeline per shard was built, as a loop over ranks does. `one`: one is enough, and the grader makes
    the others by setting its `shard_id`."""
    equal_steps: bool = True
    """Whether every rank must have equally many batches, also where files do not divide evenly."""
    stick_to_shard: bool | None = None
    """Whether the readers must have it set, or must not; not looked at if absent."""


class ShardCoverageCheck(Check[Params, Order]):
    """Judges whether the pipelines that the learner built for several ranks share the files between them.

    Evidence:
        probe `epoch_order`: `shard_id` and `num_shards` as they stand in each carried graph, and the numbers of the
            files that it reads with exactly these, in a pod of ours.
    Points: all or nothing.
    Errors: 0 false accepts on 9 failing and 0 false rejects on 6 passing controls in
        `tests/builtin_graph/test_shard_coverage.py`.
    Cannot detect: where the learner's process gets its rank from; with `pipelines = "one"`, whether `shard_id` follows
        the rank at all, since the grader set it for the other shards: the feedback says so. A run carries four graphs,
        so more than four shards are not asked for.
    """

    id = "shard_coverage"
    version = "1.1.0"
    title = "Shards of the data"
    word = _WORD
    needs = frozenset({Need.DISCOVERY})
    probes = ("epoch_order",)
    codes = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
        "shards.ok": "the shards hold every file once",
        "shards.not_sharded": "no reader sets `num_shards`",
        "shards.wrong_count": "readers have another number of shards than wanted",
        "shards.same_shard": "several pipelines read one shard, and another is left out",
        "shards.too_many": "unverified: more pipelines may exist than are carried",
        "shards.missing": "no pipeline was built for a shard",
        "shards.mixed_settings": "pipelines of different shards have different settings",
        "shards.sticks": "readers have `stick_to_shard`, and the lab wants none",
        "shards.rotates": "readers lack `stick_to_shard`",
        "shards.unequal_steps": "ranks may have unequal numbers of batches",
        "shards.no_numbers": "unverified: what a shard reads could not be seen",
        "shards.overlap": "files are read by more than one shard",
        "shards.incomplete": "files are read by no shard",
    }
    params_model = Params
    observation_model = Order

    def observe(self, evidence: Evidence) -> Order | Result:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "epoch_order", Order, ProbeSite.GRAPH)

    def judge(self, observation: Order, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        usable = observation.usable()
        if not usable:
            return no_such_graph(_WORD, None)
        sharded = [graph for graph in usable if graph.shard_count > 1]
        if not sharded:
            return _not_sharded(usable, params)
        counts = sorted({graph.shard_count for graph in sharded})
        if counts != [params.shards]:
            told = Feedback(
                outcome=f"The readers are written for {listed(counts)} shards, and this lab has {params.shards}.",
                next=NextStep(
                    text="Set num_shards to the number of ranks, in every pipeline:",
                    place=sharded[0].place,
                    code=f"num_shards={params.shards}",
                ),
                numbers={"shards": counts[0], "needed": params.shards},
            )
            return failed(f"{_WORD}.wrong_count", told, tier=Tier.GRAPH, details=_details(sharded))
        by_shard = {graph.number("shard_id", 0): graph for graph in reversed(sharded)}
        return (
            _numbering(sharded, by_shard, usable, params)
            or _settings(sharded, params)
            or _coverage(sharded, by_shard, observation, params)
        )


def _not_sharded(usable: list[OrderedGraph], params: Params) -> Result:
    only_id = any(graph.number("shard_id", 0) > 0 for graph in usable)
    said = "A reader sets shard_id without num_shards" if only_id else "No reader sets num_shards"
    told = Feedback(
        outcome=f"{said}, so every rank reads all files.",
        next=NextStep(
            text="Give the reader both, from the rank and the number of ranks:",
            place=usable[0].place,
            code=f"fn.readers.file(..., shard_id=rank, num_shards={params.shards})",
        ),
    )
    return failed(f"{_WORD}.not_sharded", told, tier=Tier.GRAPH, details=_details(usable))


def _numbering(
    sharded: list[OrderedGraph], by_shard: dict[int, OrderedGraph], usable: list[OrderedGraph], params: Params
) -> Result | None:
    """Whether the learner built a pipeline for every shard, each with a number of its own."""
    twice = [number for number, count in Counter(graph.number("shard_id", 0) for graph in sharded).items() if count > 1]
    missing = sorted(set(range(params.shards)) - set(by_shard))
    if params.pipelines == "one" and not missing:
        return None
    details, each, lost = _details(sharded), _EACH.format(shards=params.shards), listed(missing)
    if twice and missing:
        same = sorted(f"`{graph.name}`" for graph in sharded if graph.number("shard_id", 0) == twice[0])
        told = Feedback(
            outcome=f"{listed(same)} {'both' if len(same) == 2 else 'all'} read shard {twice[0]} of {params.shards}, "
            f"and nobody reads shard {lost}.",
            next=NextStep(
                text="Make shard_id a parameter of the pipeline, and pass the rank:", place=sharded[0].place, code=each
            ),
        )
        return failed(f"{_WORD}.same_shard", told, tier=Tier.GRAPH, details=details)
    if not missing or params.pipelines == "one":
        return None
    if len(usable) >= _MOST_CARRIED:
        told = Feedback(
            outcome=f"Whether a pipeline reads shard {lost} is not known: only {len(usable)} pipelines are looked at.",
            next=NextStep(text=f"Keep no pipelines but the {params.shards} of your ranks in variables."),
        )
        return undecided(Outcome.UNVERIFIED, f"{_WORD}.too_many", told, tier=Tier.GRAPH, details=details)
    told = Feedback(
        outcome=f"No pipeline reads shard {lost} of {params.shards}.",
        seen=f"There are pipelines for shard {listed(sorted(by_shard))}.",
        next=NextStep(text="Build one per rank, and keep them in a list:", place=sharded[0].place, code=each),
    )
    return failed(f"{_WORD}.missing", told, tier=Tier.GRAPH, details=details)


def _settings(sharded: list[OrderedGraph], params: Params) -> Result | None:
    details, place = _details(sharded), sharded[0].place
    for name in ("pad_last_batch", "stick_to_shard", "random_shuffle"):
        if len({graph.flag(name) for graph in sharded}) > 1:
            told = Feedback(
                outcome=f"The pipelines of different shards do not agree on `{name}`.",
                next=NextStep(text="Build all of them by one function that takes the rank.", place=place),
            )
            return failed(f"{_WORD}.mixed_settings", told, tier=Tier.GRAPH, details=details)
    sticks = sharded[0].flag("stick_to_shard")
    if params.stick_to_shard is not None and sticks is not params.stick_to_shard:
        told = Feedback(
            outcome=f"The readers have stick_to_shard={sticks}, and this lab wants {params.stick_to_shard}.",
            seen="With it, a rank reads the same files in every epoch; without it, the shards go round.",
            next=NextStep(
                text="Set it in fn.readers.file:", place=place, code=f"stick_to_shard={params.stick_to_shard}"
            ),
        )
        return failed(f"{_WORD}.{'sticks' if sticks else 'rotates'}", told, tier=Tier.GRAPH, details=details)
    uneven = not sharded[0].flag("pad_last_batch") and not all(graph.reader_name for graph in sharded)
    if params.equal_steps and uneven:
        told = Feedback(
            outcome="Ranks may have unequal numbers of batches: one that has finished leaves the others waiting.",
            seen="This happens where the files do not divide evenly.",
            next=NextStep(
                text="Pad the shards, and name the reader in the iterator:",
                place=place,
                code='fn.readers.file(..., pad_last_batch=True, name="Reader")\n'
                'DALIGenericIterator(..., reader_name="Reader")',
            ),
        )
        return failed(f"{_WORD}.unequal_steps", told, tier=Tier.GRAPH, details=details)
    return None


def _coverage(sharded: list[OrderedGraph], by_shard: dict[int, OrderedGraph], order: Order, params: Params) -> Result:
    """What the shards read: each with its own graph; with `pipelines = "one"`, others by the first graph."""
    files = next((graph.shards.files for graph in sharded if graph.shards is not None), 0)
    read: list[list[int]] = []
    for shard in range(params.shards):
        graph = by_shard.get(shard, sharded[0])
        numbers = graph.shards.numbers if graph.shards is not None and graph.shards.files == files else ()
        stream = numbers[shard] if shard < len(numbers) else None
        if stream is None:
            told = Feedback(
                outcome=f"What shard {shard} of `{graph.name}` reads could not be seen.",
                seen=graph.stopped,
                next=NextStep(text="Return the reader's labels from the pipeline:", code="return images, labels"),
            )
            return undecided(
                Outcome.UNVERIFIED, f"{_WORD}.no_numbers", told, tier=Tier.GRAPH, details=_details(sharded)
            )
        size = graph.reader(files, shard).sizes()[shard]
        read.append([number for batch in stream for number in batch][:size])
    counts = Counter(number for numbers in read for number in numbers)
    shared = sorted(number for number, count in counts.items() if count > 1)
    lost = sorted(set(range(files)) - set(counts))
    details = _details(sharded) | {"read": read, "files": files}
    figures = {"files": files, "shared": len(shared), "lost": len(lost)}
    if shared or lost:
        told = Feedback(
            outcome=f"Of {files} files, more than one shard reads {len(shared)}, and none reads {len(lost)}.",
            next=NextStep(
                text="Let fn.readers.file make the shards, and change nothing about them afterwards:",
                place=sharded[0].place,
                code=f"fn.readers.file(..., shard_id=rank, num_shards={params.shards})",
            ),
            numbers=figures,
        )
        return failed(f"{_WORD}.{'overlap' if shared else 'incomplete'}", told, tier=Tier.GRAPH, details=details)
    seen = f"They read {listed([len(one) for one in read])} of {files} files, in batches of {order.batch_size}."
    if set(range(params.shards)) - set(by_shard):
        seen += f" You built shard {listed(sorted(by_shard))}; the grader set shard_id for the others."
    told = Feedback(
        outcome=f"{params.shards} shards are disjoint, and together hold every file once.", seen=seen, numbers=figures
    )
    return passed(told, tier=Tier.GRAPH, details=details)


def _details(graphs: list[OrderedGraph]) -> dict[str, object]:
    return {"readers": {graph.name: [dict(reader) for reader in graph.readers] for graph in graphs}}


CHECK = ShardCoverageCheck()
