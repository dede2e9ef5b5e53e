"""Plans runs: what each has to find out, from the checks of the lab's steps; runners load no check."""

from dataclasses import dataclass

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.judging.checks import needs_of
from grader_service.judging.preflighting import images_needed, preflight_needs
from grader_service.judging.probe_plan import wanted_probes
from grader_service.model.evidence import ProbeTask, RunPlan, RunTask
from grader_service.model.lab import LabRef, LabSpec, threshold_of


@dataclass(frozen=True)
class Planned:
    """What a run has to find out, and the sources of its probes: runners need no check and no plugin for it."""

    task: RunTask
    probes: tuple[ProbeTask, ...] = ()

    def by(self, lab: LabRef) -> RunPlan:
        """The plan that is stored, of a run that is graded by this lab."""
        return RunPlan(**dict(self.task), lab=lab)


def plan_run(
    lab: LabSpec, step_ids: tuple[str, ...], registry: Registry, probes: ProbeFiles, *, preflight: bool = False
) -> Planned:
    """Plans the run of a submission.

    Args:
        lab: with its checks' parameters validated.
        step_ids: of the steps to grade; all of the lab's if empty.
        preflight: the run shall only look.

    Raises:
        UsageError: the lab has no such step.
        ConfigurationError: a check or a probe does not load.
    """
    steps = lab.selected(step_ids)
    if preflight:
        needs, enough = preflight_needs(steps, registry), images_needed(steps, registry)
        return Planned(RunTask(needs=tuple(sorted(needs)), steps=step_ids, enough_images=enough))
    tasks = wanted_probes(steps, registry, probes)
    task = RunTask(
        needs=tuple(sorted(needs_of(steps, registry))),
        steps=step_ids,
        threshold=threshold_of(lab),
        probes=tuple(task.ref for task in tasks),
    )
    return Planned(task, tasks)
