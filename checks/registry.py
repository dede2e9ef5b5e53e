"""Finds checks by entry point, verifies their contract on loading, and names the culprit when it is broken."""

import hashlib
import re
import runpy
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from checks.codes import code_problem
from checks.contract import API_VERSION, Check
from checks.function import FunctionCheck
from checks.probe_files import ProbeFile, ProbeFiles
from checks.raising import raised
from grader_service.errors import ConfigurationError
from grader_service.model.base import IDENTIFIER
from grader_service.model.near import instead
from grader_service.plugins.declared import Declared, origin

GROUP = "grader.checks"
_SAID = ("id", "version", "title", "params_model", "observation_model")
_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys(("id", "title", "about", "word", "second_opinion"), (str, "a text")),
    "needs": (AbstractSet, "a set of Need"),
    "probes": ((tuple, list), "a tuple of names"),
    "own_probes": (Mapping, "a dict of probes by their names"),
}
"""Members of a check, what they must be, and how that is said."""
_VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)
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
        """Validates a lab's parameters for this check, strictly: `true` is no number, and `16` no text.

        Raises:
            ValidationError: pydantic's.
        """
        model: type[BaseModel] = self.check.params_model
        return model.model_validate_json(to_json(params, inf_nan_mode="constants"), strict=True)

    def told(self, error: ValidationError) -> list[str]:
        """What is wrong with parameters, the first five: place and reason, and what an unknown name probably meant."""
        known = list(self.check.params_model.model_fields)
        found = []
        for problem in error.errors(include_url=False)[:5]:
            place = ".".join(map(str, problem["loc"])) or "it"
            unknown = problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1
            reason = f"no such parameter{instead(place, known, 'its parameters')}" if unknown else problem["msg"]
            found.append(f"{place}: {reason}")
        return found

    def probe(self, probe_id: str, files: ProbeFiles) -> ProbeFile:
        """A probe of this check: its own, or one of these.

        Raises:
            ConfigurationError: there is none, or it is no probe.
        """
        own = self.check.own_probes.get(probe_id)
        return own if own is not None else files.load(probe_id)


class Registry:
    """The checks that are installed. Listing reads metadata only; a check's code is imported when it is asked for."""

    def __init__(self, points: Iterable[EntryPoint] | None = None, files: Sequence[Path] = ()) -> None:
        """Reads metadata only, except for files, which are run at once.

        Args:
            points: the entry points of the group; those that are installed if absent.
            files: checks that are tried without being installed; each hides an installed one.

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
        if check_id in self._loaded:
            return self._loaded[check_id]
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
        return self._loaded.setdefault(check_id, LoadedCheck(loaded, name, version))


def load_file(path: Path) -> LoadedCheck:
    """Runs a check's file and verifies what it defines.

    Raises:
        ConfigurationError: it does not run, or what it defines breaks the contract.
    """
    if not path.is_file():
        raise ConfigurationError(f"there is no check file {path}; expected a Python file with a function marked @check")
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found = the_check(runpy.run_path(str(path), run_name=path.stem))
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"check file {path} does not run: {raised(error, path).text}") from error
    if isinstance(found, str):
        raise ConfigurationError(f"check file {path} {found}")
    problems = contract_problems(getattr(found, "id", ""), found)
    if problems:
        raise ConfigurationError(f"check file {path} breaks the contract: {'; '.join(problems)}")
    return LoadedCheck(found, f"file {path.name}", digest[:12])


def the_check(namespace: Mapping[str, object]) -> Check[Any, Any] | str:
    """The one check of a module, named `CHECK` where it has several; or why there is none."""
    if isinstance(named := namespace.get("CHECK"), Check):
        return named
    if named is not None:
        return f"has as CHECK {_kind(named)}; expected an object of a class made from checks.api.Check"
    module = namespace.get("__name__")
    found = {value.id: value for value in namespace.values() if isinstance(value, Check)}
    own = [one for one in found.values() if not isinstance(one, FunctionCheck) or one.function.__module__ == module]
    if len(own) == 1:
        return own[0]
    if own:
        return f"defines {', '.join(one.id for one in own)}; say which is meant: CHECK = {own[0].id}"
    return "defines no check; expected a function marked @check"


def contract_problems(check_id: str, check: object) -> list[str]:
    """What keeps an object from being the check of this name; empty when nothing does."""
    if not isinstance(check, Check):
        return [f"it is {_kind(check)}; expected a function marked @check, or a class made from checks.api.Check"]
    missing = [name for name in _SAID if not hasattr(check, name)]
    if missing:
        return [f"{_kind(check)} lacks {', '.join(missing)}"]
    problems = [
        f"{name} must be {told}, got {getattr(check, name)!r:.80}"
        for name, (kind, told) in _KINDS.items()
        if not isinstance(getattr(check, name), kind)
    ]
    if problems:
        return problems
    if check.id != check_id:
        problems.append(f"its id is {check.id!r}, the entry point's name is {check_id!r}")
    if not IDENTIFIER.fullmatch(check.id):
        problems.append(f"its id {check.id!r:.200} is none; expected 1 to 128 characters of A-Z, a-z, 0-9 and ._:-")
    elif problem := code_problem(f"{check.word or check.id}.ok"):
        problems.append(f"{problem}; give the function another name, or say @check(word=…)")
    if check.api_version != API_VERSION:
        newer = isinstance(check.api_version, int) and check.api_version > API_VERSION
        todo = "an older version of it, or a newer grader" if newer else "a newer version of it"
        said = f"it is written for check API {check.api_version!r}, this grader serves {API_VERSION}: install {todo}"
        problems.append(said)
    if not _VERSION.fullmatch(str(check.version)):
        problems.append(f"version must be three numbers with dots, got {check.version!r}")
    if not all(isinstance(name, str) and name for name in check.probes):
        problems.append(f"probes must be names, got {check.probes!r}")
    if len(check.second_opinion) > _LONGEST_QUESTION:
        problems.append(f"second_opinion has {len(check.second_opinion)} characters; at most {_LONGEST_QUESTION}")
    for name in ("params_model", "observation_model"):
        model = getattr(check, name)
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            problems.append(f"{name} must be a pydantic model, got {model!r}")
        elif model.model_config.get("extra") != "forbid":
            problems.append(f"{name} must forbid unknown fields (model_config extra='forbid')")
    return problems


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__} object"
