"""Hints on a valid lab: what can be graded and is probably not what its author meant."""

from collections.abc import Iterator

from checks.registry import Registry
from grader_service.labs.documents import Document
from grader_service.labs.mistakes import Location, Mistake, warning_at
from grader_service.labs.wording import shown
from grader_service.model.evidence import Need
from grader_service.model.lab import LabSpec, threshold_of

_SHORTEST_S = 60.0
_STRICTEST_PASS = 0.05


def hints(lab: LabSpec, document: Document, registry: Registry) -> Iterator[Mistake]:
    """Every hint on a lab whose form and checks are right."""
    for location, message in (
        *_on_checks(lab, registry),
        *_on_limits(lab),
        *_on_measurement(lab, document, registry),
        *_on_types(lab.model_dump(by_alias=True), document.data, ()),
    ):
        yield warning_at(document.places.of_value(location), "hint", message, location)


def _on_checks(lab: LabSpec, registry: Registry) -> Iterator[tuple[Location, str]]:
    for index, step in enumerate(lab.steps):
        if all(check.feedback == "hidden" for check in step.checks):
            yield ("steps", index), "every check of this step is hidden, so its learners are told nothing at all"
        for number, check in enumerate(step.checks):
            location: Location = ("steps", index, "checks", number)
            if check.id == "throughput_ratio" and threshold_of(lab) < 1:
                message = (
                    f"{threshold_of(lab):g} is below 1, so a DALI pipeline passes that is slower than the baseline"
                )
                yield (*location, "params", "threshold"), message
            if check.feedback != "full" and Need.MEASUREMENT in registry.load(check.id).check.needs:
                yield (
                    (*location, "feedback"),
                    "only the text is kept from learners; rates and ratio stand in the verdict's measurement",
                )


def _on_limits(lab: LabSpec) -> Iterator[tuple[Location, str]]:
    limits = lab.limits
    if limits.learner_timeout_s < _SHORTEST_S:
        message = f"{limits.learner_timeout_s:g} s is shorter than a minute; importing torch and DALI takes 6 s of it"
        yield ("limits", "learner_timeout_s"), message
    for name in ("shm_mib", "workspace_mib"):
        if getattr(limits, name) >= limits.memory_mib:
            message = f"as large as memory_mib ({limits.memory_mib}), which counts the pages of this file system too"
            yield ("limits", name), message


def _on_measurement(lab: LabSpec, document: Document, registry: Registry) -> Iterator[tuple[Location, str]]:
    plan = lab.measurement
    measured = any(
        Need.MEASUREMENT in registry.load(check.id).check.needs for step in lab.steps for check in step.checks
    )
    if "measurement" in document.data and not measured:
        yield ("measurement",), "no check of this lab looks at a measurement, so nothing is timed"
    if plan.alpha_pass > _STRICTEST_PASS:
        message = f"{plan.alpha_pass:g}: one learner in {1 / plan.alpha_pass:.0f} whose ratio is the threshold passes"
        yield ("measurement", "alpha_pass"), message
    if plan.fair_workers > lab.limits.max_cpus:
        message = f"more workers than max_cpus ({lab.limits.max_cpus}); so many are started at most"
        yield ("measurement", "fair_workers"), message


def _on_types(read: object, written: object, location: Location) -> Iterator[tuple[Location, str]]:
    """Text or truth values that were taken for numbers, and numbers for truth values."""
    if isinstance(read, dict) and isinstance(written, dict):
        for name in written.keys() & read.keys():
            yield from _on_types(read[name], written[name], (*location, name))
    elif isinstance(read, (list, tuple)) and isinstance(written, list):
        for index, (one, other) in enumerate(zip(read, written, strict=False)):
            yield from _on_types(one, other, (*location, index))
    elif isinstance(read, bool) != isinstance(written, bool) or (
        isinstance(read, (int, float)) and isinstance(written, str)
    ):
        meant = str(read).lower() if isinstance(read, bool) else f"{read:g}" if isinstance(read, float) else str(read)
        yield location, f"{shown(written)} is read as {meant}; write {meant}"
