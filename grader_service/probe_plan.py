"""Which probes the checks of a lab's steps want, each once, with the parameters of every check that asked."""

from collections.abc import Iterable

from checks.api import probes_of
from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.model.evidence import ProbeRef
from grader_service.model.lab import LabStep
from grader_service.model.probe import ProbeTask


def wanted_probes(steps: Iterable[LabStep], registry: Registry, files: ProbeFiles) -> tuple[ProbeTask, ...]:
    """The probes to run, in the order of the lab's checks.

    Raises:
        ConfigurationError: a check or a probe that is named does not load.
    """
    asked: dict[str, dict[str, dict[str, object]]] = {}
    for step in steps:
        for check in step.checks:
            loaded = registry.load(check.id)
            params = loaded.parse_params(check.params).model_dump(mode="json")
            for probe_id in probes_of(loaded.check):
                asked.setdefault(probe_id, {})[check.id] = params
    tasks = []
    for probe_id, params_by_check in asked.items():
        probe = files.load(probe_id)
        ref = ProbeRef(
            id=probe.id,
            version=probe.version,
            site=probe.site,
            sha256=probe.sha256,
            budget_s=probe.budget_s,
            params=params_by_check,
        )
        tasks.append(ProbeTask(ref, probe.source))
    return tuple(tasks)
