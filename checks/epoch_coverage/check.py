"""The check `epoch_coverage`: does an epoch of the learner's iterator hold every file, and none of them twice?"""

from typing import Annotated, Literal, cast

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import GRAPH_PROBE, LEARNER_PROBE, NO_SUCH_GRAPH, common
from checks.epoch_coverage.iterating import Policy, Settings, epochs
from checks.epoch_coverage.order import Order, OrderedGraph
from checks.probing import no_such_graph, read_probe
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome, Tier

_WORD = "epoch"
_EPOCHS = 2
_POLICIES = ("FILL", "PARTIAL", "DROP")
_NAMED = 'fn.readers.file(..., name="Reader")\nDALIGenericIterator(..., reader_name="Reader")'
_PADDED = "fn.readers.file(..., pad_last_batch=True)"
_ITERATOR = (
    'dali_iter = DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True,\n'
    "                                last_batch_policy=LastBatchPolicy.PARTIAL)"
)


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


class EpochCoverageCheck(Check[Params, Observation]):
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

    id = "epoch_coverage"
    version = "1.1.0"
    title = "Every file once per epoch"
    word = _WORD
    needs = frozenset({Need.DISCOVERY})
    probes = ("epoch_order", "epoch_order_claims")
    codes = common(_WORD, GRAPH_PROBE, LEARNER_PROBE, NO_SUCH_GRAPH) | {
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
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        order = read_probe(evidence, _WORD, "epoch_order", Order, ProbeSite.GRAPH)
        if isinstance(order, Result):
            return order
        claims = read_probe(evidence, _WORD, "epoch_order_claims", Claims, ProbeSite.LEARNER)
        if isinstance(claims, Result):
            return claims
        return Observation(order=order, claims=claims)

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        graph = observation.order.chosen(params.graph)
        if graph is None:
            return no_such_graph(_WORD, params.graph)
        iterator = next((one for one in observation.claims.iterators if one.name == graph.name), None)
        if iterator is None:
            return undecided(
                Outcome.UNVERIFIED,
                f"{_WORD}.no_iterator",
                Feedback(
                    outcome=f"No DALI iterator was found around `{graph.name}`, so where its epochs end is not known.",
                    next=NextStep(text="Wrap the pipeline, and keep the iterator in a variable:", code=_ITERATOR),
                ),
            )
        problem = _settings_problem(graph, iterator)
        if problem is not None:
            return problem
        if any(stream is None for stream in graph.streams) or not graph.streams:
            return undecided(Outcome.UNVERIFIED, f"{_WORD}.no_numbers", graph.not_told_apart, tier=Tier.GRAPH)
        return _judge(observation.order, graph, iterator, params)


def _settings_problem(graph: OrderedGraph, iterator: Iterator) -> Result | None:
    """What already the iterator's settings decide."""
    by_size = iterator.size is not None and iterator.size > 0
    if not iterator.reader_name and not by_size:
        return failed(
            f"{_WORD}.endless",
            Feedback(
                outcome=f"`{graph.name}` has neither reader_name nor size, so a loop over it never ends.",
                next=NextStep(text="Name the reader in both places:", place=graph.place, code=_NAMED),
            ),
        )
    if iterator.policy not in _POLICIES or iterator.pipelines < 1:
        return undecided(
            Outcome.UNVERIFIED,
            f"{_WORD}.policy_unknown",
            Feedback(
                outcome=f"What `{graph.name}` does with the last batch of an epoch could not be read.",
                next=NextStep(text="Leave DALI's iterator classes as they are, and hand it in again."),
            ),
        )
    if not iterator.reader_name and by_size and iterator.epoch_size is not None:
        wanted = -(-iterator.epoch_size // graph.shard_count) * max(1, iterator.pipelines)
        if iterator.size not in (wanted, iterator.epoch_size // graph.shard_count * max(1, iterator.pipelines)):
            return failed(
                f"{_WORD}.wrong_size",
                Feedback(
                    outcome=f"`{graph.name}` has size={iterator.size}, but its reader gives {wanted} images per epoch.",
                    next=NextStep(text="Use the reader's name in place of a size:", place=graph.place, code=_NAMED),
                    numbers={"size": iterator.size or 0, "images": wanted},
                ),
            )
    return None


def _judge(order: Order, graph: OrderedGraph, iterator: Iterator, params: Params) -> Result:
    policy = cast("Policy", iterator.policy)
    settings = Settings(policy, bool(iterator.reader_name), iterator.padded)
    if params.policy in ("partial", "drop", "fill") and params.policy != policy.lower():
        wanted = f"LastBatchPolicy.{params.policy.upper()}"
        return failed(
            f"{_WORD}.wrong_policy",
            Feedback(
                outcome=f"`{graph.name}` ends its epochs by LastBatchPolicy.{policy}; this lab wants {wanted}.",
                next=NextStep(text="Set the policy of the iterator:", code=f"last_batch_policy={wanted}"),
            ),
        )
    files, delivered = _delivered(order, graph, settings)
    if delivered is None:
        return undecided(Outcome.UNVERIFIED, f"{_WORD}.no_numbers", _not_whole(graph), tier=Tier.GRAPH)
    missing = [len(one) for one in _missing(files, delivered)]
    repeats = [len(epoch) - len(set(epoch)) for epoch in delivered]
    details = {
        "graph": graph.name, "files": files, "batch_size": order.batch_size, "policy": policy,
        "delivered": [len(epoch) for epoch in delivered], "missing": missing, "repeats": repeats,
        "iterator": iterator.model_dump(mode="json"),
    }  # fmt: skip
    told = Feedback(
        outcome=f"`{graph.name}` ends its epochs by LastBatchPolicy.{policy}, as this lab wants.",
        seen=f"The grader ran it on {files} numbered files in batches of {order.batch_size}: "
        f"{' and '.join(str(len(epoch)) for epoch in delivered)} images came in two epochs.",
        numbers={"files": files, "missing": max(missing), "repeats": max(repeats)},
    )
    if params.policy == "fill" or (params.policy == "drop" and not any(repeats)):
        return passed(told, details=details)
    if any(missing) and params.policy != "drop" and not (policy == "FILL" and any(repeats)):
        code, changes = _files_missing(graph, policy, f"{max(missing)} of {files} files")
        return failed(code, told.model_copy(update=changes), details=details)
    if any(repeats) and params.policy != "covers":
        changes = _repeats(graph, policy, max(repeats))
        return failed(f"{_WORD}.repeats", told.model_copy(update=changes), details=details)
    once = "" if any(repeats) else " exactly once"
    outcome = f"Every file comes{once} in each epoch of `{graph.name}`."
    if any(missing):
        outcome = f"The epochs of `{graph.name}` hold the files that this lab wants."
    return passed(told.model_copy(update={"outcome": outcome}), details=details)


def _not_whole(graph: OrderedGraph) -> Feedback:
    """Feedback where too few batches of a graph were seen to say what an epoch holds."""
    if graph.shard_count == 1:
        outcome = f"Two whole epochs of `{graph.name}` could not be seen, so nothing is counted."
        action = "Give its reader a name, and the iterator reader_name, so that an epoch ends where the reader's does:"
        return Feedback(outcome=outcome, next=NextStep(text=action, place=graph.place, code=_NAMED))
    return Feedback(
        outcome=f"Not all of the {graph.shard_count} shards of `{graph.name}` could be looked at.",
        seen=graph.stopped,
        next=NextStep(text="Build it with four shards at most, and run each of them yourself.", place=graph.place),
    )


def _missing(files: int, delivered: list[list[int]]) -> list[set[int]]:
    """Per epoch, the files that it lacks; what the epoch before read ahead of it counts as its own."""
    missing = []
    ahead: set[int] = set()
    for epoch in delivered:
        missing.append(set(range(files)) - set(epoch) - ahead)
        ahead = set(epoch[files:])
    return missing


def _files_missing(graph: OrderedGraph, policy: str, lost: str) -> tuple[str, dict[str, object]]:
    """Code, and what to say of files that an epoch lacks."""
    if policy == "DROP":
        outcome = f"`{graph.name}` drops the last, incomplete batch of an epoch, and {lost} with it."
        step = NextStep(text="Keep that batch:", code="last_batch_policy=LastBatchPolicy.PARTIAL")
        return f"{_WORD}.drops_files", {"outcome": outcome, "next": step}
    outcome = f"An epoch of `{graph.name}` lacks {lost}, which its reader gave to the epoch before."
    step = NextStep(text="Let the reader pad its last batch:", place=graph.place, code=_PADDED)
    return f"{_WORD}.not_padded", {"outcome": outcome, "next": step}


def _repeats(graph: OrderedGraph, policy: str, count: int) -> dict[str, object]:
    """What to say of files that come more than once."""
    padded = graph.flag("pad_last_batch")
    lines = [] if padded else [_PADDED]
    lines += ["last_batch_policy=LastBatchPolicy.PARTIAL"] if policy == "FILL" else []
    return {
        "outcome": f"Images come twice in an epoch of `{graph.name}` (LastBatchPolicy.{policy}): {count} too many.",
        "wanted": "No file should come twice in an epoch.",
        "next": NextStep(
            text="Set this in the reader and in the iterator:" if len(lines) > 1 else "Set this:",
            place=None if padded else graph.place,
            code="\n".join(lines or [_NAMED]),
        ),
    }


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
