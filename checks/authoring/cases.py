"""Makes the things that a check has to answer to: missing parts, hostile values, generated and recorded observations.

Cases are drawn with a seed of their own and are the same in every process, so that two processes can be compared.
"""

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from checks.authoring.evidence import EvidenceBuilder
from checks.authoring.material import Recorded, builder_for, site_of
from checks.authoring.planted import plant
from checks.authoring.schema_values import values_for
from checks.authoring.target import Target

Group = Literal["recorded", "missing", "hostile", "generated", "hidden"]
GENERATED = 250
"""Observations drawn from the model's own schema, and as many pieces of any JSON."""
_OTHER_PARAMS = 60
"""Parameters drawn from their schema."""
_STATUSES = ("raised", "graph_failed", "no_graph", "timed_out", "pod_ended", "unreadable")
_ENDINGS = ("exited", "timed_out", "out_of_memory", "protocol_violation", "completed")
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**53, 1e308, -1e308, 5e-324, "", "{0.__class__} {x} %s %n", "<script>alert(1)</script>",
    "\x1b[2J\u202e\x00\ud7ff", "a" * 200, "a" * 8192, [], {}, [[]], {"a": None},
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One thing to judge."""

    name: str
    group: Group
    kind: Literal["evidence", "observation"]
    value: Any
    """As JSON values; the model may refuse them."""
    params: Mapping[str, Any]


def all_cases(target: Target, recorded: tuple[Recorded, ...], params: Mapping[str, Any]) -> Iterator[Case]:
    """Every case of a check, the recorded ones first.

    Args:
        target: the check.
        recorded: its recorded observations.
        params: of the lab, for all but the recorded cases that have their own.
    """
    base = _base(target, recorded)
    yield from _recorded(target, recorded, params)
    yield from _missing(target, base, params)
    yield from _hostile(target, base, params)
    yield from _generated(target, base, recorded, params)
    yield from _with_other_params(target, base, recorded, params)


def _base(target: Target, recorded: tuple[Recorded, ...]) -> EvidenceBuilder:
    """Evidence with something from every probe: what a recorded line says, else nothing at all."""
    builder = EvidenceBuilder()
    for probe_id in target.loaded.check.probes:
        said = next((line.probes[probe_id] for line in recorded if line.probes and probe_id in line.probes), {})
        builder = builder.probe(probe_id, said, site=site_of(target, probe_id).value)
    return plant(builder)


def _recorded(target: Target, recorded: tuple[Recorded, ...], params: Mapping[str, Any]) -> Iterator[Case]:
    for line in recorded:
        whole = {**params, **line.params}
        if line.observation is not None:
            yield Case(line.name, "recorded", "observation", dict(line.observation), whole)
        else:
            yield Case(line.name, "recorded", "evidence", plant(builder_for(target, line)).as_json(), whole)


def _missing(target: Target, base: EvidenceBuilder, params: Mapping[str, Any]) -> Iterator[Case]:
    whole = base.as_json()
    for name, builder in (("an official run", base), ("a rehearsal", base.rehearsal())):
        yield Case(name, "missing", "evidence", builder.as_json(), params)
    for ending in _ENDINGS:
        yield Case(f"the pod ended: {ending}", "missing", "evidence", base.ended(ending).as_json(), params)
    for path in paths(whole):
        for what, changed in (("null", with_value(whole, path, None)), ("absent", without(whole, path))):
            yield Case(f"{_dotted(path)} is {what}", "missing", "evidence", changed, params)
    for number, probe_id in enumerate(target.loaded.check.probes):
        for status in _STATUSES:
            changed = with_value(whole, ("probes", number, "status"), status)
            changed = with_value(changed, ("probes", number, "observations"), None)
            yield Case(f"probe {probe_id}: {status}", "missing", "evidence", changed, params)
        changed = with_value(whole, ("probes", number, "site"), "learner")
        yield Case(f"probe {probe_id} from the learner's site", "missing", "evidence", changed, params)


def _hostile(target: Target, base: EvidenceBuilder, params: Mapping[str, Any]) -> Iterator[Case]:
    """Values of the wrong size and of the wrong kind, at every place of evidence and observations."""
    whole = base.as_json()
    numbers = random.Random(1)  # noqa: S311 - no secret; the same cases in every process
    wanted = {need.value for need in target.loaded.check.needs} | {"discovery", "run"}
    for path in paths({name: part for name, part in whole.items() if name in wanted}):
        for value in numbers.sample(HOSTILE, 5):
            yield Case(
                f"{_dotted(path)} is {_short(value)}", "hostile", "evidence", with_value(whole, path, value), params
            )
    for number, record in enumerate(whole["probes"]):
        said = record["observations"] or {}
        for name, changed in _mutations(said, numbers):
            path = ("probes", number, "observations")
            yield Case(f"{record['id']}: {name}", "hostile", "evidence", with_value(whole, path, changed), params)


def _generated(
    target: Target, base: EvidenceBuilder, recorded: tuple[Recorded, ...], params: Mapping[str, Any]
) -> Iterator[Case]:
    """Observations that the check's model is likely to take, and what any JSON does to it."""
    numbers = random.Random(2)  # noqa: S311 - no secret; the same cases in every process
    schema = target.loaded.check.observation_model.model_json_schema(by_alias=True)
    for number, value in enumerate(values_for(schema, numbers, GENERATED)):
        yield Case(f"generated observation {number}", "generated", "observation", value, params)
    whole = base.as_json()
    for index, probe_id in enumerate(target.loaded.check.probes):
        drawn = [*values_for(schema, numbers, GENERATED // 2), *(any_json(numbers) for _ in range(GENERATED // 2))]
        for number, value in enumerate(drawn):
            said = value if isinstance(value, dict) else {"value": value}
            changed = with_value(whole, ("probes", index, "observations"), said)
            yield Case(f"{probe_id}: generated {number}", "generated", "evidence", changed, params)
    for line in recorded:
        if line.observation is not None:
            for name, changed in _mutations(dict(line.observation), numbers):
                yield Case(f"{line.name}: {name}", "generated", "observation", changed, {**params, **line.params})


def _with_other_params(
    target: Target, base: EvidenceBuilder, recorded: tuple[Recorded, ...], params: Mapping[str, Any]
) -> Iterator[Case]:
    """What a lab may set, on the recorded observations, or on a run that went well."""
    numbers = random.Random(3)  # noqa: S311 - no secret; the same cases in every process
    schema = target.loaded.check.params_model.model_json_schema(by_alias=True)
    if not schema.get("properties"):
        return
    known = [*_recorded(target, recorded, params)] or [
        Case("an official run", "recorded", "evidence", base.as_json(), params)
    ]
    for number, drawn in enumerate(values_for(schema, numbers, _OTHER_PARAMS)):
        one = known[number % len(known)]
        yield Case(f"{one.name}, params {number}: {_short(drawn)}", "generated", one.kind, one.value, drawn)


def _mutations(value: dict[str, Any], numbers: random.Random) -> Iterator[tuple[str, Any]]:
    yield "{}", {}
    yield "an unknown name", {**value, "unknown": 1}
    for path in list(paths(value))[:200]:
        yield f"{_dotted(path)} is absent", without(value, path)
        for bad in numbers.sample(HOSTILE, 4):
            yield f"{_dotted(path)} is {_short(bad)}", with_value(value, path, bad)


def any_json(numbers: random.Random, depth: int = 3) -> Any:
    """A JSON value of any form."""
    if depth == 0 or numbers.random() < 0.3:
        return numbers.choice((*HOSTILE, numbers.randrange(-1000, 1000), numbers.uniform(-10, 10), "word"))
    if numbers.random() < 0.5:
        return [any_json(numbers, depth - 1) for _ in range(numbers.randrange(4))]
    names = ("name", "value", "shape", "status", "", "a b", "0")
    return {numbers.choice(names): any_json(numbers, depth - 1) for _ in range(numbers.randrange(4))}


Path = tuple[str | int, ...]


def paths(value: Any, before: Path = ()) -> Iterator[Path]:
    """Every place inside a JSON value, the outer ones first; of long lists the first two items."""
    if isinstance(value, Mapping):
        items: Sequence[tuple[str | int, Any]] = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value[:2]))
    else:
        return
    for name, item in items:
        yield (*before, name)
        yield from paths(item, (*before, name))


def with_value(whole: Any, path: Path, value: Any) -> Any:
    """A copy with another value at one place; only what lies on the way is copied."""
    if not path:
        return copy.deepcopy(value)
    changed = list(whole) if isinstance(whole, list) else dict(whole)
    changed[path[0]] = with_value(changed[path[0]], path[1:], value)  # type: ignore[index]
    return changed


def without(whole: Any, path: Path) -> Any:
    """A copy in which one place is not there."""
    changed = list(whole) if isinstance(whole, list) else dict(whole)
    if len(path) == 1:
        del changed[path[0]]  # type: ignore[arg-type]
    else:
        changed[path[0]] = without(changed[path[0]], path[1:])  # type: ignore[index]
    return changed


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 24 else f"{text[:20]}... ({len(text)} characters)"
