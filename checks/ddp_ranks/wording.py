"""Words for what the ranks did."""

from collections.abc import Sequence

from checks.listing import listed
from checks.not_carried import first_words
from checks.probing import said
from grader_service.model.feedback import Feedback, NextStep

Shards = Sequence[tuple[int, int, int]]
"""Per rank its number, and the `shard_id` and `num_shards` of its first reader."""

_READER = (
    'fn.readers.file(file_root=dataset_dir, shard_id=rank, num_shards=world_size, pad_last_batch=True, name="Reader")'
)
_OWN_SHARD = "Pass the rank to the reader:"
_ITERATOR = 'DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True)'
_OWN_GPU = NextStep(
    text="Build each rank's pipeline for its own GPU:", code="pipe = train_pipeline(..., device_id=rank)"
)
_DOING = {"definitions": "running what stands at the top level", "build": "building its iterator"}
NO_LABELS = Feedback(
    outcome="It could not be told which files the ranks read, so nothing is counted.",
    seen="Their batches hold no class numbers of the grader's files.",
    next=NextStep(text="Return the labels of the reader beside the images."),
)
NO_DEVICE = Feedback(outcome="No rank names a GPU, so all of them work on the first one.", next=_OWN_GPU)


def no_function(name: str) -> Feedback:
    """Feedback where the function is not there."""
    return Feedback(
        outcome=f"No function `{name}` was found.",
        wanted="It should return the DALI iterator of one rank.",
        next=NextStep(
            text="Define it at the top level:", code=f"def {name}(dataset_dir, batch_size, rank, world_size):"
        ),
    )


def not_separable(name: str, problem: str) -> Feedback:
    """Feedback where the function could not be run without the rest of the code."""
    return Feedback(
        outcome=f"The grader could not run `{name}` by itself, so nothing is counted.",
        seen=said(problem),
        next=NextStep(text="Define it and what it uses at the top level, and pass it everything else."),
    )


def too_few_ranks(found: int, wanted: int) -> Feedback:
    """Feedback where ranks gave no answer."""
    return Feedback(
        outcome=f"Only {found} of {wanted} ranks answered, so nothing is counted.",
        next=NextStep(text="Hand it in again."),
        numbers={"ranks": found, "needed": wanted},
    )


def not_started(rank: int, problem: str) -> Feedback:
    """Feedback where the process of a rank did not start."""
    return Feedback(
        outcome=f"The grader could not start rank {rank}, so nothing is counted.",
        seen=said(problem),
        next=NextStep(text="Hand it in again; if this stays so, ask for help."),
    )


def raised(name: str, rank: int, error: str, line: str) -> Feedback:
    """Feedback for an exception; `line` is the learner's own, empty where it is not known."""
    at = f" at `{first_words(line, 12)}`" if line else ""
    return Feedback(
        outcome=f"`{name}` stopped on rank {rank}{at}.",
        seen=said(error),
        next=NextStep(text=f"Call it with rank={rank} and world_size=2 yourself, and correct what it raises."),
    )


def still_running(rank: int, stage: str) -> Feedback:
    """Feedback for a rank that did not come to the end of its epoch."""
    return Feedback(
        outcome=f"Rank {rank} was still {_DOING.get(stage, 'in its epoch')} when its time was up.",
        next=NextStep(text="Look for what it waits for: a collective call that not every rank makes, or a lock."),
    )


def endless(rank: int, steps: int, batch_size: int, files: int) -> Feedback:
    """Feedback for an iterator without an end."""
    return Feedback(
        outcome=f"The iterator of rank {rank} does not end.",
        seen=f"It gave {steps} batches of {batch_size} from {files} files, and went on.",
        next=NextStep(text="Give it the name of its reader:", code=_ITERATOR),
        numbers={"steps": steps, "files": files},
    )


def not_sharded(same: int, files: int, shards: Shards) -> Feedback:
    """Feedback for ranks that all read the same."""
    return Feedback(
        outcome=f"Every rank reads the same {same} of {files} files.",
        seen=_shards(shards),
        wanted="Each rank should read a shard of its own.",
        next=NextStep(text=_OWN_SHARD, code=_READER),
        numbers={"shared": same, "files": files},
    )


def overlap(shared: int, files: int, shards: Shards, *, own_shards: bool) -> Feedback:
    """Feedback for files that all ranks have; `own_shards` says that their readers are sharded as wanted."""
    padding = "Without pad_last_batch=True a reader fills its last batch with files of the next shard."
    return Feedback(
        outcome=f"{shared} of {files} files come on every rank.",
        seen=padding if own_shards else _shards(shards),
        wanted="" if own_shards else "Each rank should read a shard of its own.",
        next=NextStep(text="Let it repeat a file of its own shard:" if own_shards else _OWN_SHARD, code=_READER),
        numbers={"shared": shared, "files": files},
    )


def incomplete(lost: int, files: int, shards: Shards) -> Feedback:
    """Feedback for files that come on no rank."""
    return Feedback(
        outcome=f"{lost} of {files} files come on no rank.",
        seen=_shards(shards),
        wanted="There should be as many shards as ranks, and each of them should be read.",
        next=NextStep(text="Take both numbers from the arguments:", code=_READER),
        numbers={"lost": lost, "files": files},
    )


def unequal_steps(steps: Sequence[int]) -> Feedback:
    """Feedback for ranks that take different numbers of steps."""
    least, most = min(steps), max(steps)
    return Feedback(
        outcome=f"One rank takes {least} steps and another one {most}.",
        seen="In training the other one waits for ever, for gradients that do not come.",
        next=NextStep(
            text="Let the iterator take its size from the reader, with pad_last_batch=True there:", code=_ITERATOR
        ),
        numbers={"least": least, "most": most},
    )


def waits(rank: int, what: Sequence[str]) -> Feedback:
    """Feedback for a rank that the learner's threads, processes or handlers keep from ending."""
    named = first_words(listed(what), 18)
    return Feedback(
        outcome=f"Rank {rank} did not end after its last batch: it waits for {named}.",
        next=NextStep(
            text="End what your function starts before the rank ends, or start threads and processes with daemon=True."
        ),
    )


def did_not_leave(rank: int, seconds: float, where: str) -> Feedback:
    """Feedback where something else than the learner's code kept a rank from ending."""
    return Feedback(
        outcome=f"Rank {rank} read its files, but its process did not end in {seconds:.0f} s, so nothing is counted.",
        seen=f"None of your threads or processes kept it. It stood in {first_words(where, 18)}." if where else "",
        next=NextStep(text="Hand it in again."),
    )


def wrong_device(rank: int, told: str) -> Feedback:
    """Feedback for a rank on another GPU than its own; `told` is such as `asks for GPU 0`."""
    return Feedback(
        outcome=f"Rank {rank} {told}.",
        wanted="No two ranks should share a GPU.",
        next=_OWN_GPU,
        numbers={"rank": rank},
    )


def shared(ranks: int, files: int, steps: int, *, gpus: bool) -> Feedback:
    """Feedback for a pass."""
    return Feedback(
        outcome=f"{ranks} ranks share {files} files, none of them on two ranks, in {steps} steps each.",
        seen=f"They ran {'on a GPU each' if gpus else 'on the CPU, as in a rehearsal'}; what came is what your own "
        "code says.",
        numbers={"ranks": ranks, "files": files, "steps": steps},
    )


def _shards(shards: Shards) -> str:
    text = listed([f"rank {rank} reads shard {shard} of {of}" for rank, shard, of in shards])
    return f"{text[:1].upper()}{text[1:]}." if text else ""
