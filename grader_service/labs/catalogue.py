"""Loads labs for judging: their checks are loaded and the checks' parameters validated."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pydantic import ValidationError

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs.discovery import LabText, read_at_most
from grader_service.labs.documents import SUFFIXES, Document, Form
from grader_service.labs.form import tables
from grader_service.labs.hints import hints
from grader_service.labs.mistakes import START, Location, Mistake, Position, error_at
from grader_service.labs.specs import lab_text, opened, refusal
from grader_service.labs.wording import meant, mistakes_of, schema_of
from grader_service.model.lab import LabSpec

MOST_MISTAKES = 200


@dataclass(frozen=True)
class Inspection:
    """All that is to be said about a specification: the lab if it is right, its mistakes and hints."""

    lab: LabSpec | None
    mistakes: tuple[Mistake, ...]


def load_lab(lab_id: str, registry: Registry) -> LabSpec:
    """The specification of one lab, with its checks loaded and their parameters validated.

    Raises:
        UsageError: there is no such lab.
        ConfigurationError: its specification is wrong.
    """
    return parse_lab(lab_text(lab_id), f"lab {lab_id}", registry)


def named_lab(name: str, registry: Registry) -> LabSpec:
    """The lab that a command line names: its id, or its file, told apart by the ending.

    Raises:
        UsageError: there is no such lab, or the file cannot be read.
        ConfigurationError: its specification is wrong.
    """
    path = Path(name)
    return load_lab_file(path, registry) if path.suffix.lower() in SUFFIXES else load_lab(name, registry)


def named_text(name: str) -> LabText:
    """The same lab as it is written, right or wrong.

    Raises:
        UsageError: there is no such lab, or the file cannot be read.
        ConfigurationError: its declaration is wrong.
    """
    path = Path(name)
    form = SUFFIXES.get(path.suffix.lower())
    if form is None:
        return lab_text(name)
    try:
        return LabText(None, read_at_most(path), form, path.name, str(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def load_lab_file(path: Path, registry: Registry) -> LabSpec:
    """The specification in a file of its own.

    Raises:
        UsageError: the file cannot be read.
        ConfigurationError: its specification is wrong.
    """
    inspection = inspect_file(path, registry)
    if inspection.lab is None:
        lines = [mistake.text(str(path)) for mistake in inspection.mistakes if mistake.severity == "error"]
        kind = UsageError if all(mistake.code == "file" for mistake in inspection.mistakes) else ConfigurationError
        raise kind("\n".join(lines))
    return inspection.lab


@lru_cache(maxsize=64)
def parse_lab(text: LabText | str, name: str, registry: Registry) -> LabSpec:
    """Parses and validates one specification, its checks included; once for the same text, as every verdict asks.

    Raises:
        ConfigurationError: every mistake that was found, one per line.
    """
    lab, document, mistakes = opened(text)
    if document is not None:
        mistakes += tuple(_on_checks(document, registry))
    if lab is None or mistakes:
        raise ConfigurationError(refusal(name, text, _in_order(mistakes)))
    return lab


def inspect_file(path: Path, registry: Registry) -> Inspection:
    """What an author should know about a file; one that cannot be read is a mistake like others."""
    form = SUFFIXES.get(path.suffix.lower())
    if form is None:
        return _no_file(f"expected a file whose name ends in {', '.join(SUFFIXES)}")
    try:
        content = read_at_most(path)
    except OSError as error:
        return _no_file(f"cannot be read: {error.strerror or error}")
    return inspect_lab(content, form, registry)


def inspect_lab(content: bytes, form: Form, registry: Registry) -> Inspection:
    """What an author should know about a specification: all of its mistakes, or hints if there are none."""
    lab, document, mistakes = opened(LabText(None, content, form, "", ""))
    if document is not None:
        mistakes += tuple(_on_checks(document, registry))
    if lab is None or document is None or mistakes:
        return Inspection(None, _in_order(mistakes))
    return Inspection(lab, _in_order(tuple(hints(lab, document, registry))))


@cache
def _probe_files() -> ProbeFiles:
    """Those that are installed; a lab whose probe is missing could not be graded."""
    return ProbeFiles()


def _on_checks(document: Document, registry: Registry) -> Iterator[Mistake]:
    """Checks that are not installed or do not load, and parameters that they do not take."""
    for step_place, step in tables(document.data.get("steps"), ("steps",)):
        for place, check in tables(step.get("checks"), (*step_place, "checks")):
            check_id = check.get("id")
            if isinstance(check_id, str):
                yield from _on_check(check_id, check.get("params", {}), place, document, registry)


def _on_check(
    check_id: str, params: object, place: Location, document: Document, registry: Registry
) -> Iterator[Mistake]:
    position, location = document.places.of_value((*place, "id")), (*place, "id")
    known = registry.ids()
    if check_id not in known:
        message = f'no check "{check_id[:128]}" is installed{meant(check_id, known)}'
        message += f" Installed checks: {', '.join(known) or 'none'}"
        yield error_at(position, "check.unknown", message, location)
        return
    try:
        loaded = registry.load(check_id)
        for probe_id in loaded.check.probes:
            loaded.probe(probe_id, _probe_files())
    except ConfigurationError as error:
        yield error_at(position, "check.broken", str(error)[:1000], location)
        return
    if not isinstance(params, dict):
        return  # the form says so
    try:
        loaded.parse_params(params)
    except ValidationError as error:
        yield from mistakes_of(error, schema_of(loaded.check.params_model), document, (*place, "params"))
    except Exception as error:  # noqa: BLE001 - a validator of the check's author
        reason = f"its parameters cannot be validated: {type(error).__name__}: {error}"
        yield error_at(
            position, "check.broken", f"check {check_id!r} of {loaded.distribution}: {reason}"[:1000], location
        )


def _no_file(message: str) -> Inspection:
    return Inspection(None, (error_at(START, "file", message),))


def _in_order(mistakes: tuple[Mistake, ...]) -> tuple[Mistake, ...]:
    """As the file is read from its top; what nobody would read to its end is cut."""
    found = sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column, mistake.path))
    if len(found) > MOST_MISTAKES:
        more = f"{len(found) - MOST_MISTAKES + 1} mistakes more are not listed"
        last = found[MOST_MISTAKES - 1]
        found[MOST_MISTAKES - 1 :] = [error_at(Position(last.line, last.column), "more", more)]
    return tuple(found)
