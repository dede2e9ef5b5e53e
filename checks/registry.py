"""Finds checks by entry point, verifies their contract on loading, and names the culprit when it is broken."""

import hashlib
import runpy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from checks.api import ACCEPTED_VERSIONS, Check, probes_of, question_of
from grader_service.errors import ConfigurationError
from grader_service.plugins.declared import Declared, origin
from grader_service.raising import raised

GROUP = "grader.checks"
_PARTS = ("id", "version", "api_version", "title", "needs", "params_model", "observation_model", "observe", "judge")

_LONGEST_QUESTION = 4000


@dataclass(frozen=True)
class LoadedCheck:
    """A check that met its contract, and the distribution that it came with."""

    check: Check[Any, Any]
    distribution: str
    distribution_version: str

    @property
    def version_text(self) -> str:
        """For provenance: the check's version and where it came from."""
        return f"{self.check.version} ({self.distribution} {self.distribution_version})"

    def parse_params(self, params: Mapping[str, object]) -> BaseModel:
        """Validates a lab's parameters for this check; raises pydantic's `ValidationError`."""
        return self.check.params_model.model_validate(dict(params))


class Registry:
    """The checks that are installed. Listing reads metadata only; a check's code is imported when it is asked for."""

    def __init__(self, points: Iterable[EntryPoint] | None = None, files: Sequence[Path] = ()) -> None:
        """Reads metadata only, except for files, which are run at once.

        Args:
            points: the entry points of the group; those that are installed if absent.
            files: checks that are tried without being installed; each defines `CHECK`, and hides an installed one.

        Raises:
            ConfigurationError: a file does not run, or what it defines breaks the contract.
        """
        self._declared = Declared(GROUP, points)
        self._loaded: dict[str, LoadedCheck] = {}
        for file in files:
            loaded = load_file(file)
            self._loaded[loaded.check.id] = loaded

    def ids(self) -> list[str]:
        """Names of every installed check."""
        return self._declared.names()

    def origin(self, check_id: str) -> str:
        """Distribution and version that declare this check, without importing it."""
        return self._declared.origin(check_id)

    def load(self, check_id: str) -> LoadedCheck:
        """Imports and verifies one check.

        Raises:
            ConfigurationError: it is not installed, installed twice, does not import or breaks the contract; the
                message names the distribution.
        """
        if check_id not in self._loaded:
            self._loaded[check_id] = self._load(check_id)
        return self._loaded[check_id]

    def _load(self, check_id: str) -> LoadedCheck:
        point = self._declared.only("check", check_id)
        try:
            loaded = point.load()
        except Exception as error:
            raise ConfigurationError(
                f"check {check_id!r} of {origin(point)} does not load: {type(error).__name__}: {error}"
            ) from error
        problems = contract_problems(check_id, loaded)
        if problems:
            raise ConfigurationError(
                f"check {check_id!r} of {origin(point)} breaks the contract: {'; '.join(problems)}"
            )
        name, version = (point.dist.name, point.dist.version) if point.dist else ("unknown", "0")
        return LoadedCheck(loaded, name, version)


def load_file(path: Path) -> LoadedCheck:
    """Runs a check's file and verifies what it defines.

    Raises:
        ConfigurationError: it does not run, or what it defines breaks the contract.
    """
    if not path.is_file():
        raise ConfigurationError(f"there is no check file {path}; expected a Python file that defines CHECK")
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found = runpy.run_path(str(path), run_name=path.stem).get("CHECK")
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"check file {path} does not run: {raised(error, path).text}") from error
    if found is None:
        raise ConfigurationError(f"check file {path} defines no CHECK; expected `CHECK = MyCheck()` at its end")
    problems = contract_problems(str(getattr(found, "id", "")), found)
    if problems:
        raise ConfigurationError(f"check file {path} breaks the contract: {'; '.join(problems)}")
    return LoadedCheck(found, f"file {path.name}", digest[:12])


def contract_problems(check_id: str, check: object) -> list[str]:
    """What keeps an object from being the check of this name; empty when nothing does."""
    problems = []
    missing = [name for name in _PARTS if not hasattr(check, name)]
    if missing or not isinstance(check, Check):
        return [f"{_kind(check)} lacks {', '.join(missing) or 'methods'}"]
    if check.id != check_id:
        problems.append(f"its id is {check.id!r}, the entry point's name is {check_id!r}")
    problems += _version_problems(check.api_version)
    if not problems:
        wanted = probes_of(check)
        if not all(isinstance(name, str) and name for name in wanted):
            problems.append(f"probes must be names, got {wanted!r}")
        question = question_of(check)
        if question is not None and not (isinstance(question, str) and 0 < len(question) <= _LONGEST_QUESTION):
            problems.append(
                f"second_opinion must be a text of 1 to {_LONGEST_QUESTION} characters, got {repr(question)[:60]}"
            )
    for name in ("params_model", "observation_model"):
        model = getattr(check, name)
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            problems.append(f"{name} must be a pydantic model, got {model!r}")
        elif model.model_config.get("extra") != "forbid":
            problems.append(f"{name} must forbid unknown fields (model_config extra='forbid')")
    return problems


def _version_problems(version: object) -> list[str]:
    lowest, highest = ACCEPTED_VERSIONS[0], ACCEPTED_VERSIONS[-1]
    if version in ACCEPTED_VERSIONS:
        return []
    served = f"this grader serves {lowest} to {highest}"
    if isinstance(version, int) and version > highest:
        return [f"it is written for check API {version}, {served}: install a newer grader, or an older version of it"]
    return [f"it is written for check API {version!r}, {served}: install a newer version of it"]


def _kind(value: object) -> str:
    return f"class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__} object"
