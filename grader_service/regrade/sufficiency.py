"""Whether stored evidence holds everything that a lab's checks look at; pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from grader_service.model.evidence import Need, ProbeRef, RunPlan
from grader_service.model.regrade import Level


@dataclass(frozen=True)
class Choice:
    """The level at which a submission is graded again, and why; None for one that is left out."""

    level: Level | None
    reason: str
    text: str


JUDGE = Choice(Level.JUDGE, "evidence.sufficient", "the stored evidence holds everything that the checks look at")
REJECTION = Choice(
    Level.JUDGE, "evidence.rejection", "it was rejected before any of its code ran; the verdict is made again from that"
)
ASKED = Choice(Level.RUN, "run.asked", "to be run again, as asked")
NO_EVIDENCE = Choice(Level.RUN, "evidence.missing", "its evidence is not stored any more")


def choose(
    kind: str | None, collected: RunPlan, needs: Collection[Need], probes: Sequence[ProbeRef], wanted: str
) -> Choice:
    """The level for one submission.

    Args:
        kind: of its stored document; None when there is none.
        collected: what its run was asked to collect.
        needs: parts of the evidence that the checks look at now.
        probes: that the checks want now, with their parameters.
        wanted: `auto`, `judge` or `run`.
    """
    if wanted == "run":
        return ASKED
    choice = _by_evidence(kind, collected, needs, probes)
    if wanted == "judge" and choice.level is Level.RUN:
        return Choice(None, choice.reason, f"left out, since only judging was asked for: {choice.text}")
    return choice


def _by_evidence(kind: str | None, collected: RunPlan, needs: Collection[Need], probes: Sequence[ProbeRef]) -> Choice:
    if kind is None:
        return NO_EVIDENCE
    if kind == "rejection":
        return REJECTION
    missing = sorted(set(needs) - set(collected.needs))
    if missing:
        names = ", ".join(missing)
        return Choice(Level.RUN, "evidence.parts_missing", f"the checks look at what its run did not collect: {names}")
    ran = {probe.id: probe for probe in collected.probes}
    for probe in probes:
        before = ran.get(probe.id)
        if before is None:
            return Choice(Level.RUN, "evidence.probe_missing", f"the probe {probe.id} did not run with it")
        if (before.sha256, dict(before.params)) != (probe.sha256, dict(probe.params)):
            text = f"the probe {probe.id} ran in another version, or with other parameters"
            return Choice(Level.RUN, "evidence.probe_changed", text)
    return JUDGE
