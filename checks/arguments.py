"""The arguments of a check: which part of the evidence each is, and what is answered where that part is not there.

An author writes one of the types below or of `WHOLE` behind the name of an argument, or the class that a probe in the
same file returns, or `Annotated[Model, FromProbe("name")]` for a probe of its own file. With `| None` the check is
asked all the same where the part is not there, unless that is an error of ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, Field

from checks.codes import DATASET, MEASUREMENT, NO_DALI, NOT_CARRIED
from checks.not_carried import no_dali, not_carried
from checks.results import Result, our_fault, undecided, unverified
from checks.stopped import absent, cut_short, missing, not_reached, run_end
from grader_service.model.base import ShortText
from grader_service.model.discovery import Discovery, LoaderFacts, PipelineFacts
from grader_service.model.evidence import BatchFacts, CleanRoom, Evidence, GraphFacts, Need, ProbeSite, RunRecord, Scan
from grader_service.model.measurement import Measurement
from grader_service.model.verdict import Outcome, Tier


@dataclass(frozen=True)
class Taken:
    """How an argument is taken from the evidence. Stands in an `Annotated`, beside the argument's type."""

    take: Callable[[Evidence], object]
    """Of the evidence: the value, or the check's result without it."""
    needs: frozenset[Need] = frozenset({Need.DISCOVERY})
    """What a run must collect for it."""
    tier: Tier | Callable[[Any], Tier] | None = None
    """What a result that rests on it is worth, or how that is told from the value; the check may say so itself."""
    codes: tuple[Sequence[str], ...] = field(default=())
    """Groups of `checks.codes` with which `take` can answer."""
    may_lack: bool = False
    """Whether `| None` stands for errors, too: `take` has no other answer where a run lacks what it need not have."""

    def worth(self, value: object) -> Tier | None:
        """What a result that rests on this value is worth."""
        return self.tier(value) if callable(self.tier) else self.tier


@dataclass(frozen=True)
class FromProbe:
    """Marks an argument as what a probe of a file of its own observed, at this site."""

    probe_id: str
    site: ProbeSite = ProbeSite.GRAPH


def _claims(part: Callable[[Discovery], Sequence[object]]) -> Taken:
    """What the learner's process said; where that is nothing and the code was stopped, the check was not reached."""

    def take(evidence: Evidence) -> object:
        if evidence.discovery is None:
            return not_reached()
        found = part(evidence.discovery)
        return found or cut_short(run_end(evidence.discovery)) or found

    return Taken(take, tier=Tier.CLAIMS)


def _room(evidence: Evidence) -> CleanRoom | Result:
    if evidence.discovery is None:
        return not_reached()
    if (result := no_dali(evidence.discovery)) is not None:
        return result
    return evidence.clean_room or cut_short(run_end(evidence.discovery)) or not_reached()


def _worth_of_room(room: CleanRoom) -> Tier:
    """Of a graph that did not run, what the learner's own code delivered instead is left."""
    if room.problem is None:
        return Tier.GRAPH
    return Tier(room.served.tier) if room.served is not None else Tier.CLAIMS


def _dataset(evidence: Evidence) -> Scan | Result:
    if evidence.scan is not None:
        return evidence.scan
    said = evidence.discovery
    if said is None:
        return not_reached()
    if (result := cut_short(run_end(said))) is not None:
        return result
    folder = "the folder with your JPEG files"
    if said.dataset_dir.status == "missing":
        return missing(absent(said, "dataset_dir"), folder)
    return unverified(
        "not_scanned",
        "No folder could be searched for JPEG files, so nothing is counted.",
        seen=f"`dataset_dir` holds {said.dataset_dir.shown}." if said.dataset_dir.shown else "",
        next=f"Set `dataset_dir` to {folder}, as a string or Path.",
        tier=Tier.CLAIMS,
    )


def _measurement(evidence: Evidence) -> Measurement | Result:
    found = evidence.measurement or _room(evidence)
    if not isinstance(found, CleanRoom):
        return found
    if found.problem is not None:
        return not_carried(found)
    return undecided(Outcome.ERROR, "not_measured", our_fault("The grader measured nothing."))


_CLEAN_ROOM = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM})
_CARRIED = (NO_DALI, NOT_CARRIED)


def _of_room(part: Callable[[CleanRoom], object]) -> Taken:
    """What the clean room found of the graph; where there is nothing, why."""

    def take(evidence: Evidence) -> object:
        room = _room(evidence)
        return room if isinstance(room, Result) else part(room) or not_carried(room)

    return Taken(take, _CLEAN_ROOM, Tier.GRAPH, _CARRIED)


Loaders = Annotated[tuple[LoaderFacts, ...], Field(max_length=16), _claims(lambda said: said.loaders)]
"""Every DataLoader (claims), the likeliest baseline first; `pin_memory`, `num_workers`, `batch_size` … of each."""
Pipelines = Annotated[tuple[PipelineFacts, ...], Field(max_length=16), _claims(lambda said: said.pipelines)]
"""Every DALI pipeline and iterator (claims); `name`, `reader_name`, `batch_size` … of each."""
Names = Annotated[tuple[ShortText, ...], Field(max_length=256), _claims(lambda said: said.defined)]
"""Names at the top level of the learner's code (claims), newest first."""
Dataset = Scan
"""Our inventory of the learner's files (a fact): `distinct`, `rejected`, `sizes` …"""
Graph = Annotated[GraphFacts, _of_room(lambda room: room.graph)]
"""The learner's graph (a fact): `operators` with name, device and line, `output_devices`, `augmentations` …"""
Batch = Annotated[BatchFacts, _of_room(lambda room: room.batch)]
"""The first batch of the learner's graph, which we drew (a fact): `shape`, `dtype`, `layout`, `device`, `low` …"""
Run = RunRecord
"""What the host saw (a fact): `device`, `entry_point`, `pods`, `learner_output` …"""

WHOLE: dict[type[BaseModel], Taken] = {
    Discovery: Taken(lambda evidence: evidence.discovery or not_reached(), tier=Tier.CLAIMS),
    Scan: Taken(_dataset, frozenset({Need.DISCOVERY, Need.SCAN}), codes=(DATASET,)),
    CleanRoom: Taken(_room, _CLEAN_ROOM, _worth_of_room, (NO_DALI,)),
    Measurement: Taken(
        _measurement,
        frozenset({Need.DISCOVERY, Need.MEASUREMENT}),
        lambda measurement: Tier(measurement.tier),
        (*_CARRIED, MEASUREMENT),
        may_lack=True,
    ),
    RunRecord: Taken(lambda evidence: evidence.run),
}
"""Parts of the evidence that are named by their own class. `Discovery` is a claim, all others are facts."""
