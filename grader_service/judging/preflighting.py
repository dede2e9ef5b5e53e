"""Makes a preflight of the evidence of a run in which nothing was measured: what is there and what is missing; pure."""

import difflib
from collections.abc import Iterator, Sequence

from checks.api import Result
from checks.dali_operators import row_of
from checks.listing import pipeline_named
from checks.not_carried import no_dali, not_carried
from checks.operator_names import fn_name
from checks.reflections.form_only import form_of
from checks.reflections.items import Side
from checks.registry import Registry
from checks.stopped import absent, missing, not_reached
from checks.wanted_names import ITERATOR, LOADER, wanted_names
from grader_service import __version__
from grader_service.judging.checks import judge_one, needs_of
from grader_service.judging.run_reporting import report
from grader_service.model.discovery import Discovery, FirstBatch
from grader_service.model.evidence import CleanRoom, Evidence, Need
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.lab import LabCheck, LabSpec, LabStep
from grader_service.model.preflight import (
    BatchPart,
    DataPart,
    GraphPart,
    ListPart,
    NamePart,
    Part,
    Preflight,
    Presence,
    WantedName,
)
from grader_service.model.run_report import RunReport
from grader_service.model.verdict import Outcome

_NOT_REACHED = not_reached().parts
_ALIKE = 0.7
"""Share of equal letters from which on one name may be meant by another."""
_BY_CONTENT = "build_dali_iterator"
_NEVER = frozenset({"ragged_batch", "no_image_output", "no_pipeline"})
"""Problems of a graph that its author's own code does not make good."""


def preflight_needs(steps: Sequence[LabStep], registry: Registry) -> frozenset[Need]:
    """What a run collects for a preflight: all that the checks of these steps look at, but for measurements."""
    return needs_of(steps, registry) - {Need.MEASUREMENT}


def images_needed(steps: Sequence[LabStep], registry: Registry) -> int:
    """How many JPEGs a preflight counts: as many as the lab asks for, since more would only take longer."""
    asked = (_min_images(check, registry) for step in steps for check in step.checks if check.id == "jpeg_dataset")
    return max(asked, default=1)


def preflight_of(evidence: Evidence, lab: LabSpec, steps: Sequence[LabStep], registry: Registry) -> Preflight:
    """The preflight of a submission.

    Args:
        evidence: of a run for `preflight_needs`.
        steps: of the lab that are looked at.

    Raises:
        JudgeFailed: a check raised or answered outside its contract.
    """
    run, discovery = report(evidence), evidence.discovery
    names = tuple(_name(wanted, discovery) for wanted in wanted_names(steps, registry))
    checks = {check.id: check for step in steps for check in step.checks if check.feedback == "full"}
    data = graph = batch = None
    lists: tuple[ListPart, ...] = ()
    if discovery is not None:
        data = _data(evidence, discovery, checks.get("jpeg_dataset"), registry)
        if evidence.clean_room is not None:
            if any(Need.CLEAN_ROOM in registry.load(check.id).check.needs for check in checks.values()):
                graph = _graph(evidence.clean_room, discovery)
            batch = _batch(evidence, discovery, checks.get("cuda_batch"), registry)
        if "reflections" in checks:
            lists = tuple(_lists(discovery, checks["reflections"], registry))
    made = Preflight(
        lab=lab.id,
        lab_title=lab.title,
        lab_version=lab.version,
        grader_version=__version__,
        ready=None,
        run=run,
        names=names,
        data=data,
        graph=graph,
        batch=batch,
        lists=lists,
        isolated=evidence.run.isolated,
        timings_s=evidence.run.timings_s,
    )
    return made.model_copy(update={"ready": _ready(run, made.parts)})


def _ready(run: RunReport, parts: Sequence[Part]) -> bool | None:
    """Whether nothing is missing; None where only a GPU could tell."""
    needed = [part.state for part in parts if not (isinstance(part, NamePart) and part.wanted.optional)]
    stopped = run.stopped and run.code != "run.needs_gpu"
    if stopped or not {Presence.MISSING, Presence.WRONG}.isdisjoint(needed):
        return False
    return None if run.stopped or Presence.NOT_REACHED in needed else True


def _name(wanted: WantedName, discovery: Discovery | None) -> NamePart:
    if discovery is None:
        return NamePart(state=Presence.NOT_REACHED, told=_NOT_REACHED, wanted=wanted)
    state, told = _by_type(wanted, discovery) if wanted.any_name else _by_name(wanted, discovery)
    if state is Presence.MISSING and discovery.ran != "completed":
        return NamePart(state=Presence.NOT_REACHED, told=_NOT_REACHED, wanted=wanted)
    return NamePart(state=state, told=told, wanted=wanted)


def _by_type(wanted: WantedName, discovery: Discovery) -> tuple[Presence, Feedback]:
    if wanted.name == LOADER:
        found = [f"`{one.name}`, {one.num_workers} workers, batches of {one.batch_size}" for one in discovery.loaders]
        found += [f"`{name}`" for name in discovery.factories if name == "build_pytorch_loader"]
    else:
        driven = [one for one in discovery.pipelines if one.iterator_type] or discovery.pipelines
        found = [f"`{one.name}`, batches of {one.batch_size}" for one in driven]
        found += [f"`{name}`" for name in discovery.factories if name == _BY_CONTENT]
        found += ["DALI's dynamic mode"] * discovery.dynamic_mode
    if found:
        return Presence.OK, Feedback(outcome=f"There is {wanted.name}.", seen=found[0])
    none = no_dali(discovery) if wanted.name == ITERATOR else None
    if none is not None:
        return Presence.MISSING, none.parts
    code = "train_loader = DataLoader(dataset, batch_size=32, num_workers=2)"
    lacks = Feedback(
        outcome="No torch.utils.data.DataLoader is left in your namespace.",
        next=NextStep(text="Keep it in a variable until your code ends:", code=code),
    )
    return Presence.MISSING, lacks


def _by_name(wanted: WantedName, discovery: Discovery) -> tuple[Presence, Feedback]:
    name = wanted.name
    status: str
    claims = {"pytorch_throughput": discovery.pytorch_throughput, "dali_throughput": discovery.dali_throughput}
    lists = {"where_dali_wins": discovery.where_dali_wins, "where_dali_loses": discovery.where_dali_loses}
    if name == "dataset_dir":
        status, seen = discovery.dataset_dir.status, discovery.dataset_dir.shown
    elif name in claims:
        claim = claims[name]
        status, seen = claim.status, claim.shown
        if claim.value is not None and claim.value <= 0:
            status = "unreadable"
    elif name in lists:
        status, seen = lists[name].status, _counted(len(lists[name].items))
        if status == "unreadable":
            seen = lists[name].shown
    elif name == "first_batch":
        status, seen = discovery.first_batch.status, _batch_seen(discovery.first_batch)
    else:
        status, seen = ("present", "") if name in discovery.defined else ("missing", "")
    if status == "missing":
        return Presence.MISSING, _not_defined(wanted, discovery)
    if status == "unreadable":
        return Presence.WRONG, Feedback(
            outcome=f"`{name}` holds {seen or 'something else'}.",
            wanted=f"It should hold {wanted.holds}.",
            next=NextStep(text=f"Set `{name}` to that."),
        )
    return Presence.OK, Feedback(outcome=f"`{name}` is there.", seen=seen)


def _counted(entries: int) -> str:
    return "1 entry" if entries == 1 else f"{entries} entries"


def _batch_seen(batch: FirstBatch) -> str:
    if batch.shape is None:
        return f"{batch.type}, in which no tensor was found: the grader draws a batch of its own"
    return f"{batch.type} {list(batch.shape)} on {batch.device or 'the CPU'}"


def _not_defined(wanted: WantedName, discovery: Discovery) -> Feedback:
    found = absent(discovery, wanted.name)
    told = missing(found, wanted.holds).parts
    if found.near is not None or told.wanted == "":
        return told
    near = difflib.get_close_matches(wanted.name, discovery.defined, 1, _ALIKE)
    if not near:
        return told
    line = NextStep(text="Add this line:", code=f"{wanted.name} = {near[0]}")
    return told.model_copy(update={"seen": f"There is `{near[0]}`: you may mean that.", "next": line})


def _data(evidence: Evidence, discovery: Discovery, check: LabCheck | None, registry: Registry) -> DataPart | None:
    """By the check itself, without its baseline, which stands among the names."""
    if check is None or discovery.dataset_dir.status != "present":
        return None  # said among the names
    params = {**check.params, "baseline": False}
    result = _answer(evidence, check.model_copy(update={"params": params}), registry)
    needed = _min_images(check, registry)
    images = evidence.scan.distinct if evidence.scan is not None else 0
    return DataPart(state=_state(result), told=result.parts, images=images, needed=needed)


def _min_images(check: LabCheck, registry: Registry) -> int:
    return int(registry.load(check.id).parse_params(check.params).model_dump()["min_images"])


def _graph(room: CleanRoom, discovery: Discovery) -> GraphPart | None:
    if not discovery.pipelines and not discovery.dynamic_mode and _BY_CONTENT not in discovery.factories:
        return None  # said among the names
    if room.problem is None:
        operators = room.graph.operators if room.graph is not None else ()
        decoders = [one for one in operators if (row := row_of(one.name)).stage == "decode" and not row.old]
        kinds = dict.fromkeys(f"{fn_name(one.name)} ({one.device or 'cpu'})" for one in decoders)
        told = Feedback(
            outcome=f"The grader can run {pipeline_named(room.pipeline)} on other images.",
            seen=f"It decodes with {', '.join(kinds)}." if kinds else "",
        )
        return GraphPart(state=Presence.OK, told=told, pipeline=room.pipeline, carried=True)
    told = not_carried(room).parts
    state = Presence.WRONG
    if room.problem == "needs_gpu":
        state = Presence.NOT_REACHED
    elif _BY_CONTENT in discovery.factories and room.problem not in _NEVER:
        state = Presence.OK
        told = Feedback(
            outcome=f"Your `{_BY_CONTENT}` will be measured, as the grader could not run your DALI pipeline again.",
            seen=told.seen,
        )
    return GraphPart(state=state, told=told, pipeline=room.pipeline, carried=False, problem=room.problem)


def _batch(evidence: Evidence, discovery: Discovery, check: LabCheck | None, registry: Registry) -> BatchPart | None:
    """By the check itself, as if `first_batch` were there, which stands among the names."""
    facts = None if evidence.clean_room is None else evidence.clean_room.batch
    if check is None or facts is None:
        return None
    if discovery.first_batch.status == "missing":
        named = discovery.model_copy(update={"first_batch": FirstBatch(status="no_tensor")})
        evidence = evidence.model_copy(update={"discovery": named})
    result = _answer(evidence, check, registry)
    return BatchPart(state=_state(result), told=result.parts, facts=facts)


def _state(result: Result) -> Presence:
    return {Outcome.PASSED: Presence.OK, Outcome.FAILED: Presence.WRONG}.get(result.outcome, Presence.NOT_REACHED)


def _answer(evidence: Evidence, check: LabCheck, registry: Registry) -> Result:
    return judge_one(registry.load(check.id), evidence, check).result


def _lists(discovery: Discovery, check: LabCheck, registry: Registry) -> Iterator[ListPart]:
    """The form of the lists that are there."""
    lists = {Side.WINS: discovery.where_dali_wins, Side.LOSES: discovery.where_dali_loses}
    params = registry.load(check.id).parse_params(check.params).model_dump()
    needed = {Side.WINS: int(params["min_wins"]), Side.LOSES: int(params["min_loses"])}
    for side, form in form_of(lists[Side.WINS].items, lists[Side.LOSES].items).items():
        if lists[side].status != "present":
            continue
        lacking = needed[side] - form.counted
        outcome = f"`{side}` has {_counted(form.counted)} that can count; {needed[side]} are needed."
        told = Feedback(
            outcome=outcome,
            seen="" if form.counted == form.entries else f"In all it has {_counted(form.entries)}.",
            next=NextStep(text=f"Write {lacking} more, each one situation and its reason.") if lacking > 0 else None,
            advice=form.advice,
        )
        yield ListPart(
            state=Presence.WRONG if lacking > 0 else Presence.OK,
            told=told,
            name=side.value,
            entries=form.entries,
            counted=form.counted,
            needed=needed[side],
        )
