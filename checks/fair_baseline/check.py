"""The check `fair_baseline`: the PyTorch loader that DALI is compared with does the same work under fair settings."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from checks.api import Advice, Result, Severity, Taken, check, failed, not_reached, passed, unverified
from checks.fair_baseline.transforms import differences
from checks.listing import listed
from checks.observations.context import Context, context_of
from checks.stopped import cut_short, run_end
from grader_service.model.base import Count
from grader_service.model.batch_geometry import geometry_difference
from grader_service.model.discovery import LoaderFacts
from grader_service.model.evidence import Evidence, Need
from grader_service.model.verdict import Tier

Rule = Literal["required", "advised", "ignored"]


def _loader(evidence: Evidence) -> LoaderFacts | Result:
    """The learner's loader, the one that was timed before others."""
    discovery = evidence.discovery
    if discovery is None:
        return not_reached()
    if discovery.loaders:
        return context_of(evidence).loader or discovery.loaders[0]
    if "build_pytorch_loader" in discovery.factories:
        return unverified(
            "no_loader",
            "The settings of your DataLoader are not known: no variable holds what `build_pytorch_loader` makes.",
            next="Keep one in a variable:",
            write="loader = build_pytorch_loader(dataset_dir, 32)",
            tier=Tier.CLAIMS,
        )
    return cut_short(run_end(discovery)) or failed(
        "no_loader",
        "No torch.utils.data.DataLoader is left in your namespace, so there is no baseline to look at.",
        next="Keep the one that you measured in a variable:",
        write="loader = DataLoader(ImageFolder(dataset_dir, transform), batch_size=32, num_workers=4, pin_memory=True)",
    )


def _cores(evidence: Evidence) -> int:
    """Of each side; 0 when the run does not say."""
    cores = evidence.run.host.get("cpus_per_arm")
    return cores if isinstance(cores, int) and 0 < cores < 2**16 else 0


_Sides = Annotated[Context, Taken(context_of, frozenset({Need.CLEAN_ROOM, Need.MEASUREMENT}))]


class _Looked(NamedTuple):
    """A rule that the evidence can answer."""

    rule: str
    broken: bool
    text: str
    """What is so where it is broken, without its subject and its full stop."""
    action: str
    line: str = ""


@check(
    version="1.1.0",
    title="A fair baseline",
    word="baseline",
    codes={
        "no_loader": "failed or unverified: no DataLoader is left in the namespace",
        "workers": "the loader has too few workers",
        "batch_size": "its batch size is not the DALI pipeline's",
        "geometry": "its images have another size or other channels than DALI's",
        "pin_memory": "its batches are not in pinned memory",
        "transforms": "its random steps are not those of the DALI pipeline",
        "cores": "it has more workers than cores",
        "persistent_workers": "its workers are started again for every epoch",
    },
)
def fair_baseline(
    loader: Annotated[LoaderFacts, Taken(_loader, tier=Tier.CLAIMS)],
    sides: _Sides,
    allotted: Annotated[Count, Taken(_cores)],
    *,
    batch_size: Rule = "required",
    workers: Rule = "required",
    min_workers: Annotated[int, Field(ge=1, le=256)] = 1,
    cores: Rule = "advised",
    pin_memory: Rule = "required",
    persistent_workers: Rule = "advised",
    geometry: Rule = "required",
    transforms: Rule = "advised",
) -> Result:
    """Judges whether the baseline has a fair chance: same batch size and images, workers, pinned memory.

    Evidence:
        loader: settings of the learner's DataLoader and the text of its transform (claims); the run measures with them,
            so that a flattering lie costs its teller the ratio.
        graph, batch: batch size, operators and first batch of the DALI side (facts).
    Points: share of the required rules that are kept and could be looked at; a pass needs all of them.
    Errors: 0 false accepts on 14 failing and 0 false rejects on 12 passing pairs in
        `tests/checks/claims/test_fair_baseline.py`.
    Cannot detect: work that a dataset or a collate function does beside its `transform`; transforms that do not print
        themselves. The work that the loader really does is compared in the measurement, not here.

    Args:
        batch_size: The same batch size on both sides.
        workers: At least `min_workers` loader workers.
        cores: Not more workers than the loader has cores.
        pin_memory: Batches in pinned memory; left out where nothing is copied to a GPU.
        persistent_workers: Workers that live for more than one epoch.
        geometry: Images of the same size and channels on both sides, as far as batches of both were seen.
        transforms: The same random steps on both sides, as far as the loader's transform prints them.
    """
    rules = {
        "workers": workers, "batch_size": batch_size, "geometry": geometry, "pin_memory": pin_memory,
        "transforms": transforms, "cores": cores, "persistent_workers": persistent_workers,
    }  # fmt: skip
    looked = list(_looked_at(loader, sides, allotted, min_workers))
    required = [one for one in looked if rules[one.rule] == "required"]
    unknown = [rule for rule in rules if rule not in {one.rule for one in looked}]
    findings = [one for one in looked if one.broken and rules[one.rule] != "ignored"]
    broken = [one for one in findings if one in required]
    advice = tuple(
        Advice(
            code=f"advice.{one.rule}",
            severity=Severity.WARNING if one in required else Severity.NOTE,
            text=f"`{loader.name}`: {one.text}.",
            next=f"{one.action} {', '.join(one.line.splitlines())}".strip(),
        )
        for one in findings
        if one not in broken[:1]  # of which the outcome tells
    )
    numbers = {"workers": loader.num_workers, "workers_needed": min_workers, "cores": allotted}
    numbers |= {"batch_size": loader.batch_size} if loader.batch_size is not None else {}
    numbers |= {"dali_batch_size": sides.graph.declared_batch_size} if sides.graph is not None else {}
    details = {
        "loader": loader.model_dump(mode="json", exclude={"transform"}),
        "looked_at": [one.rule for one in looked],
        "not_known": unknown,
        "findings": [{"rule": one.rule, "text": one.text, "action": one.action, "line": one.line} for one in findings],
    }
    if broken:
        first, kept = broken[0], len(required) - len(broken)
        return failed(
            first.rule,
            f"`{loader.name}` is no fair baseline: {first.text}.",
            score=min(0.99, 1 - len(broken) / len(required)),
            seen=f"It keeps {kept} of {len(required)} required rules." if len(broken) > 1 else "",
            next=first.action,
            write=first.line,
            advice=advice,
            numbers=numbers,
            details=details,
        )
    if not required:
        nothing = f"Nothing that this lab requires of `{loader.name}` could be looked at."
        action = "Let the DALI pipeline beside it read its JPEGs with fn.readers.file."
        return unverified("not_known", nothing, next=action, advice=advice, numbers=numbers, details=details)
    seen = f"Looked at: {_names(one.rule for one in required)}."
    if not_seen := [rule for rule in unknown if rules[rule] == "required"]:
        seen += f" Not known in this run: {_names(not_seen)}."
    fair = f"`{loader.name}` is a fair baseline."
    return passed(fair, seen=seen, advice=advice, numbers=numbers, details=details)


def _names(rules: Iterable[str]) -> str:
    return ", ".join(rules).replace("_", " ")


def _looked_at(loader: LoaderFacts, sides: Context, cores: int, min_workers: int) -> Iterator[_Looked]:
    """The rules that the evidence can answer, in the order of their weight."""
    graph, batch, shape, workers = sides.graph, sides.batch, sides.loader_shape, loader.num_workers
    fitting = f"num_workers={max(min_workers, cores)}"
    text = f"it has num_workers={workers}, and {min_workers} or more are wanted"
    line = fitting if cores else "num_workers=len(os.sched_getaffinity(0))"
    yield _Looked("workers", workers < min_workers, text, "Let worker processes decode:", line)
    if loader.batch_size and graph is not None and (size := graph.declared_batch_size):
        text = f"its batch size is {loader.batch_size}, and that of your DALI pipeline {size}"
        yield _Looked("batch_size", loader.batch_size != size, text, "Use one for both:", f"batch_size={size}")
    if shape is not None and len(shape) == 4 and batch is not None:
        text = geometry_difference(batch.shape, shape) or ""
        yield _Looked("geometry", bool(text), text, "Deliver images of one size and as many channels on both sides.")
    if graph is None or "gpu" in graph.output_devices:  # unknown graphs are taken to deliver on the GPU
        text = "it has pin_memory=False, so every copy to the GPU waits"
        action = "Pin its batches, and copy them in the background:"
        line = 'pin_memory=True\nbatch.to("cuda", non_blocking=True)'
        yield _Looked("pin_memory", not loader.pin_memory, text, action, line)
    if loader.transform and graph is not None:
        theirs, ours = differences(loader.transform, [operator.name for operator in graph.operators])
        only = [f"only the loader does {listed(theirs)}"] if theirs else []
        only += [f"only the DALI pipeline does {listed(ours)}"] if ours else []
        yield _Looked("transforms", bool(only), ", ".join(only), "Do the same random steps on both sides.")
    if cores:
        text = f"it has {workers} workers on {cores} cores, so they take turns"
        yield _Looked("cores", workers > cores, text, "Use as many as there are cores:", fitting)
    if workers:
        text = "its workers are started again for every epoch, which takes long where epochs are short"
        line = "persistent_workers=True"
        yield _Looked("persistent_workers", not loader.persistent_workers, text, "Keep them:", line)
