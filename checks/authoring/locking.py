"""Keeps what a version of a check answers, so that a changed answer is never published under an old version."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from checks.authoring.material import (
    LOCK_FILE,
    OBSERVATIONS_FILE,
    Lock,
    LockedProbe,
    LockedResult,
    Recorded,
    read_lock,
)
from checks.authoring.report import Property, examples, failed, passed, skipped
from checks.authoring.target import Target
from checks.authoring.trial import Report
from grader_service.errors import ConfigurationError, UsageError

_NAME = "version"


def compare(target: Target, recorded: tuple[Recorded, ...], report: Report, *, accept: bool) -> Property:
    """Whether the recorded observations give what the lock says of this version.

    Raises:
        UsageError: `accept` for a check whose source is not kept here.
    """
    now = lock_of(target, recorded, report)
    if accept:
        return _accepted(target, now)
    try:
        before = read_lock(target)
    except ConfigurationError as error:
        return failed(_NAME, str(error), "Run `grader checks test --accept`.")
    if before is None:
        return skipped(_NAME, f"there is no {LOCK_FILE}", "Run `grader checks test --accept`, and keep the file.")
    if before.check != now.check:
        return failed(_NAME, f"{LOCK_FILE} is that of {before.check}", "Run `grader checks test --accept`.")
    return _compared(before, now)


def _compared(before: Lock, now: Lock) -> Property:
    changed = [
        f"{name}: {before.results[name].result}, now {result.result}"
        for name, result in now.results.items()
        if name in before.results
        and before.results[name].input == result.input
        and before.results[name].result != result.result
    ]
    if changed and before.version == now.version:
        return failed(
            _NAME,
            f"results changed, and the version is still {now.version}: {examples(changed)}",
            "Raise `version` of the check, then run `grader checks test --accept`.",
        )
    stale = [
        f"{name} {probe.version}"
        for name, probe in now.probes.items()
        if name in before.probes and before.probes[name].version == probe.version and before.probes[name] != probe
    ]
    if stale:
        return failed(
            _NAME,
            f"the source of a probe changed, and its version did not: {', '.join(stale)}",
            "Raise the probe's version if it could observe something else; then run `grader checks test --accept`.",
        )
    other = [
        f"{name}: {json.dumps(default)}, now {json.dumps(now.defaults.get(name))}"
        for name, default in before.defaults.items()
        if now.defaults.get(name) != default
    ]
    if other and before.version == now.version:
        return failed(
            _NAME,
            f"defaults of parameters changed, and the version is still {now.version}: {examples(other)}",
            "Raise `version` of the check, then run `grader checks test --accept`.",
        )
    if before != now:
        what = f"{LOCK_FILE} is that of {before.version}" if before.version != now.version else _drift(before, now)
        return failed(_NAME, what, "Run `grader checks test --accept`, and keep the file with your change.")
    counted = f"{len(now.results)} recorded results, {len(now.probes)} probes and {len(now.defaults)} defaults"
    return passed(_NAME, f"{now.version}: {counted} as locked")


def _drift(before: Lock, now: Lock) -> str:
    names = sorted(set(before.results) ^ set(now.results)) or sorted(
        name for name in now.results if before.results[name] != now.results[name]
    )
    return (
        f"{LOCK_FILE} does not know these recorded observations as they are: {examples(names)}"
        if names
        else f"{LOCK_FILE} is not that of these probes and parameters"
    )


def lock_of(target: Target, recorded: tuple[Recorded, ...], report: Report) -> Lock:
    """What the check answers now."""
    inputs = {line.name: _digest(line.model_dump(mode="json", exclude={"name", "expect"})) for line in recorded}
    results = {
        one.name: LockedResult(input=inputs[one.name], result=one.result or f"{one.status}: {one.problem}"[:200])
        for one in report.happened
        if one.group == "recorded"
    }
    probes = {}
    for probe_id in target.loaded.check.probes:
        try:
            probe = target.probe(probe_id)
        except ConfigurationError:
            continue  # reported by another property
        probes[probe_id] = LockedProbe(version=probe.version, sha256=probe.lines_sha256)
    return Lock(
        check=target.loaded.check.id,
        version=target.loaded.check.version,
        digest=_digest({name: result.result for name, result in results.items()}),
        results=results,
        probes=probes,
        defaults=_defaults(target.loaded.check.params_model),
    )


def _defaults(params: type[BaseModel]) -> dict[str, Any]:
    """Default of each parameter that has one, as JSON."""
    return {
        name: to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))
        for name, field in params.model_fields.items()
        if not field.is_required()
    }


def _accepted(target: Target, now: Lock) -> Property:
    if target.kept_in is None:
        raise UsageError(f"{target.name} is installed; give --accept the folder in which its source is kept")
    beside = target.material(LOCK_FILE) or target.material(OBSERVATIONS_FILE)
    path = (beside.parent if beside is not None else target.kept_in) / LOCK_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(now.model_dump(mode="json"), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from error
    return passed(_NAME, f"{now.version} with {len(now.results)} recorded results was written to {path}")


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
