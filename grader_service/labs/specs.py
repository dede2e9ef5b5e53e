"""Reads lab specifications; knows no check, so that what runs submissions can use it."""

import tomllib
from importlib.resources import files

from pydantic import ValidationError

from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.lab import LabSpec

_SUFFIX = ".toml"


def lab_ids() -> list[str]:
    """Ids of the labs that come with the grader."""
    entries = files(__package__).iterdir()
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX))


def lab_text(lab_id: str) -> str:
    """The specification of one lab as it is written.

    Raises:
        UsageError: there is no such lab.
    """
    if lab_id not in lab_ids():
        raise UsageError(f"there is no lab {lab_id!r}; labs are: {', '.join(lab_ids())}")
    return (files(__package__) / f"{lab_id}{_SUFFIX}").read_text()


def read_lab(text: str, name: str) -> LabSpec:
    """Parses one specification; its checks are not looked at.

    Raises:
        ConfigurationError: every mistake that was found, one per line.
    """
    try:
        return LabSpec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name} is not valid TOML: {error}") from error
    except ValidationError as error:
        raise ConfigurationError(f"{name} is not a valid lab specification:\n{listed(error)}") from error


def listed(error: ValidationError) -> str:
    """Every problem on a line: where, what, and what stood there."""
    lines = []
    for problem in error.errors(include_url=False):
        place = ".".join(str(part) for part in problem["loc"]) or "(top)"
        lines.append(f"  {place}: {problem['msg']} (got {str(problem.get('input'))[:80]!r})")
    return "\n".join(lines)
