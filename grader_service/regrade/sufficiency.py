"""Whether stored evidence holds everything that a lab's checks look at; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from grader_service.model.evidence import Need, ProbeRef
from grader_service.model.lab import MeasurementPlan
from grader_service.model.regrade import Level
from grader_service.model.verdict_summary import every_value
from grader_service.store.cohorts import Candidate


@dataclass(frozen=True)
class Choice:
    """The level at which a submission is graded again, and why; None for one that is left out."""

    level: Level | None
    reason: str
    text: str


@dataclass(frozen=True)
class Asked:
    """What a lab's checks look at now."""

    needs: frozenset[Need]
    probes: tuple[ProbeRef, ...]
    measurement: Mapping[str, object]
    """How the lab measures, every value of its plan."""


JUDGE = Choice(Level.JUDGE, "evidence.sufficient", "the stored evidence holds everything that the checks look at")
REJECTION = Choice(
    Level.JUDGE, "evidence.rejection", "it was rejected before any of its code ran; the verdict is made again from that"
)
ASKED = Choice(Level.RUN, "run.asked", "to be run again, as asked")
NO_EVIDENCE = Choice(Level.RUN, "evidence.missing", "its evidence is not stored any more")
MEASUREMENT_CHANGED = "evidence.measurement_changed"
_DEFAULTS = every_value(MeasurementPlan())


def choose(found: Candidate, asked: Asked, wanted: str) -> Choice:
    """The level for one submission; `wanted` is `auto`, `judge` or `run`."""
    choice = _of_what_there_is(found, asked, wanted)
    if choice.level is Level.RUN and not found.artifact_kept:
        text = f"left out, since what was handed in is not kept any more, and {choice.text}"
        return Choice(None, "artifact.removed", text)
    return choice


def _of_what_there_is(found: Candidate, asked: Asked, wanted: str) -> Choice:
    if wanted == "run":
        return ASKED
    choice = _by_evidence(found, asked)
    if wanted == "judge" and choice.level is Level.RUN:
        return Choice(None, choice.reason, f"left out, since only judging was asked for: {choice.text}")
    if choice is JUDGE and (changed := _measured_otherwise(found, asked)):
        return _by_another_plan(changed, wanted)
    return choice


def _by_evidence(found: Candidate, asked: Asked) -> Choice:
    if found.evidence is None:
        return NO_EVIDENCE
    if found.evidence == "rejection":
        return REJECTION
    missing = sorted(asked.needs - set(found.plan.needs))
    if missing:
        names = ", ".join(missing)
        return Choice(Level.RUN, "evidence.parts_missing", f"the checks look at what its run did not collect: {names}")
    ran = {probe.id: probe for probe in found.plan.probes}
    for probe in asked.probes:
        before = ran.get(probe.id)
        if before is None:
            return Choice(Level.RUN, "evidence.probe_missing", f"the probe {probe.id} did not run with it")
        if (before.sha256, dict(before.params)) != (probe.sha256, dict(probe.params)):
            text = f"the probe {probe.id} ran in another version, or with other parameters"
            return Choice(Level.RUN, "evidence.probe_changed", text)
    return JUDGE


def _measured_otherwise(found: Candidate, asked: Asked) -> list[str]:
    """Values of the lab's measurement plan that are not the run's; what that did not know yet was at its default."""
    if found.measured_by is None or Need.MEASUREMENT not in asked.needs:
        return []
    was = {**_DEFAULTS, **found.measured_by}
    return [name for name, value in asked.measurement.items() if was[name] != value]


def _by_another_plan(changed: list[str], wanted: str) -> Choice:
    """Judging replays a measurement by the plan of its run, so that only a run shows what the lab's own does."""
    names = ", ".join(changed)
    if wanted == "judge":
        # Unlike evidence that lacks a part it can be judged: the operator may have changed something else of the lab.
        text = f"judged as asked, by the measurement plan of its run, whatever the lab says now of {names}"
        return Choice(Level.JUDGE, MEASUREMENT_CHANGED, text)
    text = f"it was measured by another plan than the lab's: {names}"
    return Choice(Level.RUN, MEASUREMENT_CHANGED, text)
