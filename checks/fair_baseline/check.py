"""The check `fair_baseline`: the PyTorch loader that DALI is compared with does the same work under fair settings."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import NEEDS_GPU, common
from checks.fair_baseline.transforms import differences
from checks.stopped import absent, missing, not_reached
from checks.throughput_ratio.context import context_of
from grader_service.batch_geometry import geometry_difference
from grader_service.model.base import Count, Wire
from grader_service.model.evidence import BatchFacts, Evidence, GraphFacts, LoaderFacts, Need, Shape
from grader_service.model.verdict import Outcome, Tier

Rule = Literal["required", "advised", "ignored"]
_CLAIM = "The loader's settings are what your own code says (tier D)"


class Params(Wire):
    """How each rule counts: a `required` one decides, an `advised` one is only told."""

    batch_size: Rule = "required"
    """The same batch size on both sides."""
    workers: Rule = "required"
    """At least `min_workers` loader workers."""
    min_workers: Annotated[int, Field(ge=1, le=256)] = 1
    cores: Rule = "advised"
    """Not more workers than the loader has cores."""
    pin_memory: Rule = "required"
    """Batches in pinned memory; left out where nothing is copied to a GPU."""
    persistent_workers: Rule = "advised"
    """Workers that live for more than one epoch."""
    geometry: Rule = "required"
    """Images of the same size and channels on both sides, as far as batches of both were seen."""
    transforms: Rule = "advised"
    """The same random steps on both sides, as far as the loader's transform prints them."""


class Observation(Wire):
    """Both sides of the comparison."""

    loader: LoaderFacts
    """A claim of the learner's process."""
    loader_shape: Shape | None = None
    """Of the image batch that this loader delivered, where it was timed; a claim."""
    graph: GraphFacts | None = None
    batch: BatchFacts | None = None
    cores: Count = 0
    """Cores of each side; 0 when the run does not say."""


class _Finding(NamedTuple):
    rule: str
    text: str


class FairBaselineCheck:
    """Judges whether the baseline has a fair chance: same batch size and images, workers, pinned memory.

    Evidence:
        loader: settings of the learner's DataLoader and the text of its transform (claims); the run measures with them,
            so that a flattering lie costs its teller the ratio.
        graph, batch: batch size, operators and first batch of the DALI side (facts).
    Points: share of the required rules that are kept and could be looked at; a pass needs all of them.
    Errors: 0 false accepts on 14 failing and 0 false rejects on 12 passing pairs in
        `tests/builtin_claims/test_fair_baseline.py`.
    Cannot detect: work that a dataset or a collate function does beside its `transform`; transforms that do not print
        themselves. The work that the loader really does is compared in the measurement, not here.
    """

    id: ClassVar[str] = "fair_baseline"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "A fair baseline"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM, Need.MEASUREMENT})
    codes: ClassVar[Mapping[str, str]] = common("baseline", NEEDS_GPU) | {
        "baseline.ok": "the loader keeps every required rule that could be looked at",
        "baseline.no_loader": "failed or unverified: no DataLoader is left in the namespace",
        "baseline.not_known": "unverified: nothing that is required could be looked at",
        "baseline.workers": "the loader has too few workers",
        "baseline.batch_size": "its batch size is not the DALI pipeline's",
        "baseline.geometry": "its images have another size or other channels than DALI's",
        "baseline.pin_memory": "its batches are not in pinned memory",
        "baseline.transforms": "its random steps are not those of the DALI pipeline",
        "baseline.cores": "it has more workers than cores",
        "baseline.persistent_workers": "its workers are started again for every epoch",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return not_reached()
        if not discovery.loaders:
            if "build_pytorch_loader" in discovery.factories:
                text = (
                    "Your loader is made by build_pytorch_loader and no DataLoader is left in the namespace, so its "
                    "settings could not be read. Keep the loader that you measured in a variable."
                )
                return undecided(Outcome.UNVERIFIED, "baseline.no_loader", text, tier=Tier.CLAIMS)
            return missing(
                absent(discovery, "loader"), "baseline", "the DataLoader that you measured", code="baseline.no_loader"
            )
        context = context_of(evidence, evidence.measurement) if evidence.measurement is not None else None
        cores = evidence.run.host.get("cpus_per_arm")
        return Observation(
            loader=(context.loader if context is not None else None) or discovery.loaders[0],
            loader_shape=context.loader_shape if context is not None else None,
            graph=room.graph if room is not None else None,
            batch=room.batch if room is not None else None,
            cores=cores if isinstance(cores, int) and 0 < cores < 2**16 else 0,
        )

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        rules = params.model_dump()
        looked, unknown = _looked_at(observation)
        findings = [finding for finding in _findings(observation, params) if rules[finding.rule] != "ignored"]
        broken = {finding.rule for finding in findings if rules[finding.rule] == "required"}
        required = [rule for rule in looked if rules[rule] == "required"]
        advice = [finding.text for finding in findings if finding.rule not in broken]
        details = {
            "loader": observation.loader.model_dump(mode="json", exclude={"transform"}),
            "looked_at": looked,
            "not_known": unknown,
            "findings": [finding._asdict() for finding in findings],
        }
        aside = f" Besides: {' '.join(advice)}" if advice else ""
        if broken:
            told = " ".join(finding.text for finding in findings if finding.rule in broken)
            score = min(0.99, 1 - len(broken) / max(1, len(required)))
            code = f"baseline.{next(rule for rule in looked if rule in broken)}"
            text = f"`{observation.loader.name}` is no fair baseline: {told}{aside} {_CLAIM}."
            return failed(code, text, score=score, tier=Tier.CLAIMS, details=details)
        not_seen = [rule for rule in unknown if rules[rule] == "required"]
        if not required:
            text = f"Nothing that this lab requires of `{observation.loader.name}` could be looked at.{aside}"
            return undecided(Outcome.UNVERIFIED, "baseline.not_known", text, tier=Tier.CLAIMS, details=details)
        kept = ", ".join(rule.replace("_", " ") for rule in required)
        left = f" Not known in this run: {', '.join(rule.replace('_', ' ') for rule in not_seen)}." if not_seen else ""
        text = f"`{observation.loader.name}` is a fair baseline ({kept}).{left}{aside} {_CLAIM}; the graph is a fact."
        return passed("baseline.ok", text, tier=Tier.CLAIMS, details=details)


def _looked_at(seen: Observation) -> tuple[list[str], list[str]]:
    """Rules that the evidence can answer, and those that it cannot, each in the order of their weight."""
    known = {
        "workers": True,
        "batch_size": bool(seen.loader.batch_size and seen.graph and seen.graph.declared_batch_size),
        "geometry": bool(seen.loader_shape and len(seen.loader_shape) == 4 and seen.batch),
        "pin_memory": _delivers_to_gpu(seen),
        "transforms": bool(seen.loader.transform and seen.graph),
        "cores": seen.cores > 0,
        "persistent_workers": seen.loader.num_workers > 0,
    }
    return [rule for rule, there in known.items() if there], [rule for rule, there in known.items() if not there]


def _delivers_to_gpu(seen: Observation) -> bool:
    """Pinned memory matters where the other side delivers on the GPU; unknown graphs are taken to do so."""
    return seen.graph is None or "gpu" in seen.graph.output_devices


def _findings(seen: Observation, params: Params) -> Iterator[_Finding]:
    looked, _ = _looked_at(seen)
    loader, graph = seen.loader, seen.graph
    if loader.num_workers < params.min_workers:
        yield _Finding(
            "workers",
            f"it has num_workers={loader.num_workers}; at least {params.min_workers} are wanted, since "
            f"without workers "
            "it decodes in the training loop itself.",
        )
    if "batch_size" in looked and graph is not None and loader.batch_size != graph.declared_batch_size:
        yield _Finding(
            "batch_size",
            f"its batch size is {loader.batch_size}, that of your DALI pipeline {graph.declared_batch_size}; use the "
            "same on both sides.",
        )
    if "geometry" in looked and seen.batch is not None and seen.loader_shape is not None:
        difference = geometry_difference(seen.batch.shape, seen.batch.dtype, seen.loader_shape)
        if difference is not None:
            yield _Finding("geometry", f"{difference}; both sides should deliver the same images.")
    if "pin_memory" in looked and not loader.pin_memory:
        yield _Finding(
            "pin_memory",
            "it has pin_memory=False, so that its batches cannot be copied to the GPU in the background; set "
            "pin_memory=True and copy with non_blocking=True.",
        )
    if "transforms" in looked and graph is not None:
        theirs, ours = differences(loader.transform, [operator.name for operator in graph.operators])
        if theirs or ours:
            sides = [f"only the loader does {', '.join(theirs)}"] if theirs else []
            sides += [f"only the DALI pipeline does {', '.join(ours)}"] if ours else []
            yield _Finding("transforms", f"{' and '.join(sides)}, as far as its transform says; do the same on both.")
    if "cores" in looked and loader.num_workers > seen.cores:
        yield _Finding(
            "cores",
            f"it has {loader.num_workers} workers for {seen.cores} cores; more workers than cores take turns.",
        )
    if "persistent_workers" in looked and not loader.persistent_workers:
        yield _Finding(
            "persistent_workers",
            "its workers are started again for every epoch (persistent_workers=False), which weighs on short epochs.",
        )


CHECK = FairBaselineCheck()
