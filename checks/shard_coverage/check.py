"""The check `shard_coverage`: do the learner's shards hold every file exactly once, in equally many steps?"""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import GRAPH_PROBE, NO_SUCH_GRAPH, common
from checks.epoch_coverage.order import Order, OrderedGraph
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_WORD = "shards"
_MOST_CARRIED = 4


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


class ShardCoverageCheck:
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

    id: ClassVar[str] = "shard_coverage"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Shards of the data"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("epoch_order",)
    codes: ClassVar[Mapping[str, str]] = common(_WORD, GRAPH_PROBE, NO_SUCH_GRAPH) | {
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
    params_model: ClassVar[type[BaseModel]] = Params
    observation_model: ClassVar[type[BaseModel]] = Order

    def observe(self, evidence: Evidence) -> Order | CheckResult:
        """See `checks.api.Check.observe`."""
        return read_probe(evidence, _WORD, "epoch_order", Order)

    def judge(self, observation: Order, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        usable = observation.usable()
        if not usable:
            return no_such_graph(_WORD, None)
        sharded = [graph for graph in usable if graph.shard_count > 1]
        if not sharded:
            return _not_sharded(usable, params)
        counts = sorted({graph.shard_count for graph in sharded})
        if counts != [params.shards]:
            return failed(
                f"{_WORD}.wrong_count",
                f"The readers are written for {' and '.join(map(str, counts))} shards{sharded[0].where}; "
                f"{params.shards} were wanted. Set num_shards to the number of ranks in every pipeline.",
                tier=Tier.GRAPH, details=_details(sharded),
            )  # fmt: skip
        by_shard = {graph.number("shard_id", 0): graph for graph in reversed(sharded)}
        return (
            _numbering(sharded, by_shard, usable, params)
            or _settings(sharded, params)
            or _coverage(sharded, by_shard, observation, params)
        )


def _not_sharded(usable: list[OrderedGraph], params: Params) -> CheckResult:
    where = usable[0].where
    only_id = any(graph.number("shard_id", 0) > 0 for graph in usable)
    said = "shard_id is set, but num_shards is not, so" if only_id else "No reader sets num_shards, so"
    return failed(
        f"{_WORD}.not_sharded",
        f"{said} every rank reads all files{where}. Give fn.readers.file num_shards={params.shards} (the world "
        "size) and "
        "shard_id (the rank).",
        tier=Tier.GRAPH, details=_details(usable),
    )  # fmt: skip


def _numbering(
    sharded: list[OrderedGraph], by_shard: dict[int, OrderedGraph], usable: list[OrderedGraph], params: Params
) -> CheckResult | None:
    """Whether the learner built a pipeline for every shard, each with a number of its own."""
    twice = [number for number, count in Counter(graph.number("shard_id", 0) for graph in sharded).items() if count > 1]
    missing = sorted(set(range(params.shards)) - set(by_shard))
    if params.pipelines == "one" and not missing:
        return None
    if twice and missing:
        same = sorted(f"`{graph.name}`" for graph in sharded if graph.number("shard_id", 0) == twice[0])
        names = " and ".join((", ".join(same[:-1]), same[-1])) + (" both" if len(same) == 2 else " all")
        return failed(
            f"{_WORD}.same_shard",
            f"{names} read shard {twice[0]} of {params.shards}{sharded[0].where}, and nobody reads shard "
            f"{', '.join(map(str, missing))}. Make shard_id a parameter of the pipeline and pass the rank.",
            tier=Tier.GRAPH, details=_details(sharded),
        )  # fmt: skip
    if not missing or params.pipelines == "one":
        return None
    if len(usable) >= _MOST_CARRIED:
        return undecided(
            Outcome.UNVERIFIED,
            f"{_WORD}.too_many",
            f"{len(usable)} pipelines were looked at, which is as many as are carried, and none of them reads shard "
            f"{', '.join(map(str, missing))} of {params.shards}. Keep only the {params.shards} sharded pipelines in "
            "variables.",
            tier=Tier.GRAPH, details=_details(sharded),
        )  # fmt: skip
    return failed(
        f"{_WORD}.missing",
        f"Pipelines were built for shard {', '.join(map(str, sorted(by_shard)))} of {params.shards} only; shard "
        f"{', '.join(map(str, missing))} is read by nobody. Build one pipeline per rank, with shard_id=rank, and keep "
        "all of them in variables or a list.",
        tier=Tier.GRAPH, details=_details(sharded),
    )  # fmt: skip


def _settings(sharded: list[OrderedGraph], params: Params) -> CheckResult | None:
    for name in ("pad_last_batch", "stick_to_shard", "random_shuffle"):
        if len({graph.flag(name) for graph in sharded}) > 1:
            return failed(
                f"{_WORD}.mixed_settings",
                f"The pipelines of different shards do not agree on {name}{sharded[0].where}. Build all of them by the "
                "same function.",
                tier=Tier.GRAPH, details=_details(sharded),
            )  # fmt: skip
    sticks = sharded[0].flag("stick_to_shard")
    if params.stick_to_shard is not None and sticks is not params.stick_to_shard:
        return failed(
            f"{_WORD}.{'sticks' if sticks else 'rotates'}",
            f"The readers have stick_to_shard={sticks}{sharded[0].where}; {params.stick_to_shard} was wanted. With it, "
            "a rank reads the same files in every epoch; without, the shards go round.",
            tier=Tier.GRAPH, details=_details(sharded),
        )  # fmt: skip
    uneven = not sharded[0].flag("pad_last_batch") and not all(graph.reader_name for graph in sharded)
    if params.equal_steps and uneven:
        return failed(
            f"{_WORD}.unequal_steps",
            f"Where the files do not divide evenly, the ranks have unequal numbers of batches{sharded[0].where}, and "
            "the one that has finished leaves the others waiting in the next all-reduce. Set pad_last_batch=True in "
            "fn.readers.file and reader_name in the iterator.",
            tier=Tier.GRAPH, details=_details(sharded),
        )  # fmt: skip
    return None


def _coverage(
    sharded: list[OrderedGraph], by_shard: dict[int, OrderedGraph], order: Order, params: Params
) -> CheckResult:
    """What the shards read: each with its own graph; with `pipelines = "one"`, others by the first graph."""
    files = next((graph.shards.files for graph in sharded if graph.shards is not None), 0)
    read: list[list[int]] = []
    for shard in range(params.shards):
        graph = by_shard.get(shard, sharded[0])
        numbers = graph.shards.numbers if graph.shards is not None and graph.shards.files == files else ()
        stream = numbers[shard] if shard < len(numbers) else None
        if stream is None:
            return undecided(
                Outcome.UNVERIFIED,
                f"{_WORD}.no_numbers",
                f"What shard {shard} of `{graph.name}` reads could not be seen. Return the reader's labels from the "
                f"pipeline. {graph.problem}".strip(),
                tier=Tier.GRAPH, details=_details(sharded),
            )  # fmt: skip
        size = graph.reader(files, shard).sizes()[shard]
        read.append([number for batch in stream for number in batch][:size])
    counts = Counter(number for numbers in read for number in numbers)
    shared = sorted(number for number, count in counts.items() if count > 1)
    lost = sorted(set(range(files)) - set(counts))
    details = _details(sharded) | {"read": read, "files": files}
    if shared or lost:
        return failed(
            f"{_WORD}.{'overlap' if shared else 'incomplete'}",
            f"Of {files} files, {len(shared)} are read by more than one shard and {len(lost)} by none, in the first "
            f"epoch{sharded[0].where}. Let fn.readers.file make the shards, and change nothing about them afterwards.",
            tier=Tier.GRAPH, details=details,
        )  # fmt: skip
    ours = sorted(set(range(params.shards)) - set(by_shard))
    said = (
        f" You built a pipeline for shard {', '.join(map(str, sorted(by_shard)))}; the grader set shard_id for "
        "the others."
        if ours
        else ""
    )
    sizes = ", ".join(str(len(numbers)) for numbers in read)
    return passed(
        f"{_WORD}.ok",
        f"{params.shards} shards read {sizes} of {files} files in batches of {order.batch_size}: disjoint, and "
        "together "
        f"every file once.{said}",
        tier=Tier.GRAPH, details=details,
    )  # fmt: skip


def _details(graphs: list[OrderedGraph]) -> dict[str, object]:
    return {"readers": {graph.name: [dict(reader) for reader in graph.readers] for graph in graphs}}


CHECK = ShardCoverageCheck()
