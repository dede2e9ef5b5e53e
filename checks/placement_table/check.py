"""The check `placement_table`: the learner knows which stage of the pipeline runs where."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, StringConstraints

from checks.api import API_VERSION, CheckResult, failed, passed
from checks.codes import LEARNER_PROBE, NO_DALI, NOT_CARRIED, common
from checks.not_carried import no_dali, not_carried
from checks.operator_names import fn_name
from checks.placement_table.stages import device_of, is_device, meant, stage_of
from checks.probing import read_probe
from checks.stopped import absent, missing, not_reached
from grader_service.model.base import ShortText, Wire
from grader_service.model.evidence import Evidence, GraphFacts, Need
from grader_service.model.verdict import Tier

_HOLDS = "a dict such as {'read': 'cpu', 'decode': 'mixed', …}, one entry for each stage of your pipeline"
_MEANS = {
    "cpu": "runs on the CPU",
    "gpu": "runs on the GPU",
    "mixed": "is `mixed` (takes files from the CPU, gives images on the GPU)",
}


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

    pipeline: ShortText
    stated: Stated
    graph: GraphFacts


class _Row(NamedTuple):
    key: str
    device: str | None
    places: list[int]
    other: str


class PlacementTableCheck:
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

    id: ClassVar[str] = "placement_table"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Where each stage runs"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY, Need.CLEAN_ROOM})
    probes: ClassVar[tuple[str, ...]] = ("placement_table",)
    codes: ClassVar[Mapping[str, str]] = common("placement", NO_DALI, LEARNER_PROBE, NOT_CARRIED) | {
        "placement.ok": "every stage of the graph is stated right",
        "placement.missing": "the variable is not defined",
        "placement.unreadable": "failed or unverified: what the variable holds could not be read",
        "placement.empty": "the table names no stage of the graph",
        "placement.wrong": "an entry does not fit the graph",
        "placement.incomplete": "stages of the graph have no entry",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return not_reached()
        if (result := no_dali("placement", discovery)) is not None:
            return result
        stated = read_probe(evidence, "placement", "placement_table", Stated)
        if isinstance(stated, CheckResult):
            return stated
        if stated.status == "missing":
            return missing(absent(discovery, "placement"), "placement", _HOLDS, code="placement.missing")
        if room is None:
            return not_reached()
        if room.graph is None:
            return not_carried("placement", room)
        return Observation(pipeline=room.pipeline, stated=stated, graph=room.graph)

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        stated, graph = observation.stated, observation.graph
        if stated.status != "present":
            text = f"`{params.name}` could not be read as a table (it shows as `{stated.shown}`). Expected: {_HOLDS}."
            return failed("placement.unreadable", text)
        rows = _rows(stated, graph)
        if not any(row.places for row in rows):
            text = f"`{params.name}` names no stage of `{observation.pipeline}`. Expected: {_HOLDS}."
            return failed("placement.empty", text, tier=Tier.GRAPH)
        stages = {
            place: operator for place, operator in enumerate(graph.operators) if stage_of(operator.name) is not None
        }
        if not stages:
            return failed("placement.empty", "The graph has no stage that a table could be about.", tier=Tier.GRAPH)
        wrong = [text for row in rows if (text := _wrong(row, graph, params))]
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
        aside = f" Not found in the graph: {', '.join(f'`{key}`' for key in unknown[:5])}." if unknown else ""
        if wrong:
            text = " ".join(wrong[:6]) + aside
            return failed("placement.wrong", text, score=min(score, 0.99), tier=Tier.GRAPH, details=details)
        if left:
            names = ", ".join(f"{fn_name(stages[place].name)}{_where(graph, place)}" for place in left[:6])
            text = f"What you state is right, but your pipeline also has {names}. Add an entry for each.{aside}"
            return failed("placement.incomplete", text, score=min(score, 0.99), tier=Tier.GRAPH, details=details)
        text = f"Your table fits the graph of `{observation.pipeline}`: {len(stages)} stages, all stated right.{aside}"
        return passed("placement.ok", text, tier=Tier.GRAPH, details=details)


def _rows(stated: Stated, graph: GraphFacts) -> list[_Row]:
    rows = []
    for key, values in stated.rows:
        turned = is_device(key)
        entries = [(value, [key]) for value in values] if turned else [(key, list(values))]
        for name, devices in entries:
            places, other = meant(name, graph.operators)
            rows.append(_Row(name, device_of(devices), places, other))
    return rows


def _wrong(row: _Row, graph: GraphFacts, params: Params) -> str:
    """What is wrong with one entry; empty when nothing is."""
    if row.other == "output" and row.device is not None and graph.output_devices:
        real = graph.output_devices[0]
        if row.device != real:
            return f"`{row.key}`: you state {row.device}, but your pipeline delivers its first output on the {real}."
        return ""
    if not row.places:
        return ""
    if row.device is None:
        return f"`{row.key}`: the entry names neither cpu, gpu nor mixed."
    if any(_fits(row, _device(graph, place), graph, params) for place in row.places):
        return ""
    place = row.places[0]
    operator = graph.operators[place]
    return (
        f"`{row.key}`: you state {row.device}, but {fn_name(operator.name)}{_where(graph, place)} "
        f"{_MEANS.get(_device(graph, place), _device(graph, place))}."
    )


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


def _where(graph: GraphFacts, place: int) -> str:
    operator = graph.operators[place]
    return f" ({operator.file}, line {operator.line})" if operator.file and operator.line else ""


CHECK = PlacementTableCheck()
