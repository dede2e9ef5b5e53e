"""Loads labs for judging: their checks are loaded and the checks' parameters validated."""

from pathlib import Path

from pydantic import ValidationError

from checks.registry import Registry
from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs.specs import lab_ids, lab_text, listed, read_lab
from grader_service.model.lab import LabSpec

__all__ = ["lab_ids", "load_lab", "load_lab_file", "parse_lab"]


def load_lab(lab_id: str, registry: Registry) -> LabSpec:
    """The specification of one lab, with its checks loaded and their parameters validated.

    Raises:
        UsageError: there is no such lab.
        ConfigurationError: its specification is wrong.
    """
    return parse_lab(lab_text(lab_id), f"lab {lab_id}", registry)


def load_lab_file(path: Path, registry: Registry) -> LabSpec:
    """The specification in a file of its own.

    Raises:
        UsageError: the file cannot be read.
        ConfigurationError: its specification is wrong.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as a lab specification: {error}") from error
    return parse_lab(text, str(path), registry)


def parse_lab(text: str, name: str, registry: Registry) -> LabSpec:
    """Parses and validates one specification, its checks included.

    Raises:
        ConfigurationError: every mistake that was found, one per line.
    """
    lab = read_lab(text, name)
    problems = []
    for step in lab.steps:
        for check in step.checks:
            try:
                registry.load(check.id).parse_params(check.params)
            except ConfigurationError as error:
                problems.append(str(error))
            except ValidationError as error:
                problems.append(f"parameters of check {check.id} in step {step.id}:\n{listed(error)}")
    if problems:
        raise ConfigurationError(f"{name} cannot be graded:\n" + "\n".join(problems))
    return lab
