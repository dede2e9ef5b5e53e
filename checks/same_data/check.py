"""The check `same_data`: both loaders read the same files with the same classes."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from checks.api import Discovery, FromProbe, Result, Taken, check, failed, not_reached, passed, unverified
from checks.codes import NO_DALI
from checks.not_carried import first_words, no_dali
from checks.stopped import cut_short, run_end
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import Evidence, ProbeSite
from grader_service.model.verdict import Tier

_READ = 'jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader")'
Problem = Annotated[str, StringConstraints(max_length=400)]
Names = Annotated[tuple[ShortText, ...], Field(max_length=200)]
Shard = Annotated[int, Field(ge=-(2**31), le=2**31)]


class LoaderSide(Wire):
    """The files of the PyTorch dataset."""

    name: ShortText
    dataset: ShortText
    how: ShortText
    classes: Names = ()
    problem: Problem = ""
    count: Count
    folder: ShortText = ""
    """Below which all of its files lie."""


class ReaderSide(Wire):
    """The files of one reader of a DALI pipeline, and what they have in common with the loader's."""

    name: ShortText
    operator: ShortText
    how: ShortText
    classes: Names = ()
    problem: Problem = ""
    shards: Shard = 1
    shard: Shard = 0
    count: Count
    folder: ShortText = ""
    compared_by: ShortText = ""
    common: Count
    distinct: Count
    loader_distinct: Count
    only_loader: Names = ()
    only_reader: Names = ()
    labelled: Count
    labels_differ: Count

    @property
    def overlap(self) -> float:
        """Share of all files, of both sides together, that both read."""
        whole = self.distinct + self.loader_distinct - self.common
        return self.common / whole if whole > 0 else 0.0


class Sides(Wire):
    """Both sides."""

    loader: LoaderSide | None = None
    readers: Annotated[tuple[ReaderSide, ...], Field(max_length=64)] = ()


def _with_dali(evidence: Evidence) -> Discovery | Result:
    """Where no DALI pipeline was built, that is said first, whatever the probe came to."""
    if evidence.discovery is None:
        return not_reached()
    return no_dali(evidence.discovery) or evidence.discovery


@check(
    version="1.1.0",
    title="The same data on both sides",
    word="data",
    codes={"ok": "both sides read the same files", "nothing_shared": "no file is read by both sides"},
)
def same_data(
    discovery: Annotated[Discovery, Taken(_with_dali, tier=Tier.CLAIMS, codes=(NO_DALI,))],
    sides: Annotated[Sides, FromProbe("data_sides", ProbeSite.LEARNER)],
    *,
    min_overlap: Annotated[float, Field(gt=0, le=1)] = 1.0,
    classes: bool = True,
) -> Result:
    """Judges whether the DataLoader and a DALI reader read the same files, with the same class numbers.

    Evidence: paths that the dataset shows in its attributes (ImageFolder and the like, subsets and unions of them,
        lists of paths, or a walk of its root), and the arguments of the reader in the serialized pipeline, both read in
        the learner's process (claims). Files of different paths are compared by content. Of several readers the one
        that fits the loader best counts.
    Points: share of files that both read; a pass needs `min_overlap`, and equal classes where the lab wants them.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 12 passing submissions in
        `tests/checks/claims/test_same_data.py`.
    Cannot detect: files that a dataset reads from elsewhere than its attributes say, and images that one side skips
        while it runs. A liar gains nothing: what is timed are the grader's own files on both sides.

    Args:
        min_overlap: Least share of all files (of both sides together) that both read.
        classes: Whether files that both read have to have the same class number on both.
    """
    if sides.loader is None:
        return cut_short(run_end(discovery)) or failed(
            "no_loader",
            "No torch.utils.data.DataLoader is left in your namespace, so there is nothing to compare DALI with.",
            next="Keep the one that you measured in a variable:",
            write="train_loader = DataLoader(ImageFolder(dataset_dir, transform), batch_size=32)",
        )
    result = _compared(sides.loader, sides.readers, min_overlap, classes=classes)
    details = {
        "loader": sides.loader.model_dump(mode="json", exclude={"classes"}),
        "readers": [side.model_dump(mode="json", exclude={"classes"}) for side in sides.readers[:8]],
    }
    return result.model_copy(update={"details": details})


def _compared(loader: LoaderSide, readers: Sequence[ReaderSide], min_overlap: float, *, classes: bool) -> Result:
    if loader.problem or not loader.count:
        problem = first_words(loader.problem or "it shows no files").rstrip(".")
        return unverified(
            "unknown_dataset",
            "Which files the PyTorch side reads is not known.",
            seen=f"`{loader.name}` ({loader.dataset}): {problem}.",
            next="Use ImageFolder, or keep the paths in an attribute of your dataset:",
            write="self.paths = paths",
        )
    readable = [side for side in readers if not side.problem]
    if not readable:
        problem = first_words(readers[0].problem).rstrip(".") if readers else ""
        return unverified(
            "unknown_reader",
            "Which files the DALI side reads is not known.",
            seen=f"`{readers[0].name}`: {problem}." if readers else "No pipeline is left.",
            next="Read the JPEGs with fn.readers.file:",
            write=_READ,
        )
    best = max(readable, key=lambda side: (side.overlap, -side.shards))
    if best.overlap < min_overlap:
        return failed(
            "different_files" if best.common else "nothing_shared",
            f"`{loader.name}` and the reader of `{best.name}` read different files.",
            seen=_files_of(loader, best),
            next="Let both read all files of one folder:",
            write=f"ImageFolder(dataset_dir, transform)\n{_READ}",
            numbers={"loader": loader.count, "dali": best.count, "common": best.common},
            score=min(best.overlap, 0.99),
        )
    if classes and best.labels_differ:
        return failed(
            "different_classes",
            f"Of {best.labelled} files, {best.labels_differ} have another class number in `{best.name}` than in "
            f"`{loader.name}`.",
            wanted="Both number class folders in the order of their names.",
            next="Where you list files for DALI, give their class numbers too:",
            write="fn.readers.file(files=paths, labels=labels)",
            numbers={"files": best.labelled, "differ": best.labels_differ},
            score=0.5,
        )
    covered = {side.shard for side in readable if side.name == best.name and side.shards == best.shards}
    if best.shards > 1 and len(covered) < best.shards:
        return failed(
            "sharded",
            f"The reader of `{best.name}` takes {len(covered)} of {best.shards} shards; files are missing.",
            next="Leave num_shards and shard_id out, or build a pipeline for each shard:",
            write=_READ,
            numbers={"shards": best.shards, "read": len(covered)},
            score=0.5,
        )
    said = f"`{loader.name}` and the reader of `{best.name}` read the same {best.common} files."
    if best.overlap < 1:
        said = f"{best.common} files are read by `{loader.name}` and by the reader of `{best.name}`, enough here."
    seen = ["They were compared by their content."] if best.compared_by == "content" else []
    if best.labelled and not best.labels_differ:
        seen.append(f"The class numbers of {best.labelled} files agree.")
    return passed(said, seen=" ".join(seen), numbers={"common": best.common})


def _files_of(loader: LoaderSide, reader: ReaderSide) -> str:
    """How many files each side reads, from where, and an example of what only one of them does."""
    sides = [f"{loader.count} files", f"{reader.count}"]
    if loader.folder and reader.folder and loader.folder != reader.folder:
        sides = [f"{sides[0]} below {loader.folder}", f"{sides[1]} below {reader.folder}"]
    counts = f"They read {sides[0]} and {sides[1]}; {reader.common} are the same."
    only = [f"only the DataLoader reads {name}" for name in reader.only_loader[:1]]
    only += [f"only DALI reads {name}" for name in reader.only_reader[:1]]
    return f"{counts} For example, {' and '.join(only)}." if only and reader.common else counts
