"""The check `epoch_coverage`: does an epoch of the learner's iterator hold every file, and none of them twice?"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, cast

from pydantic import BaseModel, Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import GRAPH_PROBE, LEARNER_PROBE, NO_SUCH_GRAPH, common
from checks.epoch_coverage.iterating import Policy, Settings, epochs
from checks.epoch_coverage.order import Order, OrderedGraph
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_WORD = "epoch"
_EPOCHS = 2
_POLICIES = ("FILL", "PARTIAL", "DROP")


class Params(Wire):
    """What the lab asks of an epoch."""

    policy: Literal["exactly_once", "covers", "partial", "drop", "fill"] = "exactly_once"
    """`exactly_once`: every file once, by any settings. `covers`: every file at least once, repeats allowed.
    `partial`, `drop`, `fill`: the iterator has this policy; `partial` must also hold every file exactly once."""
    graph: ShortText | None = None
    """Variable of the iterator; the one that is measured if absent."""


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


class Observation(Wire):
    """The reader's order, which is a fact, and the iterator's settings, which are claims."""

    order: Order
    claims: Claims


class EpochCoverageCheck:
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
        `tests/builtin_graph/test_epoch_coverage.py`. A reader that shuffles without padding has every file in both
        epochs by chance once in 286 runs.
    Cannot detect: loops of the learner that stop an epoch early; iterators that are not in a variable. Of a sharded
        graph the other shards are made by the grader: see the check `shard_coverage` for what the learner wrote.
    """

    id: ClassVar[str] = "epoch_coverage"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Every file once per epoch"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("epoch_order", "epoch_order_claims")
    codes: ClassVar[Mapping[str, str]] = common(_WORD, GRAPH_PROBE, LEARNER_PROBE, NO_SUCH_GRAPH) | {
        "epoch.ok": "the epochs hold the files that the lab wants",
        "epoch.no_iterator": "unverified: no DALI iterator belongs to the graph",
        "epoch.no_numbers": "unverified: it could not be seen which files came",
        "epoch.endless": "the iterator has neither `reader_name` nor `size`",
        "epoch.policy_unknown": "unverified: the iterator's policy could not be read",
        "epoch.wrong_size": "the iterator's `size` is not its reader's",
        "epoch.wrong_policy": "the iterator has another policy than wanted",
        "epoch.drops_files": "the last, incomplete batch is dropped, and files with it",
        "epoch.not_padded": "files are missing from an epoch, since nothing is padded",
        "epoch.repeats": "files come twice in an epoch",
    }
    params_model: ClassVar[type[BaseModel]] = Params
    observation_model: ClassVar[type[BaseModel]] = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        order = read_probe(evidence, _WORD, "epoch_order", Order)
        if isinstance(order, CheckResult):
            return order
        claims = read_probe(evidence, _WORD, "epoch_order_claims", Claims)
        if isinstance(claims, CheckResult):
            return claims
        return Observation(order=order, claims=claims)

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        graph = observation.order.chosen(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        iterator = next((one for one in observation.claims.iterators if one.name == graph.name), None)
        if iterator is None:
            return undecided(
                Outcome.UNVERIFIED,
                f"{_WORD}.no_iterator",
                f"No DALI iterator belongs to `{graph.name}`, so it is not known where an epoch ends. Wrap the "
                "pipeline "
                "in DALIGenericIterator(..., reader_name=...) and keep it in a variable.",
            )
        problem = _settings_problem(graph, iterator)
        if problem is not None:
            return problem
        if any(stream is None for stream in graph.streams) or not graph.streams:
            return undecided(
                Outcome.UNVERIFIED,
                f"{_WORD}.no_numbers",
                f"The images of `{graph.name}` cannot be told apart: its labels are changed and its pictures too much. "
                "Return the reader's labels from the pipeline.",
                tier=Tier.GRAPH,
            )
        return _judge(observation.order, graph, iterator, params)


def _settings_problem(graph: OrderedGraph, iterator: Iterator) -> CheckResult | None:
    """What already the iterator's settings decide."""
    by_size = iterator.size is not None and iterator.size > 0
    if not iterator.reader_name and not by_size:
        return failed(
            f"{_WORD}.endless",
            f"`{graph.name}` has neither reader_name nor size, so it never ends: len() is 0 and a loop over it "
            "runs for "
            f'ever. Give the reader a name (name="Reader") and the iterator reader_name="Reader".',
        )
    if iterator.policy not in _POLICIES or iterator.pipelines < 1:
        return undecided(
            Outcome.UNVERIFIED,
            f"{_WORD}.policy_unknown",
            f"What `{graph.name}` does with the last batch could not be read. Leave DALI's iterators as they are.",
        )
    if not iterator.reader_name and by_size and iterator.epoch_size is not None:
        wanted = -(-iterator.epoch_size // graph.shard_count) * max(1, iterator.pipelines)
        if iterator.size not in (wanted, iterator.epoch_size // graph.shard_count * max(1, iterator.pipelines)):
            return failed(
                f"{_WORD}.wrong_size",
                f"`{graph.name}` has size={iterator.size}, but its reader gives {wanted} images per epoch"
                f'{graph.where}. Use reader_name="Reader" instead of a size, so that both always agree.',
            )
    return None


def _judge(order: Order, graph: OrderedGraph, iterator: Iterator, params: Params) -> CheckResult:
    policy = cast("Policy", iterator.policy)
    settings = Settings(policy, bool(iterator.reader_name), iterator.padded)
    if params.policy in ("partial", "drop", "fill") and params.policy != policy.lower():
        return failed(
            f"{_WORD}.wrong_policy",
            f"`{graph.name}` ends its epochs with LastBatchPolicy.{policy}; "
            f"LastBatchPolicy.{params.policy.upper()} was "
            "wanted. Set last_batch_policy of the iterator"
            + (", and give it reader_name or size, without which the policy is not used." if policy == "FILL" else "."),
        )
    files, delivered = _delivered(order, graph, settings)
    if delivered is None:
        return undecided(
            Outcome.UNVERIFIED,
            f"{_WORD}.no_numbers",
            f"`{graph.name}` has {graph.shard_count} shards, of which not every one could be looked at. "
            f"{graph.problem}".strip(),
            tier=Tier.GRAPH,
        )
    missing = _missing(files, delivered)
    repeats = [len(epoch) - len(set(epoch)) for epoch in delivered]
    details = {
        "graph": graph.name, "files": files, "batch_size": order.batch_size, "policy": policy,
        "delivered": [len(epoch) for epoch in delivered], "missing": [len(one) for one in missing], "repeats": repeats,
        "iterator": iterator.model_dump(mode="json"),
    }  # fmt: skip
    shown = " and ".join(f"{len(epoch)} images in epoch {number + 1}" for number, epoch in enumerate(delivered))
    seen = (
        f"With {files} numbered files in batches of {order.batch_size}, `{graph.name}` (LastBatchPolicy.{policy}"
        f"{', pad_last_batch=True' if graph.flag('pad_last_batch') else ''}) delivers {shown}"
    )
    if params.policy == "fill" or (params.policy == "drop" and not any(repeats)):
        return passed(f"{_WORD}.ok", f"{seen}; LastBatchPolicy.{policy} was wanted.", details=details)
    if any(missing) and not (policy == "FILL" and any(repeats)):
        return _files_missing(graph, policy, seen, [len(one) for one in missing], details)
    if any(repeats) and params.policy != "covers":
        return failed(
            f"{_WORD}.repeats",
            f"{seen}: {max(repeats)} of them come twice{graph.where}. Count or train on every file once: use "
            "last_batch_policy=LastBatchPolicy.PARTIAL in the iterator and pad_last_batch=True in the reader.",
            details=details,
        )
    return passed(f"{_WORD}.ok", f"{seen}: every file{'' if any(repeats) else ' exactly once'}.", details=details)


def _missing(files: int, delivered: list[list[int]]) -> list[set[int]]:
    """Per epoch, the files that it lacks; what the epoch before read ahead of it counts as its own."""
    missing = []
    ahead: set[int] = set()
    for epoch in delivered:
        missing.append(set(range(files)) - set(epoch) - ahead)
        ahead = set(epoch[files:])
    return missing


def _files_missing(
    graph: OrderedGraph, policy: str, seen: str, missing: list[int], details: dict[str, object]
) -> CheckResult:
    if policy == "DROP":
        return failed(
            f"{_WORD}.drops_files",
            f"{seen}: the last, incomplete batch is dropped, and {max(missing)} file(s) with it. Use "
            "last_batch_policy=LastBatchPolicy.PARTIAL.",
            details=details,
        )
    return failed(
        f"{_WORD}.not_padded",
        f"{seen}, and {max(missing)} file(s) are missing from an epoch: without padding the reader has already read on "
        f"into the next epoch when one ends{graph.where}. Set pad_last_batch=True in the reader.",
        details=details,
    )


def _delivered(order: Order, graph: OrderedGraph, settings: Settings) -> tuple[int, list[list[int]] | None]:
    """The number of files, and per epoch the numbers that all shards together deliver; None when one is unknown."""
    if graph.shard_count == 1:
        stream = graph.streams[0]
        whole = (
            None if stream is None else epochs(stream, order.batch_size, settings, graph.reader(order.files), _EPOCHS)
        )
        return order.files, whole if whole is not None and len(whole) == _EPOCHS else None
    if graph.shards is None or len(graph.shards.numbers) != graph.shard_count:
        return order.files, None
    together: list[list[int]] = [[] for _ in range(_EPOCHS)]
    for shard, stream in enumerate(graph.shards.numbers):
        if stream is None:
            return graph.shards.files, None
        own = epochs(stream, order.batch_size, settings, graph.reader(graph.shards.files, shard), _EPOCHS)
        if len(own) < _EPOCHS:
            return graph.shards.files, None
        for epoch, numbers in zip(together, own, strict=True):
            epoch.extend(numbers)
    return graph.shards.files, together


CHECK = EpochCoverageCheck()
