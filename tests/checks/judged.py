"""What built-in checks answer on evidence, and evidence that holds what a probe said."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from checks.api import Result
from checks.probe_files import ProbeFile, read_probe_file
from grader_service.model.evidence import Evidence, ProbeRecord
from tests.checks.declared_codes import built_in

PROBES = Path(__file__).resolve().parents[2] / "checks" / "probes"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
"""Whatever a probe may be made to say."""
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 70), st.sampled_from([0, 1, 2**63, -1]),
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, 1e12, -1e12, 1e-300]),
    st.text(max_size=8), st.just([]), st.just({}),
)  # fmt: skip


def changed(value: Any, data: st.DataObject) -> Any:
    """The dict or list, which is not empty, with one value replaced somewhere inside."""
    key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    inner = value[key]
    if isinstance(inner, (dict, list)) and inner and data.draw(st.integers(0, 5)):
        new = changed(inner, data)
    else:
        new = data.draw(_like(inner) if data.draw(st.booleans()) else LEAVES | JSON)
    return value | {key: new} if isinstance(value, dict) else [*value[:key], new, *value[key + 1 :]]


def _like(value: Any) -> st.SearchStrategy[Any]:
    """Other values of the same kind, which a model may well take."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.integers(0, 64)
    if isinstance(value, float):
        return st.floats(-300, 300)
    if isinstance(value, list):
        return st.sampled_from([value[:1], value[:-1], value[::-1], value * 2])
    if isinstance(value, str):
        return st.sampled_from(["", "RGB", "uint8", "val_pipe", "{name} % s", "\u202e\x1b[31m"])
    return LEAVES


def judged(check: Any, evidence: Evidence, **params: object) -> Result:
    """What a check answers on evidence, as `grader_service.judging.checks` asks it."""
    taken = check.params_model.model_validate(params)
    result, observation = check.answer(evidence, taken)
    if observation is not None:
        # Observations are stored and read again before they are judged.
        again = check.observation_model.model_validate_json(observation.model_dump_json())
        result = check.decide(again, taken)
    assert isinstance(result, Result)
    json.dumps(result.model_dump(mode="json"), allow_nan=False)
    return result


def probe_file(name: str) -> ProbeFile:
    """A built-in probe."""
    return read_probe_file(name, PROBES / f"{name}.py", "tests")


def probed(site: str) -> list[Any]:
    """The built-in checks whose first probe runs at this site."""
    checks = [loaded.check for loaded in built_in()]
    return [check for check in checks if [probe_file(name).site for name in check.probes][:1] == [site]]


def a_record(probe: str, status: str = "ok", **told: Any) -> ProbeRecord:
    """The record of a built-in probe that ended so and told this: text, traceback, printed, observations."""
    file = probe_file(probe)
    return ProbeRecord(
        id=probe,
        version=file.version,
        site=file.site,
        sha256=file.sha256,
        status=status,
        **told,
    )
