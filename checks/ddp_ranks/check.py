"""The check `ddp_ranks`: in distributed training every rank reads its own shard, on its own GPU, equally long."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import LEARNER_PROBE, NEEDS_GPU, common
from checks.probing import read_probe
from checks.stopped import absent, missing, not_reached
from grader_service.model.base import Count, LongText, Seconds, ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_HOLDS = (
    "a function build_rank_iterator(dataset_dir, batch_size, rank, world_size) that returns that rank's DALI iterator"
)
_SAYS = "Your function ran in processes of its own, and what came out is what they say (tier D)."
_HANGS_AFTER_S = 15.0


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

    shards: int
    shard: int


class Rank(Wire):
    """One rank's epoch on the grader's files."""

    rank: Count
    batches: Annotated[tuple[Annotated[tuple[int, ...], Field(max_length=64)], ...], Field(max_length=200)] = ()
    """Numbers of the files, batch by batch; empty batches are steps as well."""
    steps: Count
    ended: bool
    """Whether it stopped by itself."""
    device: ShortText = ""
    asked: Annotated[tuple[int | None, ...], Field(max_length=64)] = ()
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


class DdpRanksCheck:
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

    id: ClassVar[str] = "ddp_ranks"
    version: ClassVar[str] = "1.1.1"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "A shard for every rank"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("ddp_ranks",)
    codes: ClassVar[Mapping[str, str]] = common("ranks", LEARNER_PROBE, NEEDS_GPU) | {
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

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        seen = read_probe(evidence, "ranks", "ddp_ranks", Observation)
        if isinstance(seen, Observation) and seen.status == "missing":
            return missing(absent(discovery, "build_rank_iterator"), "ranks", _HOLDS, code="ranks.missing")
        return seen

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        details = observation.model_dump(mode="json", exclude={"ranks": {"__all__": {"batches"}}})
        if observation.status != "ok" or not observation.ranks:
            text = (
                f"`{params.factory}` could not be run apart from the rest of your code: "
                f"{observation.problem or 'no rank answered'}. Define it at the top level of the submission, and pass "
                "it what it needs."
            )
            return undecided(Outcome.UNVERIFIED, "ranks.not_separable", text, tier=Tier.CLAIMS, details=details)
        problem = _of_runs(observation, params) or _of_files(observation, params) or _of_devices(observation, params)
        if problem is not None:
            reason, text = problem
            if reason == "not_run":
                return undecided(Outcome.UNVERIFIED, "ranks.not_run", text, tier=Tier.CLAIMS, details=details)
            return failed(f"ranks.{reason}", f"{text} {_SAYS}", tier=Tier.CLAIMS, details=details)
        where = "on a GPU each" if observation.gpus else "rehearsed on the CPU"
        steps = observation.ranks[0].steps
        text = (
            f"{len(observation.ranks)} ranks ({where}) read {observation.files} files without one in common, "
            f"{steps} steps each. {_SAYS}"
        )
        return passed("ranks.ok", text, tier=Tier.CLAIMS, details=details)


def _of_runs(seen: Observation, params: Params) -> tuple[str, str] | None:
    """What kept a rank from an epoch."""
    if len(seen.ranks) != seen.world_size:
        return "not_run", f"Only {len(seen.ranks)} of {seen.world_size} ranks answered."
    for rank in seen.ranks:
        if rank.stage in ("start", "group"):
            return "not_run", f"Rank {rank.rank} could not be started here: {rank.error[-500:] or 'no answer'}"
    for rank in seen.ranks:
        if rank.error and rank.stage == "definitions":
            text = f"`{params.factory}` could not be run apart from the rest of your code: {rank.error[:500]}"
            return "not_run", f"{text}. Pass it what it needs."
        if rank.error:
            where = f" at `{rank.line}`" if rank.line else ""
            return "raised", f"`{params.factory}` stopped on rank {rank.rank}{where} with {rank.error[:800]}"
        if rank.stage != "done":
            return "hangs", f"Rank {rank.rank} was still in its epoch when its time was up: ranks wait for each other."
        if not rank.ended:
            text = f"The iterator of rank {rank.rank} does not end. Give it reader_name (or size)."
            return "endless", text
    return None


def _of_files(seen: Observation, params: Params) -> tuple[str, str] | None:
    """What is wrong with the files that came."""
    sets = [set(rank.files) for rank in seen.ranks]
    everything = set(range(seen.files))
    if not any(sets) or any(not files <= everything for files in sets):
        return "not_run", (
            "The batches hold no class numbers of the grader's files, so it is not known which files came. Return the "
            "labels of the reader beside the images."
        )
    if all(files == sets[0] for files in sets[1:]) and len(sets) > 1:
        return "not_sharded", (
            f"Every rank reads the same {len(sets[0])} files. Give the reader shard_id=rank and num_shards=world_size."
        )
    shared = sorted(set.intersection(*sets))
    lost = sorted(everything - {number for files in sets for number in files})
    if shared:
        return "overlap", (
            f"{len(shared)} of {seen.files} files come on both ranks. Give the reader num_shards=world_size and a "
            "shard_id of its own; at the end of an epoch pad_last_batch=True repeats a rank's own last file, where a "
            "reader without it takes files of the next shard."
        )
    if len(lost) > params.max_lost * len(sets):
        return "incomplete", (
            f"{len(lost)} of {seen.files} files come on no rank. num_shards has to be the number of ranks, and every "
            "shard_id from 0 has to be taken."
        )
    steps = [rank.steps for rank in seen.ranks]
    if len(set(steps)) > 1:
        return "unequal_steps", (
            f"Ranks take {' and '.join(map(str, steps))} steps, so that one waits for the others for ever in the "
            "gradients' all-reduce. Use reader_name with pad_last_batch=True, or LastBatchPolicy.DROP."
        )
    return None


def _of_devices(seen: Observation, params: Params) -> tuple[str, str] | None:
    """Whether each rank asks for its own GPU and lets go of it."""
    stuck = [rank.rank for rank in seen.ranks if rank.leave_s is None or rank.leave_s > _HANGS_AFTER_S]
    if stuck and (waits_for := seen.ranks[stuck[0]].waits_for):
        return "hangs", (
            f"Rank {stuck[0]} did not end after its last batch, since it waits for {', '.join(waits_for)}. Leave no "
            "thread or process of yours running."
        )
    if stuck:
        # Nothing of the learner's was there to wait for: the machine was slow, or a library did not let go.
        lines = [line.strip() for line in seen.ranks[stuck[0]].stood.splitlines()]
        where = ", called by ".join([line for line in lines if line.startswith("File ")][-2:])
        text = f"Rank {stuck[0]} read its files, but did not end in {_HANGS_AFTER_S:.0f} s here"
        return "not_run", f"{text}: {where}." if where else f"{text}."
    if not params.devices:
        return None
    for rank in seen.ranks:
        real = rank.device.partition(":")[2]
        wrong = seen.gpus and rank.device.startswith("cuda") and real not in ("", str(rank.rank))
        numbers = {number for number in rank.asked if number is not None}
        if wrong or (numbers and numbers != {rank.rank}):
            told = rank.device if wrong else f"device {', '.join(map(str, sorted(numbers)))}"
            return "wrong_device", (
                f"Rank {rank.rank} works on {told}. Build its pipeline with device_id=rank (LOCAL_RANK), so that no "
                "two ranks share a GPU."
            )
    asked_nothing = all(not any(number is not None for number in rank.asked) for rank in seen.ranks)
    if asked_nothing and not seen.gpus:
        return "wrong_device", (
            "No rank names a GPU, so all of them work on the first one. Build the pipeline with device_id=rank."
        )
    return None


CHECK = DdpRanksCheck()
