"""What built-in checks answer on evidence, and evidence that holds what a probe said."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from checks.api import CheckResult
from checks.probe_files import ProbeFile, read_probe_file
from grader_service.model.evidence import Evidence, ProbeRecord

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


def judged(check: Any, evidence: Evidence, **params: object) -> CheckResult:
    """What a check answers on evidence, as `grader_service.judging` asks it."""
    result = check.observe(evidence)
    if not isinstance(result, CheckResult):
        # Observations are stored and read again before they are judged.
        again = check.observation_model.model_validate_json(result.model_dump_json())
        result = check.judge(again, check.params_model.model_validate(params))
    assert isinstance(result, CheckResult)
    json.dumps(result.model_dump(mode="json"), allow_nan=False)
    return result


def probe_file(name: str) -> ProbeFile:
    """A built-in probe."""
    return read_probe_file(name, PROBES / f"{name}.py", "tests")


def a_record(probe: str, status: str = "ok", text: str = "", observations: Any = None) -> ProbeRecord:
    """The record of a built-in probe that ended so."""
    file = probe_file(probe)
    return ProbeRecord(
        id=probe,
        version=file.version,
        site=file.site,
        sha256=file.sha256,
        status=status,
        text=text,
        observations=observations,
    )
