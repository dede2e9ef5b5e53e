"""Which probes the checks of a lab's steps want, each once, with the parameters of every check that asked."""

from collections.abc import Iterable

from checks.contract import is_hidden
from checks.probe_files import ProbeFile, ProbeFiles
from checks.registry import LoadedCheck, Registry
from grader_service.errors import ConfigurationError
from grader_service.model.evidence import ProbeRef, ProbeSite, ProbeTask
from grader_service.model.lab import LabCheck, LabStep


def wanted_probes(steps: Iterable[LabStep], registry: Registry, files: ProbeFiles) -> tuple[ProbeTask, ...]:
    """The probes to run, in the order of the lab's checks.

    Raises:
        ConfigurationError: a check or a probe that is named does not load.
    """
    asked: dict[str, dict[str, dict[str, object]]] = {}
    found: dict[str, ProbeFile] = {}
    for step in steps:
        for check in step.checks:
            loaded = registry.load(check.id)
            for probe_id in loaded.check.probes:
                probe = loaded.probe(probe_id, files)
                if found.setdefault(probe_id, probe).sha256 != probe.sha256:
                    raise ConfigurationError(
                        f"check {check.id!r} of {loaded.distribution} has another probe {probe_id!r} than "
                        f"{', '.join(asked[probe_id])}; rename one of the two"
                    )
                in_learners = probe.site is ProbeSite.LEARNER
                asked.setdefault(probe_id, {})[check.id] = _params(loaded, check, hide=in_learners)
    tasks = []
    for probe_id, params_by_check in asked.items():
        probe = found[probe_id]
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


def _params(loaded: LoadedCheck, check: LabCheck, *, hide: bool) -> dict[str, object]:
    """A lab's parameters for a check; where learner code runs, without those that are hidden from learners."""
    fields = loaded.check.params_model.model_fields
    hidden = {name for name, field in fields.items() if hide and is_hidden(field.json_schema_extra)}
    return loaded.parse_params(check.params).model_dump(mode="json", exclude=hidden)
