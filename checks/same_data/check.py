"""The check `same_data`: both loaders read the same files with the same classes."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import LEARNER_PROBE, NO_DALI, common
from checks.not_carried import first_words, no_dali
from checks.probing import read_probe
from checks.stopped import cut_short, not_reached, run_end
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import Evidence, Need, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.verdict import Outcome, Tier

_READ = 'jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader")'
_NO_LOADER = Feedback(
    outcome="No torch.utils.data.DataLoader is left in your namespace, so there is nothing to compare DALI with.",
    next=NextStep(
        text="Keep the one that you measured in a variable:",
        code="train_loader = DataLoader(ImageFolder(dataset_dir, transform), batch_size=32)",
    ),
)
Problem = Annotated[str, StringConstraints(max_length=400)]
Names = Annotated[tuple[ShortText, ...], Field(max_length=200)]


class Params(Wire):
    """What the lab asks for."""

    min_overlap: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Least share of all files (of both sides together) that both read."""
    classes: bool = True
    """Whether files that both read have to have the same class number on both."""


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
    shards: Annotated[int, Field(ge=-(2**31), le=2**31)] = 1
    shard: Annotated[int, Field(ge=-(2**31), le=2**31)] = 0
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


class Observation(Wire):
    """Both sides."""

    loader: LoaderSide | None = None
    readers: Annotated[tuple[ReaderSide, ...], Field(max_length=64)] = ()


class SameDataCheck(Check[Params, Observation]):
    """Judges whether the DataLoader and a DALI reader read the same files, with the same class numbers.

    Evidence: paths that the dataset shows in its attributes (ImageFolder and the like, subsets and unions of them,
        lists of paths, or a walk of its root), and the arguments of the reader in the serialized pipeline, both read in
        the learner's process (claims). Files of different paths are compared by content. Of several readers the one
        that fits the loader best counts.
    Points: share of files that both read; a pass needs `min_overlap`, and equal classes where the lab wants them.
    Errors: 0 false accepts on 12 failing and 0 false rejects on 12 passing submissions in
        `tests/builtin_claims/test_same_data.py`.
    Cannot detect: files that a dataset reads from elsewhere than its attributes say, and images that one side skips
        while it runs. A liar gains nothing: what is timed are the grader's own files on both sides.
    """

    id = "same_data"
    version = "1.1.0"
    title = "The same data on both sides"
    word = "data"
    needs = frozenset({Need.DISCOVERY})
    probes = ("data_sides",)
    codes = common("data", NO_DALI, LEARNER_PROBE) | {
        "data.ok": "both sides read the same files",
        "data.no_loader": "no DataLoader is left in the namespace",
        "data.unknown_dataset": "unverified: the files of the PyTorch side are not known",
        "data.unknown_reader": "unverified: the files of the DALI side are not known",
        "data.nothing_shared": "no file is read by both sides",
        "data.different_files": "too few files are read by both sides",
        "data.different_classes": "the same files have different classes",
        "data.sharded": "the reader takes only some of its shards",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        if (result := no_dali("data", discovery)) is not None:
            return result
        seen = read_probe(evidence, "data", "data_sides", Observation, ProbeSite.LEARNER)
        if isinstance(seen, Observation) and seen.loader is None:
            if (result := cut_short(run_end(discovery))) is not None:
                return result
            return failed("data.no_loader", _NO_LOADER)
        return seen

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        loader, readable = observation.loader, [side for side in observation.readers if not side.problem]
        details = {
            "loader": loader.model_dump(mode="json", exclude={"classes"}) if loader else None,
            "readers": [side.model_dump(mode="json", exclude={"classes"}) for side in observation.readers[:8]],
        }
        if loader is None or loader.problem or not loader.count:
            told = _unknown_dataset(loader)
            return undecided(Outcome.UNVERIFIED, "data.unknown_dataset", told, tier=Tier.CLAIMS, details=details)
        if not readable:
            told = _unknown_reader(observation.readers)
            return undecided(Outcome.UNVERIFIED, "data.unknown_reader", told, tier=Tier.CLAIMS, details=details)
        best = max(readable, key=lambda side: (side.overlap, -side.shards))
        if best.overlap < params.min_overlap:
            code = "data.different_files" if best.common else "data.nothing_shared"
            score = min(best.overlap, 0.99)
            return failed(code, _different(loader, best), score=score, tier=Tier.CLAIMS, details=details)
        if params.classes and best.labels_differ:
            told = _other_classes(loader, best)
            return failed("data.different_classes", told, score=0.5, tier=Tier.CLAIMS, details=details)
        covered = {side.shard for side in readable if side.name == best.name and side.shards == best.shards}
        if best.shards > 1 and len(covered) < best.shards:
            told = Feedback(
                outcome=f"The reader of `{best.name}` takes {len(covered)} of {best.shards} shards; files are missing.",
                next=NextStep(
                    text="Leave num_shards and shard_id out, or build a pipeline for each shard:", code=_READ
                ),
                numbers={"shards": best.shards, "read": len(covered)},
            )
            return failed("data.sharded", told, score=0.5, tier=Tier.CLAIMS, details=details)
        return passed(_same(loader, best), tier=Tier.CLAIMS, details=details)


def _unknown_dataset(loader: LoaderSide | None) -> Feedback:
    seen = ""
    if loader is not None:
        seen = f"`{loader.name}` ({loader.dataset}): {_plain(loader.problem or 'it shows no files')}."
    return Feedback(
        outcome="Which files the PyTorch side reads is not known.",
        seen=seen,
        next=NextStep(
            text="Use ImageFolder, or keep the paths in an attribute of your dataset:", code="self.paths = paths"
        ),
    )


def _plain(problem: str) -> str:
    return first_words(problem).rstrip(".")


def _unknown_reader(readers: Sequence[ReaderSide]) -> Feedback:
    seen = [f"`{side.name}`: {_plain(side.problem)}." for side in readers[:1]]
    return Feedback(
        outcome="Which files the DALI side reads is not known.",
        seen=" ".join(seen) or "No pipeline is left.",
        next=NextStep(text="Read the JPEGs with fn.readers.file:", code=_READ),
    )


def _different(loader: LoaderSide, reader: ReaderSide) -> Feedback:
    """Feedback for sides of which one reads files that the other does not."""
    sides = [f"{loader.count} files", f"{reader.count}"]
    if loader.folder and reader.folder and loader.folder != reader.folder:
        sides = [f"{sides[0]} below {loader.folder}", f"{sides[1]} below {reader.folder}"]
    seen = f"They read {sides[0]} and {sides[1]}; {reader.common} are the same."
    only = [f"only the DataLoader reads {name}" for name in reader.only_loader[:1]]
    only += [f"only DALI reads {name}" for name in reader.only_reader[:1]]
    if only and reader.common:
        seen += f" For example, {' and '.join(only)}."
    return Feedback(
        outcome=f"`{loader.name}` and the reader of `{reader.name}` read different files.",
        seen=seen,
        next=NextStep(
            text="Let both read all files of one folder:", code=f"ImageFolder(dataset_dir, transform)\n{_READ}"
        ),
        numbers={"loader": loader.count, "dali": reader.count, "common": reader.common},
    )


def _other_classes(loader: LoaderSide, reader: ReaderSide) -> Feedback:
    return Feedback(
        outcome=f"Of {reader.labelled} files, {reader.labels_differ} have another class number in `{reader.name}` than "
        f"in `{loader.name}`.",
        wanted="Both number class folders in the order of their names.",
        next=NextStep(
            text="Where you list files for DALI, give their class numbers too:",
            code="fn.readers.file(files=paths, labels=labels)",
        ),
        numbers={"files": reader.labelled, "differ": reader.labels_differ},
    )


def _same(loader: LoaderSide, reader: ReaderSide) -> Feedback:
    outcome = f"`{loader.name}` and the reader of `{reader.name}` read the same {reader.common} files."
    if reader.overlap < 1:
        outcome = (
            f"{reader.common} files are read by `{loader.name}` and by the reader of `{reader.name}`, enough here."
        )
    seen = ["They were compared by their content."] if reader.compared_by == "content" else []
    if reader.labelled and not reader.labels_differ:
        seen.append(f"The class numbers of {reader.labelled} files agree.")
    return Feedback(outcome=outcome, seen=" ".join(seen), numbers={"common": reader.common})


CHECK = SameDataCheck()
