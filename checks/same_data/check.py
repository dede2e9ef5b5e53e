"""The check `same_data`: both loaders read the same files with the same classes."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import LEARNER_PROBE, NO_DALI, common
from checks.not_carried import no_dali
from checks.probing import read_probe
from checks.stopped import absent, missing, not_reached
from grader_service.model.base import Count, ShortText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Outcome, Tier

_SAYS = "This is what the objects in your own process say (tier D)."
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


class SameDataCheck:
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

    id: ClassVar[str] = "same_data"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "The same data on both sides"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY})
    probes: ClassVar[tuple[str, ...]] = ("data_sides",)
    codes: ClassVar[Mapping[str, str]] = common("data", NO_DALI, LEARNER_PROBE) | {
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

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        if (result := no_dali("data", discovery)) is not None:
            return result
        seen = read_probe(evidence, "data", "data_sides", Observation)
        if isinstance(seen, Observation) and seen.loader is None:
            return missing(
                absent(discovery, "loader"), "data", "the DataLoader that DALI is compared with", code="data.no_loader"
            )
        return seen

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        loader, readable = observation.loader, [side for side in observation.readers if not side.problem]
        details = {
            "loader": loader.model_dump(mode="json", exclude={"classes"}) if loader else None,
            "readers": [side.model_dump(mode="json", exclude={"classes"}) for side in observation.readers[:8]],
        }
        if loader is None or loader.problem or not loader.count:
            what = (
                f"`{loader.name}` ({loader.dataset}): {loader.problem or 'it shows no files'}"
                if loader
                else "no loader"
            )
            text = f"Which files the PyTorch side reads is not known: {what}. An ImageFolder shows its files."
            return undecided(Outcome.UNVERIFIED, "data.unknown_dataset", text, tier=Tier.CLAIMS, details=details)
        if not readable:
            seen = (
                "; ".join(f"`{side.name}`: {side.problem}" for side in observation.readers[:3]) or "no pipeline is left"
            )
            text = f"Which files the DALI side reads is not known: {seen}. Read JPEGs with fn.readers.file."
            return undecided(Outcome.UNVERIFIED, "data.unknown_reader", text, tier=Tier.CLAIMS, details=details)
        best = max(readable, key=lambda side: (side.overlap, -side.shards))
        sides = f"`{loader.name}` reads {loader.count} files, the reader of `{best.name}` {best.count}"
        if best.overlap < params.min_overlap:
            return failed(
                "data.nothing_shared" if not best.common else "data.different_files",
                f"{sides}; {best.common} are the same. {_examples(best)}Give both sides the same folder. {_SAYS}",
                score=min(best.overlap, 0.99),
                tier=Tier.CLAIMS,
                details=details,
            )
        if params.classes and best.labels_differ:
            text = (
                f"{sides}, all of them the same, but {best.labels_differ} of {best.labelled} have different classes. "
                "Both sort the class folders by name; give `labels` in that order where you list files yourself. "
                f"{_SAYS}"
            )
            return failed("data.different_classes", text, score=0.5, tier=Tier.CLAIMS, details=details)
        covered = {side.shard for side in readable if side.name == best.name and side.shards == best.shards}
        if best.shards > 1 and len(covered) < best.shards:
            text = (
                f"{sides}, but that reader takes only shard {best.shard} of {best.shards}, so an epoch has 1/"
                f"{best.shards} of the files. Leave num_shards out for one GPU. {_SAYS}"
            )
            return failed("data.sharded", text, score=0.5, tier=Tier.CLAIMS, details=details)
        classes = f", with the same classes ({best.labelled} files compared)" if best.labelled else ""
        text = f"{sides}: the same ones (by {best.compared_by}){classes}. {_SAYS}"
        return passed("data.ok", text, tier=Tier.CLAIMS, details=details)


def _examples(side: ReaderSide) -> str:
    told = []
    if side.only_loader:
        told.append(f"Only the DataLoader reads {', '.join(side.only_loader[:3])}.")
    if side.only_reader:
        told.append(f"Only DALI reads {', '.join(side.only_reader[:3])}.")
    return " ".join(told) + (" " if told else "")


CHECK = SameDataCheck()
