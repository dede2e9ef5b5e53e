"""The check `placement_table`: the learner knows which stage of the pipeline runs where."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints

from checks.api import Advice, CleanRoom, Discovery, FromProbe, Result, Severity, absent, check, failed, missing, passed
from checks.listing import listed, pipeline_named
from checks.not_carried import first_words, not_carried
from checks.operator_names import fn_name, where
from checks.placement_table.stages import device_of, is_device, meant, stage_of
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import GraphFacts, OperatorFacts, ProbeSite
from grader_service.model.verdict import Tier

_HOLDS = "a dict with one entry for each stage of your pipeline, such as {'read': 'cpu', 'decode': 'mixed'}"
_WANTED = "It should hold one entry for each stage of your pipeline, with cpu, gpu or mixed."
_NAME_THEM = "Name the stages as the pipeline does:"
_MIXED = "`mixed` takes files from the CPU and gives images on the GPU."
_MOST_ADVICE = 5
"""Further entries that are named."""


class Stated(Wire):
    """The learner's table, as the probe read it."""

    status: Literal["present", "missing", "unreadable"]
    shown: ShortText = ""
    rows: Annotated[
        tuple[tuple[ShortText, Annotated[tuple[ShortText, ...], Field(max_length=64)]], ...], Field(max_length=200)
    ] = ()


class _Row(NamedTuple):
    """One entry of the table, and which operators it is about."""

    key: str
    device: str | None
    places: list[int]
    other: str
    right: list[int]
    """Operators about which it is right."""


class _Wrong(NamedTuple):
    """An entry that does not fit."""

    text: str
    """What it says and what is so."""
    entry: str
    """What to write."""
    mixed: bool
    """Whether it is about that device."""


@check(
    version="1.1.0",
    title="Where each stage runs",
    word="placement",
    tier=None,  # where no table is held against the graph
    codes={
        "unreadable": "failed or unverified: what the variable holds could not be read",
        "wrong": "an entry does not fit the graph",
    },
)
def placement_table(
    discovery: Discovery,
    room: CleanRoom,
    stated: Annotated[Stated, FromProbe("placement_table", ProbeSite.LEARNER)],
    *,
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")] = "placement",
    gpu_for_mixed: bool = False,
) -> Result:
    """Judges whether the learner's table says of every stage of the graph where it runs.

    Evidence:
        stated: the table in the learner's namespace; its answer, as the text of a reflection is.
        graph.operators: name and device of each operator, read in the learner's graph by the grader (a fact).
    Points: share of the graph's stages that are stated right; a pass needs all of them. Random numbers, casts and
        copies need no entry; entries for what is no stage of the graph cost nothing and are named.
    Errors: 0 false accepts on 14 failing and 0 false rejects on 15 passing tables in
        `tests/checks/claims/test_placement_table.py`.
    Cannot detect: a table that was printed from the graph by code instead of written by hand; words in languages other
        than English (and a few German ones) for a stage.

    Args:
        name: Variable that holds the table.
        gpu_for_mixed: Whether `gpu` is as good as `mixed` for a decoder.
    """
    if stated.status == "missing":
        return missing(absent(discovery, name), _HOLDS, code="missing")
    graph = room.graph
    if graph is None:
        return not_carried(room)
    example = f'{name} = {{"read": "cpu", …}}'
    if stated.status == "unreadable":
        none = f"`{name}` holds `{first_words(stated.shown, 8)}`, which is no table."
        return failed("unreadable", none, wanted=_WANTED, next=_NAME_THEM, write=example)
    whose = pipeline_named(room.pipeline)
    rows = list(_rows(stated, graph, gpu_for_mixed=gpu_for_mixed))
    if not any(row.places for row in rows):
        none = f"`{name}` names no stage of {whose}."
        return failed("empty", none, wanted=_WANTED, next=_NAME_THEM, write=example, tier=Tier.GRAPH)
    stages = [place for place, operator in enumerate(graph.operators) if stage_of(operator.name) is not None]
    if not stages:
        no_stage = f"There is no stage in {whose} that a table could be about."
        return failed("empty", no_stage, next="Read and decode images in it.", tier=Tier.GRAPH)
    wrong = [found for row in rows if (found := _wrong(row, graph)) is not None]
    right = {place for row in rows for place in row.right}
    left = [place for place in stages if place not in right]
    unknown = [row.key for row in rows if not row.places and not row.other]
    details = {
        "rows": [{"key": row.key, "device": row.device, "operators": row.places} for row in rows[:64]],
        "operators": [f"{graph.operators[place].name}: {graph.operators[place].device}" for place in stages[:64]],
        "not_in_graph": unknown[:20],
    }
    numbers = {"stages": len(stages), "right": len(stages) - len(left)}
    score = min(numbers["right"] / numbers["stages"], 0.99)
    aside = _not_found(unknown)
    if wrong:
        also = (
            Advice(code="advice.wrong_entry", text=f"Also, {one.text}.", next=f"Write {one.entry}.")
            for one in wrong[1 : _MOST_ADVICE + 1]
        )
        return failed(
            "wrong",
            f"In `{name}` {wrong[0].text}.",
            seen=_MIXED if wrong[0].mixed else "",
            next="Correct the entry:",
            write=wrong[0].entry,
            advice=(*also, *aside),
            numbers=numbers | {"wrong": len(wrong)},
            score=score,
            tier=Tier.GRAPH,
            details=details,
        )
    if left:
        return failed(
            "incomplete",
            f"`{name}` leaves out {len(left)} of the {len(stages)} stages of {whose}.",
            seen=f"What it says is right; left out: {listed([_named(graph.operators[place]) for place in left])}.",
            next="Add an entry for each, with cpu, gpu or mixed.",
            advice=aside,
            numbers=numbers,
            score=score,
            tier=Tier.GRAPH,
            details=details,
        )
    good = f"`{name}` is right about all {len(stages)} stages of {whose}."
    return passed(good, advice=aside, numbers=numbers, tier=Tier.GRAPH, details=details)


def _rows(stated: Stated, graph: GraphFacts, *, gpu_for_mixed: bool) -> Iterator[_Row]:
    for key, values in stated.rows:
        turned = is_device(key)
        for name, devices in [(value, [key]) for value in values] if turned else [(key, values)]:
            places, other = meant(name, graph.operators)
            device = device_of(devices)
            real = {place: _device(graph.operators[place]) for place in places}
            yield _Row(name, device, places, other, _right(device, real, gpu_for_mixed=gpu_for_mixed))


def _right(device: str | None, real: dict[int, str], *, gpu_for_mixed: bool) -> list[int]:
    """Of operators and their devices those about which an entry is right; `mixed` fits all of them when they differ."""
    used = set(real.values())
    # With a decoder among them, `mixed` may mean that one, and not that they differ.
    all_of_them = device == "mixed" and len(used) > 1 and "mixed" not in used
    allowed = {device, "mixed"} if gpu_for_mixed and device == "gpu" else {device}
    return [place for place, one in real.items() if all_of_them or one in allowed]


def _wrong(row: _Row, graph: GraphFacts) -> _Wrong | None:
    """What is wrong with one entry; None when nothing is."""
    first = graph.output_devices[:1]
    if row.other == "output" and row.device is not None and first and row.device != first[0]:
        real = first[0]
        so = f"the pipeline's first output lies on the {real}"
    elif row.places and not row.right:
        operator = graph.operators[row.places[0]]
        real = _device(operator)
        so = f"{_named(operator)} is {real}"
    else:
        return None
    key = _short(row.key)
    said = f"{row.device}, but" if row.device is not None else "neither cpu, gpu nor mixed, and"
    return _Wrong(f"`{key}` says {said} {so}", f'"{key}": "{real}"', "mixed" in (row.device, real))


def _not_found(unknown: Sequence[str]) -> tuple[Advice, ...]:
    """A word on entries that are no stage of the graph; they cost nothing."""
    if not unknown:
        return ()
    text = f"Entries that are no stage of your pipeline: {listed([f'`{_short(key)}`' for key in unknown])}."
    return (Advice(code="advice.not_in_graph", severity=Severity.NOTE, text=text),)


def _short(key: str) -> str:
    """A learner's key, at most four words of it."""
    return first_words(key, 4)[:60]


def _device(operator: OperatorFacts) -> str:
    return operator.device or "cpu"


def _named(operator: OperatorFacts) -> str:
    """An operator, and the line where it stands."""
    return f"{fn_name(operator.name)}{where(operator.file, operator.line)}"
