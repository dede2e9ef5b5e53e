"""The check `placement_table`: the learner knows which stage of the pipeline runs where."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints

from checks.api import Check, Result, failed, passed
from checks.codes import LEARNER_PROBE, NO_DALI, NOT_CARRIED, common
from checks.listing import listed, pipeline_named
from checks.not_carried import first_words, no_dali, not_carried
from checks.operator_names import fn_name, where
from checks.placement_table.stages import device_of, is_device, meant, stage_of
from checks.probing import read_probe
from checks.stopped import Absent, absent, missing, not_reached
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, GraphFacts, Need, ProbeSite
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.verdict import Tier

_HOLDS = "a dict with one entry for each stage of your pipeline, such as {'read': 'cpu', 'decode': 'mixed'}"
_MIXED = "`mixed` takes files from the CPU and gives images on the GPU."
_MOST_ADVICE = 5
"""Further entries that are named."""


class Params(Wire):
    """What the lab asks for."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")] = "placement"
    """Variable that holds the table."""
    gpu_for_mixed: bool = False
    """Whether `gpu` is as good as `mixed` for a decoder."""


class Stated(Wire):
    """The learner's table, as the probe read it."""

    status: Literal["present", "missing", "unreadable"]
    shown: ShortText = ""
    rows: Annotated[
        tuple[tuple[ShortText, Annotated[tuple[ShortText, ...], Field(max_length=64)]], ...], Field(max_length=200)
    ] = ()


class Observation(Wire):
    """The learner's table and the graph that it is about."""

    pipeline: ShortText = ""
    stated: Stated
    graph: GraphFacts | None = None
    """Null where there is no table."""
    absent: Absent = Absent(name="placement")
    """How the run ended."""


class _Row(NamedTuple):
    key: str
    device: str | None
    places: list[int]
    other: str


class _Wrong(NamedTuple):
    """An entry that does not fit."""

    key: str
    said: str | None
    text: str
    """What it says and what is so."""
    right: str
    """Device that would be right."""


class PlacementTableCheck(Check[Params, Observation]):
    """Judges whether the learner's table says of every stage of the graph where it runs.

    Evidence:
        stated: the table in the learner's namespace; its answer, as the text of a reflection is.
        graph.operators: name and device of each operator, read in the learner's graph by the grader (a fact).
    Points: share of the graph's stages that are stated right; a pass needs all of them. Random numbers, casts and
        copies need no entry; entries for what is no stage of the graph cost nothing and are named.
    Errors: 0 false accepts on 14 failing and 0 false rejects on 15 passing tables in
        `tests/builtin_claims/test_placement_table.py`.
    Cannot detect: a table that was printed from the graph by code instead of written by hand; words in languages other
        than English (and a few German ones) for a stage.
    """

    id = "placement_table"
    version = "1.1.0"
    title = "Where each stage runs"
    word = "placement"
    needs = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM})
    probes = ("placement_table",)
    codes = common("placement", NO_DALI, LEARNER_PROBE, NOT_CARRIED) | {
        "placement.ok": "every stage of the graph is stated right",
        "placement.missing": "the variable is not defined",
        "placement.unreadable": "failed or unverified: what the variable holds could not be read",
        "placement.empty": "the table names no stage of the graph",
        "placement.wrong": "an entry does not fit the graph",
        "placement.incomplete": "stages of the graph have no entry",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return not_reached()
        if (result := no_dali("placement", discovery)) is not None:
            return result
        stated = read_probe(evidence, "placement", "placement_table", Stated, ProbeSite.LEARNER)
        if isinstance(stated, Result):
            return stated
        if stated.status == "missing":
            return Observation(stated=stated, absent=absent(discovery, "placement"))
        if room is None:
            return not_reached()
        if room.graph is None:
            return not_carried("placement", room)
        return Observation(pipeline=room.pipeline, stated=stated, graph=room.graph)

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        stated, graph = observation.stated, observation.graph
        if graph is None or stated.status == "missing":
            found = observation.absent.model_copy(update={"name": params.name})
            return missing(found, _HOLDS, code="missing")
        if stated.status != "present":
            what = f"`{params.name}` holds `{first_words(stated.shown, 8)}`, which is no table"
            return failed("placement.unreadable", _no_table(params, what))
        rows = _rows(stated, graph)
        if not any(row.places for row in rows):
            what = f"`{params.name}` names no stage of {pipeline_named(observation.pipeline)}"
            return failed("placement.empty", _no_table(params, what), tier=Tier.GRAPH)
        stages = {
            place: operator for place, operator in enumerate(graph.operators) if stage_of(operator.name) is not None
        }
        if not stages:
            feedback = Feedback(
                outcome=f"There is no stage in {pipeline_named(observation.pipeline)} that a table could be about.",
                next=NextStep(text="Read and decode images in it."),
            )
            return failed("placement.empty", feedback, tier=Tier.GRAPH)
        wrong = [told for row in rows if (told := _wrong(row, graph, params)) is not None]
        right = {
            place
            for row in rows
            for place in row.places
            if row.device is not None and _fits(row, _device(graph, place), graph, params)
        }
        left = [place for place in stages if place not in right]
        unknown = [row.key for row in rows if not row.places and not row.other]
        details = {
            "rows": [{"key": row.key, "device": row.device, "operators": row.places} for row in rows[:64]],
            "operators": [f"{operator.name}: {operator.device}" for operator in list(stages.values())[:64]],
            "not_in_graph": unknown[:20],
        }
        score = len([place for place in stages if place in right]) / len(stages)
        aside = _not_found(unknown)
        numbers = {"stages": len(stages), "right": len(stages) - len(left)}
        if wrong:
            feedback = Feedback(
                outcome=f"In `{params.name}` {wrong[0].text}.",
                seen=_MIXED if "mixed" in (wrong[0].said, wrong[0].right) else "",
                next=NextStep(text="Correct the entry:", code=_entry(wrong[0])),
                advice=(*map(_also_wrong, wrong[1 : _MOST_ADVICE + 1]), *aside),
                numbers=numbers | {"wrong": len(wrong)},
            )
            return failed("placement.wrong", feedback, score=min(score, 0.99), tier=Tier.GRAPH, details=details)
        if left:
            feedback = Feedback(
                outcome=f"`{params.name}` leaves out {len(left)} of the {len(stages)} stages of "
                f"{pipeline_named(observation.pipeline)}.",
                seen=f"What it says is right; left out: {listed([_named(graph, place) for place in left])}.",
                next=NextStep(text="Add an entry for each, with cpu, gpu or mixed."),
                advice=aside,
                numbers=numbers,
            )
            return failed("placement.incomplete", feedback, score=min(score, 0.99), tier=Tier.GRAPH, details=details)
        whose = pipeline_named(observation.pipeline)
        feedback = Feedback(
            outcome=f"`{params.name}` is right about all {len(stages)} stages of {whose}.",
            advice=aside,
            numbers=numbers,
        )
        return passed(feedback, tier=Tier.GRAPH, details=details)


def _no_table(params: Params, what: str) -> Feedback:
    """Feedback for something that says nothing of any stage."""
    return Feedback(
        outcome=f"{what}.",
        wanted="It should hold one entry for each stage of your pipeline, with cpu, gpu or mixed.",
        next=NextStep(text="Name the stages as the pipeline does:", code=f'{params.name} = {{"read": "cpu", …}}'),
    )


def _entry(wrong: _Wrong) -> str:
    return f'"{wrong.key}": "{wrong.right}"'


def _also_wrong(wrong: _Wrong) -> Advice:
    return Advice(code="advice.wrong_entry", text=f"Also, {wrong.text}.", next=f"Write {_entry(wrong)}.")


def _not_found(unknown: Sequence[str]) -> tuple[Advice, ...]:
    """A word on entries that are no stage of the graph; they cost nothing."""
    if not unknown:
        return ()
    text = f"Entries that are no stage of your pipeline: {listed([f'`{_short(key)}`' for key in unknown])}."
    return (Advice(code="advice.not_in_graph", severity=Severity.NOTE, text=text),)


def _rows(stated: Stated, graph: GraphFacts) -> list[_Row]:
    rows = []
    for key, values in stated.rows:
        turned = is_device(key)
        entries = [(value, [key]) for value in values] if turned else [(key, list(values))]
        for name, devices in entries:
            places, other = meant(name, graph.operators)
            rows.append(_Row(name, device_of(devices), places, other))
    return rows


def _wrong(row: _Row, graph: GraphFacts, params: Params) -> _Wrong | None:
    """What is wrong with one entry; None when nothing is."""
    key = _short(row.key)
    if row.other == "output" and row.device is not None and graph.output_devices:
        real = graph.output_devices[0]
        if row.device == real:
            return None
        text = f"`{key}` says {row.device}, but the pipeline's first output lies on the {real}"
        return _Wrong(key, row.device, text, real)
    if not row.places or any(_fits(row, _device(graph, place), graph, params) for place in row.places):
        return None
    real = _device(graph, row.places[0])
    operator = _named(graph, row.places[0])
    said = f"{row.device}, but" if row.device is not None else "neither cpu, gpu nor mixed, and"
    return _Wrong(key, row.device, f"`{key}` says {said} {operator} is {real}", real)


def _short(key: str) -> str:
    """A learner's key, at most four words of it."""
    return first_words(key, 4)[:60]


def _fits(row: _Row, real: str, graph: GraphFacts, params: Params) -> bool:
    """Whether an entry is right about one of its operators; `mixed` fits all of them when they differ."""
    several = len({_device(graph, place) for place in row.places}) > 1
    allowed = params.gpu_for_mixed and (row.device, real) == ("gpu", "mixed")
    return row.device == real or allowed or (row.device == "mixed" and several and not _one_decoder(row, graph))


def _one_decoder(row: _Row, graph: GraphFacts) -> bool:
    """Whether `mixed` may mean a decoder among the operators, and not that they differ."""
    return any(_device(graph, place) == "mixed" for place in row.places)


def _device(graph: GraphFacts, place: int) -> str:
    return graph.operators[place].device or "cpu"


def _named(graph: GraphFacts, place: int) -> str:
    """An operator, and the line where it stands."""
    operator = graph.operators[place]
    return f"{fn_name(operator.name)}{where(operator.file, operator.line)}"


CHECK = PlacementTableCheck()
