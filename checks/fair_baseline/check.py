"""The check `fair_baseline`: the PyTorch loader that DALI is compared with does the same work under fair settings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.fair_baseline.transforms import differences
from checks.listing import listed
from checks.stopped import cut_short, not_reached, run_end
from checks.throughput_ratio.context import context_of
from grader_service.batch_geometry import geometry_difference
from grader_service.model.base import Count, Shape, Wire
from grader_service.model.discovery import LoaderFacts
from grader_service.model.evidence import BatchFacts, Evidence, GraphFacts, Need
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.verdict import Outcome, Tier

Rule = Literal["required", "advised", "ignored"]
_UNREAD = Feedback(
    outcome="The settings of your DataLoader are not known: no variable holds what `build_pytorch_loader` makes.",
    next=NextStep(text="Keep one in a variable:", code="loader = build_pytorch_loader(dataset_dir, 32)"),
)
_NO_LOADER = Feedback(
    outcome="No torch.utils.data.DataLoader is left in your namespace, so there is no baseline to look at.",
    next=NextStep(
        text="Keep the one that you measured in a variable:",
        code="loader = DataLoader(ImageFolder(dataset_dir, transform), batch_size=32, num_workers=4, pin_memory=True)",
    ),
)


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
    """What is so, without its subject and its full stop."""
    action: str
    line: str = ""


class FairBaselineCheck(Check[Params, Observation]):
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

    id = "fair_baseline"
    version = "1.1.0"
    title = "A fair baseline"
    word = "baseline"
    needs = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM, Need.MEASUREMENT})
    codes: Mapping[str, str] = {
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

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return not_reached()
        if not discovery.loaders:
            if "build_pytorch_loader" in discovery.factories:
                return undecided(Outcome.UNVERIFIED, "baseline.no_loader", _UNREAD, tier=Tier.CLAIMS)
            if (result := cut_short(run_end(discovery))) is not None:
                return result
            return failed("baseline.no_loader", _NO_LOADER)
        context = context_of(evidence, evidence.measurement) if evidence.measurement is not None else None
        cores = evidence.run.host.get("cpus_per_arm")
        return Observation(
            loader=(context.loader if context is not None else None) or discovery.loaders[0],
            loader_shape=context.loader_shape if context is not None else None,
            graph=room.graph if room is not None else None,
            batch=room.batch if room is not None else None,
            cores=cores if isinstance(cores, int) and 0 < cores < 2**16 else 0,
        )

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        rules = params.model_dump()
        looked, unknown = _looked_at(observation)
        findings = [finding for finding in _findings(observation, params) if rules[finding.rule] != "ignored"]
        broken = {finding.rule for finding in findings if rules[finding.rule] == "required"}
        required = [rule for rule in looked if rules[rule] == "required"]
        details = {
            "loader": observation.loader.model_dump(mode="json", exclude={"transform"}),
            "looked_at": looked,
            "not_known": unknown,
            "findings": [finding._asdict() for finding in findings],
        }
        name, told = observation.loader.name, Feedback(outcome="", numbers=_numbers(observation, params))
        if broken:
            first = next(finding for finding in findings if finding.rule in broken)
            score = min(0.99, 1 - len(broken) / max(1, len(required)))
            code = f"baseline.{next(rule for rule in looked if rule in broken)}"
            changes = {
                "outcome": f"`{name}` is no fair baseline: {first.text}.",
                "seen": f"It keeps {len(required) - len(broken)} of {len(required)} required rules."
                if len(broken) > 1
                else "",
                "next": NextStep(text=first.action, code=first.line),
                "advice": tuple(_advice(finding, name, broken) for finding in findings if finding is not first),
            }
            return failed(code, told.model_copy(update=changes), score=score, tier=Tier.CLAIMS, details=details)
        advice = tuple(_advice(finding, name, broken) for finding in findings)
        if not required:
            changes = {
                "outcome": f"Nothing that this lab requires of `{name}` could be looked at.",
                "next": NextStep(text="Let the DALI pipeline beside it read its JPEGs with fn.readers.file."),
                "advice": advice,
            }
            told = told.model_copy(update=changes)
            return undecided(Outcome.UNVERIFIED, "baseline.not_known", told, tier=Tier.CLAIMS, details=details)
        seen = f"Looked at: {_names(required)}."
        if not_seen := [rule for rule in unknown if rules[rule] == "required"]:
            seen += f" Not known in this run: {_names(not_seen)}."
        changes = {"outcome": f"`{name}` is a fair baseline.", "seen": seen, "advice": advice}
        return passed(told.model_copy(update=changes), tier=Tier.CLAIMS, details=details)


def _advice(finding: _Finding, name: str, broken: Collection[str]) -> Advice:
    """A finding beside the first one: a rule that is broken as well, or one that the lab only advises."""
    return Advice(
        code=f"advice.{finding.rule}",
        severity=Severity.WARNING if finding.rule in broken else Severity.NOTE,
        text=f"`{name}`: {finding.text}.",
        next=f"{finding.action} {', '.join(finding.line.splitlines())}".strip(),
    )


def _names(rules: Sequence[str]) -> str:
    return ", ".join(rule.replace("_", " ") for rule in rules)


def _numbers(seen: Observation, params: Params) -> dict[str, int]:
    """Figures that the texts of findings name, where they are known."""
    found = {
        "workers": seen.loader.num_workers,
        "workers_needed": params.min_workers,
        "cores": seen.cores,
        "batch_size": seen.loader.batch_size,
        "dali_batch_size": seen.graph.declared_batch_size if seen.graph is not None else None,
    }
    return {name: number for name, number in found.items() if number is not None}


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
    workers = f"num_workers={max(params.min_workers, seen.cores) if seen.cores else 'len(os.sched_getaffinity(0))'}"
    if loader.num_workers < params.min_workers:
        yield _Finding(
            "workers",
            f"it has num_workers={loader.num_workers}, and {params.min_workers} or more are wanted",
            "Let worker processes decode:",
            workers,
        )
    if "batch_size" in looked and graph is not None and loader.batch_size != graph.declared_batch_size:
        yield _Finding(
            "batch_size",
            f"its batch size is {loader.batch_size}, and that of your DALI pipeline {graph.declared_batch_size}",
            "Use one for both:",
            f"batch_size={graph.declared_batch_size}",
        )
    if "geometry" in looked and seen.batch is not None and seen.loader_shape is not None:
        difference = geometry_difference(seen.batch.shape, seen.batch.dtype, seen.loader_shape)
        if difference is not None:
            yield _Finding("geometry", difference, "Deliver images of one size and as many channels on both sides.")
    if "pin_memory" in looked and not loader.pin_memory:
        yield _Finding(
            "pin_memory",
            "it has pin_memory=False, so every copy to the GPU waits",
            "Pin its batches, and copy them in the background:",
            'pin_memory=True\nbatch.to("cuda", non_blocking=True)',
        )
    if "transforms" in looked and graph is not None:
        theirs, ours = differences(loader.transform, [operator.name for operator in graph.operators])
        if theirs or ours:
            sides = [f"only the loader does {listed(theirs)}"] if theirs else []
            sides += [f"only the DALI pipeline does {listed(ours)}"] if ours else []
            yield _Finding("transforms", ", ".join(sides), "Do the same random steps on both sides.")
    if "cores" in looked and loader.num_workers > seen.cores:
        yield _Finding(
            "cores",
            f"it has {loader.num_workers} workers on {seen.cores} cores, so they take turns",
            "Use as many as there are cores:",
            f"num_workers={max(params.min_workers, seen.cores)}",
        )
    if "persistent_workers" in looked and not loader.persistent_workers:
        yield _Finding(
            "persistent_workers",
            "its workers are started again for every epoch, which takes long where epochs are short",
            "Keep them:",
            "persistent_workers=True",
        )


CHECK = FairBaselineCheck()
