"""The check `ddp_ranks`: in distributed training every rank reads its own shard, on its own GPU, equally long."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from checks.api import Discovery, Feedback, FromProbe, NextStep, Result, check, failed, passed, unverified
from checks.listing import listed
from checks.not_carried import first_words
from checks.probing import said
from checks.stopped import cut_short, run_end
from grader_service.model.base import Count, LongText, Seconds, ShortText, Wire
from grader_service.model.evidence import ProbeSite

_HANGS_AFTER_S = 15.0
_READER = (
    'fn.readers.file(file_root=dataset_dir, shard_id=rank, num_shards=world_size, pad_last_batch=True, name="Reader")'
)
_ITERATOR = 'DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True)'
_OWN_GPU, _DEVICE = "Build each rank's pipeline for its own GPU:", "pipe = train_pipeline(..., device_id=rank)"
_DOING = {"definitions": "running what stands at the top level", "build": "building its iterator"}
Number = Annotated[int, Field(ge=-(2**31), le=2**31)]


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
    def files(self) -> set[int]:
        """All files that came."""
        return {number for batch in self.batches for number in batch}


class Epoch(Wire):
    """What each rank read."""

    status: Literal["ok", "missing", "not_separable"]
    problem: LongText = ""
    files: Annotated[int, Field(ge=0, le=10_000)]
    batch_size: Annotated[int, Field(ge=1, le=10_000)]
    world_size: Annotated[int, Field(ge=1, le=64)]
    gpus: bool
    ranks: Annotated[tuple[Rank, ...], Field(max_length=64)] = ()


@check(
    version="1.2.0",
    title="A shard for every rank",
    word="ranks",
    codes={
        "not_separable": "unverified: the function could not be run by itself",
        "not_run": "unverified: the ranks, or their files, could not be looked at",
        "hangs": "a rank did not come to its end",
        "wrong_device": "a rank does not work on its own GPU",
    },
)
def ddp_ranks(
    discovery: Discovery,
    epoch: Annotated[Epoch, FromProbe("ddp_ranks", ProbeSite.LEARNER)],
    *,
    factory: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")] = "build_rank_iterator",
    devices: bool = True,
    max_lost: Annotated[int, Field(ge=0, le=1000)] = 3,
) -> Result:
    """Judges whether two ranks share the files between them, take equally many steps, and use a GPU each.

    Evidence: `build_rank_iterator` runs in two fresh processes with torchrun's environment and a process group over
        127.0.0.1 (NCCL with two GPUs, else gloo in a rehearsal on the CPU), on 25 files of the grader's in batches of
        4, which neither the batch size nor the number of ranks divides. Only the function and what it needs is cut out
        of the submission, so the rest of the lab does not run again. All of it is learner code: tier D.
    Points: all or nothing.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 7 passing functions in
        `tests/checks/claims/test_ddp_ranks.py`.
    Cannot detect: another order or another shard on real hosts than here, code that knows that it is looked at, files
        of batches whose labels are not the reader's. Where one GPU or none is there, device numbers are what pipelines
        and torch.cuda.set_device were given, not where anything ran.

    Args:
        factory: Function that builds the iterator of one rank.
        devices: Whether each rank has to ask for its own GPU.
        max_lost: Files that may be left out of an epoch, as dropping an unfinished last batch does.
    """
    if epoch.status == "missing":
        return cut_short(run_end(discovery)) or failed(
            "missing",
            f"No function `{factory}` was found.",
            wanted="It should return the DALI iterator of one rank.",
            next="Define it at the top level:",
            write=f"def {factory}(dataset_dir, batch_size, rank, world_size):",
        )
    if epoch.status != "ok" or not epoch.ranks:
        result = unverified("not_separable", _not_separable(factory, epoch.problem or "No rank answered."))
    else:
        result = (
            _of_runs(epoch, factory)
            or _of_files(epoch, max_lost)
            or _stuck(epoch.ranks)
            or (_wrong_device(epoch) if devices else None)
            or _shared(epoch)
        )
    details = epoch.model_dump(mode="json", exclude={"ranks": {"__all__": {"batches"}}})
    return result.model_copy(update={"details": details})


def _not_separable(factory: str, problem: str) -> Feedback:
    return Feedback(
        outcome=f"The grader could not run `{factory}` by itself, so nothing is counted.",
        seen=said(problem),
        next=NextStep(text="Define it and what it uses at the top level, and pass it everything else."),
    )


def _of_runs(epoch: Epoch, factory: str) -> Result | None:
    """What kept a rank from the end of its epoch."""
    if len(epoch.ranks) != epoch.world_size:
        return unverified(
            "not_run",
            f"Only {len(epoch.ranks)} of {epoch.world_size} ranks answered, so nothing is counted.",
            next="Hand it in again.",
            numbers={"ranks": len(epoch.ranks), "needed": epoch.world_size},
        )
    for rank in epoch.ranks:
        if rank.stage in ("start", "group"):
            return unverified(
                "not_run",
                f"The grader could not start rank {rank.rank}, so nothing is counted.",
                seen=said(rank.error[-500:] or "It gave no answer."),
                next="Hand it in again; if this stays so, ask for help.",
            )
    for rank in epoch.ranks:
        if rank.error and rank.stage == "definitions":
            return unverified("not_run", _not_separable(factory, rank.error))
        if rank.error:
            at = f" at `{first_words(rank.line, 12)}`" if rank.line else ""
            return failed(
                "raised",
                f"`{factory}` stopped on rank {rank.rank}{at}.",
                seen=said(rank.error),
                next=f"Call it with rank={rank.rank} and world_size=2 yourself, and correct what it raises.",
            )
        if rank.stage != "done":
            return failed(
                "hangs",
                f"Rank {rank.rank} was still {_DOING.get(rank.stage, 'in its epoch')} when its time was up.",
                next="Look for what it waits for: a collective call that not every rank makes, or a lock.",
            )
        if not rank.ended:
            return failed(
                "endless",
                f"The iterator of rank {rank.rank} does not end.",
                seen=f"It gave {rank.steps} batches of {epoch.batch_size} from {epoch.files} files, and went on.",
                next="Give it the name of its reader:",
                write=_ITERATOR,
                numbers={"steps": rank.steps, "files": epoch.files},
            )
    return None


def _of_files(epoch: Epoch, max_lost: int) -> Result | None:
    """What is wrong with the files that came, and with the steps in which they did."""
    sets, files = [rank.files for rank in epoch.ranks], epoch.files
    everything, read = set(range(files)), set().union(*sets)
    if not read or not read <= everything:
        return unverified(
            "not_run",
            "It could not be told which files the ranks read, so nothing is counted.",
            seen="Their batches hold no class numbers of the grader's files.",
            next="Return the labels of the reader beside the images.",
        )
    shards = [(rank.rank, rank.readers[0].shard, rank.readers[0].shards) for rank in epoch.ranks if rank.readers]
    told = listed([f"rank {rank} reads shard {shard} of {of}" for rank, shard, of in shards])
    told = f"{told[:1].upper()}{told[1:]}." if told else ""
    own_shard, each = "Pass the rank to the reader:", "Each rank should read a shard of its own."
    shared, lost = len(set.intersection(*sets)), len(everything - read)
    if all(one == sets[0] for one in sets) and len(sets) > 1:
        return failed(
            "not_sharded",
            f"Every rank reads the same {shared} of {files} files.",
            seen=told,
            wanted=each,
            next=own_shard,
            write=_READER,
            numbers={"shared": shared, "files": files},
        )
    if shared:
        own = len(shards) == len(sets) and all((shard, of) == (rank, len(sets)) for rank, shard, of in shards)
        padding = "Without pad_last_batch=True a reader fills its last batch with files of the next shard."
        return failed(
            "overlap",
            f"{shared} of {files} files come on every rank.",
            seen=padding if own else told,
            wanted="" if own else each,
            next="Let it repeat a file of its own shard:" if own else own_shard,
            write=_READER,
            numbers={"shared": shared, "files": files},
        )
    if lost > max_lost * len(sets):
        return failed(
            "incomplete",
            f"{lost} of {files} files come on no rank.",
            seen=told,
            wanted="There should be as many shards as ranks, and each of them should be read.",
            next="Take both numbers from the arguments:",
            write=_READER,
            numbers={"lost": lost, "files": files},
        )
    steps = [rank.steps for rank in epoch.ranks]
    least, most = min(steps), max(steps)
    if least != most:
        return failed(
            "unequal_steps",
            f"One rank takes {least} steps and another one {most}.",
            seen="In training the other one waits for ever, for gradients that do not come.",
            next="Let the iterator take its size from the reader, with pad_last_batch=True there:",
            write=_ITERATOR,
            numbers={"least": least, "most": most},
        )
    return None


def _stuck(ranks: Sequence[Rank]) -> Result | None:
    """Whether each rank's process ends after its last batch."""
    stuck = next((rank for rank in ranks if rank.leave_s is None or rank.leave_s > _HANGS_AFTER_S), None)
    if stuck is None:
        return None
    if stuck.waits_for:
        named = first_words(listed(stuck.waits_for), 18)
        return failed(
            "hangs",
            f"Rank {stuck.rank} did not end after its last batch: it waits for {named}.",
            next="End what your function starts before the rank ends, or start threads and processes with daemon=True.",
        )
    # Nothing of the learner's was there to wait for: the machine was slow, or a library did not let go.
    lines = [line for line in map(str.strip, stuck.stood.splitlines()) if line.startswith("File ")]
    where = first_words(", called by ".join(lines[-2:]), 18)
    return unverified(
        "not_run",
        f"Rank {stuck.rank} read its files, but its process did not end in {_HANGS_AFTER_S:.0f} s, so nothing is "
        "counted.",
        seen=f"None of your threads or processes kept it. It stood in {where}." if lines else "",
        next="Hand it in again.",
    )


def _wrong_device(epoch: Epoch) -> Result | None:
    """Whether each rank asks for its own GPU."""
    for rank in epoch.ranks:
        real = rank.device.partition(":")[2]
        wrong = epoch.gpus and rank.device.startswith("cuda") and real not in ("", str(rank.rank))
        numbers = sorted({number for number in rank.asked if number is not None})
        if wrong or (numbers and numbers != [rank.rank]):
            return failed(
                "wrong_device",
                f"Rank {rank.rank} {f'works on {rank.device}' if wrong else f'asks for GPU {listed(numbers)}'}.",
                wanted="No two ranks should share a GPU.",
                next=_OWN_GPU,
                write=_DEVICE,
                numbers={"rank": rank.rank},
            )
    if not epoch.gpus and all(number is None for rank in epoch.ranks for number in rank.asked):
        nobody = "No rank names a GPU, so all of them work on the first one."
        return failed("wrong_device", nobody, next=_OWN_GPU, write=_DEVICE)
    return None


def _shared(epoch: Epoch) -> Result:
    ranks, files, steps = len(epoch.ranks), epoch.files, epoch.ranks[0].steps
    where = "on a GPU each" if epoch.gpus else "on the CPU, as in a rehearsal"
    return passed(
        f"{ranks} ranks share {files} files, none of them on two ranks, in {steps} steps each.",
        seen=f"They ran {where}; what came is what your own code says.",
        numbers={"ranks": ranks, "files": files, "steps": steps},
    )
