"""Reads what an author keeps beside a check: control submissions, recorded observations and the lock of results."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError, model_validator

from checks.authoring.evidence import EvidenceBuilder
from checks.authoring.target import Target
from grader_service.errors import ConfigurationError
from grader_service.model.base import Code, Sha256, ShortText, Version, Wire
from grader_service.model.evidence import ProbeSite
from grader_service.model.verdict import Outcome

CONTROLS = "controls"
CONTROLS_FILE = "controls.toml"
OBSERVATIONS_FILE = "observations.jsonl"
LOCK_FILE = "conformance.lock"
MAX_RECORDED = 1000
_MAX_BYTES = 16 << 20
ModelT = TypeVar("ModelT", bound=BaseModel)


class Expected(Wire):
    """How a result has to come out."""

    outcome: Outcome
    code: Code


class Control(Wire):
    """A submission whose result is known."""

    file: Annotated[str, Field(pattern=r"^[\w.-]+(/[\w.-]+)*\.(py|ipynb|zip|tar|tar\.gz|tgz)$")]
    """Path below the folder `controls`."""
    outcome: Outcome
    code: Code
    params: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Beside those of the whole file."""


class Controls(Wire):
    """The file `controls/controls.toml`."""

    params: Mapping[str, JsonValue] = Field(default_factory=dict)
    """The check's parameters for every control, and for generated evidence."""
    control: Annotated[tuple[Control, ...], Field(max_length=100)] = ()


class Recorded(Wire):
    """One line of `observations.jsonl`: something to judge, and the known result.

    It holds either `observation`, which goes to `judge`, or what the evidence has to hold, which goes to `observe`
    first: `probes` with what they observed, and `evidence` with parts to replace in the evidence of a good run.
    """

    name: ShortText
    observation: Mapping[str, JsonValue] | None = None
    probes: Mapping[str, Mapping[str, JsonValue]] | None = None
    evidence: Mapping[str, JsonValue] | None = None
    params: Mapping[str, JsonValue] = Field(default_factory=dict)
    expect: Expected

    @model_validator(mode="after")
    def _one_way(self) -> "Recorded":
        from_evidence = self.probes is not None or self.evidence is not None
        if (self.observation is not None) == from_evidence:
            raise ValueError("expected either `observation`, or `probes` and `evidence`")
        return self


class LockedResult(Wire):
    """One recorded observation as it was judged."""

    input: Sha256
    """Of the observation and parameters, as canonical JSON."""
    result: str
    """Outcome, code, score and tier."""


class LockedProbe(Wire):
    """One probe as it was."""

    version: Version
    sha256: Sha256


class Lock(Wire):
    """The file `conformance.lock`: what a version of a check answers on its recorded observations."""

    check: str
    version: Version
    digest: Sha256
    """Of all results."""
    results: Mapping[str, LockedResult]
    probes: Mapping[str, LockedProbe] = Field(default_factory=dict)
    defaults: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Parameter → its default."""


def read_controls(target: Target) -> tuple[Path, Controls] | None:
    """The folder of control submissions and what is known of them; None where there is none.

    Raises:
        ConfigurationError: the file is wrong, or names a submission that is not there.
    """
    folder = target.material(CONTROLS)
    if folder is None or not (folder / CONTROLS_FILE).is_file():
        return None
    path = folder / CONTROLS_FILE
    controls = parse_controls(_text(path), str(path))
    gone = [control.file for control in controls.control if not (folder / control.file).is_file()]
    if gone:
        raise ConfigurationError(f"{path} names {', '.join(gone)}, and no such file is there")
    return folder, controls


def parse_controls(text: str, where: str) -> Controls:
    """What stands in a `controls.toml`.

    Raises:
        ConfigurationError: it is wrong; the message begins with `where`.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where} is not valid TOML: {error}") from error
    return _parsed(Controls, data, where)


def read_recorded(target: Target) -> tuple[Recorded, ...]:
    """The recorded observations of a check; none where it has no file of them.

    Raises:
        ConfigurationError: a line is wrong; the message says which.
    """
    path = target.material(OBSERVATIONS_FILE)
    if path is None:
        return ()
    found: dict[str, Recorded] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            data = json.loads(line)
        except ValueError as error:
            raise ConfigurationError(f"{where}: this is not JSON: {error}") from error
        recorded = _parsed(Recorded, data, where)
        if recorded.name in found:
            raise ConfigurationError(f"{where}: the name {recorded.name!r} stands there twice")
        found[recorded.name] = recorded
        if len(found) > MAX_RECORDED:
            raise ConfigurationError(f"{path} holds more than {MAX_RECORDED} observations")
    return tuple(found.values())


def read_lock(target: Target) -> Lock | None:
    """What was recorded of an earlier state of the check; None where nothing was.

    Raises:
        ConfigurationError: the file is wrong.
    """
    path = target.material(LOCK_FILE)
    if path is None:
        return None
    try:
        data = json.loads(_text(path))
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON: {error}; `--accept` writes it anew") from error
    return _parsed(Lock, data, f"{path} (`--accept` writes it anew)")


def builder_for(target: Target, recorded: Recorded) -> EvidenceBuilder:
    """Evidence of a run that went well, with what a recorded line puts in."""
    builder = EvidenceBuilder()
    for probe_id, observations in (recorded.probes or {}).items():
        builder = builder.probe(probe_id, observations, site=site_of(target, probe_id).value)
    for path, value in (recorded.evidence or {}).items():
        builder = builder.part(path, value)
    return builder


def site_of(target: Target, probe_id: str) -> ProbeSite:
    """Where a probe runs; `graph` for one that does not load, which another property reports."""
    try:
        return target.probe(probe_id).site
    except ConfigurationError:
        return ProbeSite.GRAPH


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigurationError(f"{path} has more than {_MAX_BYTES >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _parsed(model: type[ModelT], data: Any, where: str) -> ModelT:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc'])) or 'it'}: {problem['msg']}"
            for problem in error.errors(include_url=False)[:5]
        ]
        raise ConfigurationError(f"{where}: {'; '.join(problems)}") from error
