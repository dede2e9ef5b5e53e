"""The check `ddp_ranks`: in distributed training every rank reads its own shard, on its own GPU, equally long."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import LEARNER_PROBE, common
from checks.ddp_ranks import wording
from checks.listing import listed
from checks.probing import read_probe
from checks.stopped import Absent, absent, cut_short, not_reached
from grader_service.model.base import Count, LongText, Seconds, ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome, Tier

_HANGS_AFTER_S = 15.0
Number = Annotated[int, Field(ge=-(2**31), le=2**31)]


class Params(Wire):
    """What the lab asks for."""

    factory: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")] = "build_rank_iterator"
    """Function that builds the iterator of one rank."""
    devices: bool = True
    """Whether each rank has to ask for its own GPU."""
    max_lost: Annotated[int, Field(ge=0, le=1000)] = 3
    """Files that may be left out of an epoch, as dropping an unfinished last batch does."""


class Reader(Wire):
    """Shards of one reader."""

    shards: Number
    shard: Number


class Rank(Wire):
    """One rank's epoch on the grader's files."""

    rank: Count
    batches: Annotated[tuple[Annotated[tuple[int, ...], Field(max_length=64)], ...], Field(max_length=200)] = ()
    """Numbers of the files, batch by batch; empty batches are steps as well."""
    steps: Count
    ended: bool
    """Whether it stopped by itself."""
    device: ShortText = ""
    asked: Annotated[tuple[Number | None, ...], Field(max_length=64)] = ()
    """Device numbers that its pipelines and torch.cuda.set_device were given."""
    readers: Annotated[tuple[Reader, ...], Field(max_length=64)] = ()
    error: LongText = ""
    line: ShortText = ""
    stage: ShortText
    seconds: Seconds = 0.0
    leave_s: Seconds | None = None
    """From the last batch of all ranks to the end of the process; null where it had to be ended."""
    waits_for: Annotated[tuple[ShortText, ...], Field(max_length=64)] = ()
    """What of the learner's was still there after the last batch: threads, processes, handlers at the end."""
    stood: LongText = ""
    """Where it stood when it had to be ended."""

    @property
    def files(self) -> list[int]:
        """All files in order."""
        return [number for batch in self.batches for number in batch]


class Observation(Wire):
    """What each rank read."""

    status: Literal["ok", "missing", "not_separable"]
    problem: LongText = ""
    files: Annotated[int, Field(ge=0, le=10_000)]
    batch_size: Annotated[int, Field(ge=1, le=10_000)]
    world_size: Annotated[int, Field(ge=1, le=64)]
    gpus: bool
    ranks: Annotated[tuple[Rank, ...], Field(max_length=64)] = ()
    absent: Absent = Absent(name="build_rank_iterator")
    """How the run ended; filled in by the check."""


class DdpRanksCheck(Check[Params, Observation]):
    """Judges whether two ranks share the files between them, take equally many steps, and use a GPU each.

    Evidence: `build_rank_iterator` runs in two fresh processes with torchrun's environment and a process group over
        127.0.0.1 (NCCL with two GPUs, else gloo in a rehearsal on the CPU), on 25 files of the grader's in batches of
        4, which neither the batch size nor the number of ranks divides. Only the function and what it needs is cut out
        of the submission, so the rest of the lab does not run again. All of it is learner code: tier D.
    Points: all or nothing.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 7 passing functions in
        `tests/builtin_claims/test_ddp_ranks.py`.
    Cannot detect: another order or another shard on real hosts than here, code that knows that it is looked at, files
        of batches whose labels are not the reader's. Where one GPU or none is there, device numbers are what pipelines
        and torch.cuda.set_device were given, not where anything ran.
    """

    id = "ddp_ranks"
    version = "1.2.0"
    title = "A shard for every rank"
    word = "ranks"
    needs = frozenset({Need.DISCOVERY})
    probes = ("ddp_ranks",)
    codes = common("ranks", LEARNER_PROBE) | {
        "ranks.ok": "the ranks share the files, in equally many steps",
        "ranks.missing": "the function that builds a rank's iterator is not defined",
        "ranks.not_separable": "unverified: the function could not be run by itself",
        "ranks.not_run": "unverified: the ranks, or their files, could not be looked at",
        "ranks.raised": "the function stopped with an exception",
        "ranks.hangs": "a rank did not come to its end",
        "ranks.endless": "a rank's iterator does not end",
        "ranks.not_sharded": "every rank reads the same files",
        "ranks.overlap": "the ranks have files in common",
        "ranks.incomplete": "too many files come on no rank",
        "ranks.unequal_steps": "the ranks take different numbers of steps",
        "ranks.wrong_device": "a rank does not work on its own GPU",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "ranks", "ddp_ranks", Observation, ProbeSite.LEARNER)
        if isinstance(seen, Observation):
            return seen.model_copy(update={"absent": absent(discovery, "build_rank_iterator")})
        return seen

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        if observation.status == "missing":
            if (result := cut_short(observation.absent.run)) is not None:
                return result
            return failed("ranks.missing", wording.no_function(params.factory))
        details = observation.model_dump(mode="json", exclude={"absent": True, "ranks": {"__all__": {"batches"}}})
        if observation.status != "ok" or not observation.ranks:
            feedback = wording.not_separable(params.factory, observation.problem or "No rank answered.")
            return undecided(Outcome.UNVERIFIED, "ranks.not_separable", feedback, tier=Tier.CLAIMS, details=details)
        problem = _of_runs(observation, params) or _of_files(observation, params) or _of_devices(observation, params)
        if problem is not None:
            reason, feedback = problem
            if reason == "not_run":
                return undecided(Outcome.UNVERIFIED, "ranks.not_run", feedback, tier=Tier.CLAIMS, details=details)
            return failed(f"ranks.{reason}", feedback, tier=Tier.CLAIMS, details=details)
        steps = observation.ranks[0].steps
        feedback = wording.shared(len(observation.ranks), observation.files, steps, gpus=observation.gpus)
        return passed(feedback, tier=Tier.CLAIMS, details=details)


def _of_runs(seen: Observation, params: Params) -> tuple[str, Feedback] | None:
    """What kept a rank from an epoch."""
    if len(seen.ranks) != seen.world_size:
        return "not_run", wording.too_few_ranks(len(seen.ranks), seen.world_size)
    for rank in seen.ranks:
        if rank.stage in ("start", "group"):
            return "not_run", wording.not_started(rank.rank, rank.error[-500:] or "It gave no answer.")
    for rank in seen.ranks:
        if rank.error and rank.stage == "definitions":
            return "not_run", wording.not_separable(params.factory, rank.error)
        if rank.error:
            return "raised", wording.raised(params.factory, rank.rank, rank.error, rank.line)
        if rank.stage != "done":
            return "hangs", wording.still_running(rank.rank, rank.stage)
        if not rank.ended:
            return "endless", wording.endless(rank.rank, rank.steps, seen.batch_size, seen.files)
    return None


def _of_files(seen: Observation, params: Params) -> tuple[str, Feedback] | None:
    """What is wrong with the files that came."""
    sets = [set(rank.files) for rank in seen.ranks]
    everything = set(range(seen.files))
    if not any(sets) or any(not files <= everything for files in sets):
        return "not_run", wording.NO_LABELS
    shards = [(rank.rank, *_shard(rank)) for rank in seen.ranks if rank.readers]
    if all(files == sets[0] for files in sets[1:]) and len(sets) > 1:
        return "not_sharded", wording.not_sharded(len(sets[0]), seen.files, shards)
    shared = sorted(set.intersection(*sets))
    lost = sorted(everything - {number for files in sets for number in files})
    if shared:
        own = len(shards) == len(sets) and all((shard, of) == (rank, len(sets)) for rank, shard, of in shards)
        return "overlap", wording.overlap(len(shared), seen.files, shards, own_shards=own)
    if len(lost) > params.max_lost * len(sets):
        return "incomplete", wording.incomplete(len(lost), seen.files, shards)
    steps = [rank.steps for rank in seen.ranks]
    if len(set(steps)) > 1:
        return "unequal_steps", wording.unequal_steps(steps)
    return None


def _shard(rank: Rank) -> tuple[int, int]:
    return rank.readers[0].shard, rank.readers[0].shards


def _of_devices(seen: Observation, params: Params) -> tuple[str, Feedback] | None:
    """Whether each rank asks for its own GPU and lets go of it."""
    stuck = [rank for rank in seen.ranks if rank.leave_s is None or rank.leave_s > _HANGS_AFTER_S]
    if stuck and stuck[0].waits_for:
        return "hangs", wording.waits(stuck[0].rank, stuck[0].waits_for)
    if stuck:
        # Nothing of the learner's was there to wait for: the machine was slow, or a library did not let go.
        lines = [line.strip() for line in stuck[0].stood.splitlines()]
        where = ", called by ".join([line for line in lines if line.startswith("File ")][-2:])
        return "not_run", wording.did_not_leave(stuck[0].rank, _HANGS_AFTER_S, where)
    if not params.devices:
        return None
    for rank in seen.ranks:
        real = rank.device.partition(":")[2]
        wrong = seen.gpus and rank.device.startswith("cuda") and real not in ("", str(rank.rank))
        numbers = sorted({number for number in rank.asked if number is not None})
        if wrong or (numbers and numbers != [rank.rank]):
            told = f"works on {rank.device}" if wrong else f"asks for GPU {listed(numbers)}"
            return "wrong_device", wording.wrong_device(rank.rank, told)
    asked_nothing = all(not any(number is not None for number in rank.asked) for rank in seen.ranks)
    if asked_nothing and not seen.gpus:
        return "wrong_device", wording.NO_DEVICE
    return None


CHECK = DdpRanksCheck()
