"""Takes out of evidence what is random or of the machine, and what no page needs."""

import sys
from pathlib import Path
from typing import Any

from grader_service.model.evidence import Evidence

ROOT = Path(__file__).resolve().parents[2]
_DIGITS = 5
_KEPT_SIZES = 3
_HOST = ("cpus_per_arm",)
_LINK = "/tmp/grader-run-"
"""A short way to a run's folder, as `sandbox.short_path` makes it."""


class MachineNamed(ValueError):
    """What was to be kept names a folder of this machine."""


def trimmed(evidence: Evidence, folder: Path) -> dict[str, Any]:
    """Evidence as JSON values, small and the same on every machine as far as that goes.

    Args:
        evidence: of a golden run.
        folder: where the run's folders lay.

    Raises:
        MachineNamed: a path of this machine is left.
    """
    document = evidence.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    _of_run(document["run"])
    _of_discovery(document.get("discovery") or {})
    if (scan := document.get("scan")) is not None:
        scan["root"] = ""
        scan["sizes"] = scan.get("sizes", [])[:_KEPT_SIZES]
        scan["examples"] = scan.get("examples", [])[:_KEPT_SIZES]
    if (measurement := document.get("measurement")) is not None:
        measurement.pop("measured_s", None)
        measurement.pop("corroboration", None)
    return _plain(document, folder, "")


def _of_run(run: dict[str, Any]) -> None:
    run.update(run_id="golden", seed="0" * 32, versions={}, timings_s={}, grader_version=None)
    run["host"] = {name: value for name, value in run.get("host", {}).items() if name in _HOST}
    run["pods"] = [pod | {"wall_s": 0.0, "log_tail": "", "detail": ""} for pod in run["pods"]]


def _of_discovery(discovery: dict[str, Any]) -> None:
    """Graphs are kept nowhere here, so nothing may point to them."""
    for name in ("graphs", "versions", "defined"):
        discovery.pop(name, None)
    for pipeline in discovery.get("pipelines", ()):
        pipeline["graph"] = None
    if "duration_s" in discovery:
        discovery["duration_s"] = round(discovery["duration_s"], 1)


def _plain(value: Any, folder: Path, where: str) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one, folder, f"{where}.{name}") for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one, folder, f"{where}[{number}]") for number, one in enumerate(value)]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if not isinstance(value, str):
        return value
    text = value.replace(sys.prefix, "/usr").replace(sys.base_prefix, "/usr")
    for named in (str(folder), str(ROOT), _LINK):
        if named in text:
            raise MachineNamed(f"{where.lstrip('.')} names {named}: {text[:300]}")
    return text
