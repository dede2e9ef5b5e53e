"""Deduplicates runs: takes the findings of an earlier one of the same bytes on a device like this one."""

from collections.abc import Mapping, Sequence

from grader_service import __version__
from grader_service.host.facts import Gpu, host_facts, usable_cpus
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec
from grader_service.store import results
from grader_service.store.engine import Store
from sandbox.api import SandboxFacts


def evidence_of_duplicate(
    store: Store, runs: Sequence[str], lab: LabSpec, sandbox: SandboxFacts, device: str, gpu: Gpu | None
) -> Evidence | None:
    """What the first of these runs found that a run here and now would find too; None when there is none.

    The grader, the image, the isolation, the processors and their number, the GPU's model and driver, and the lab's
    measurement plan must be those of today: a rate of another host class, or of another plan, is not this run's.

    Args:
        runs: ids, as `store.duplicates` finds them.
        device: `cuda` or `cpu`.
        gpu: on which; None for a rehearsal.

    Raises:
        StoreUnavailable: the database failed.
    """
    host = {**host_facts(), "cpus_per_arm": len(usable_cpus(lab.limits.max_cpus))}
    here = _host_class(host, None if gpu is None else gpu.facts())
    for run_id in runs:
        stored = results.load_evidence(store, run_id)
        if stored is None:
            continue
        found = Evidence.model_validate_json(stored.document)
        run, measurement = found.run, found.measurement
        if (
            measurement is not None
            and measurement.unsteady is None
            and measurement.plan == lab.measurement
            and run.grader_version == __version__
            and (run.device, run.sandbox, run.isolated) == (device, sandbox.name, sandbox.isolated)
            and run.image_digest == sandbox.image_digest
            and _host_class(run.host, run.gpu) == here
            # Of a run that was deduplicated itself, the one that was executed is named.
            and run.reused_from is None
        ):
            return found
    return None


def _host_class(host: Mapping[str, object], gpu: Mapping[str, object] | None) -> dict[str, object]:
    """What rates depend on, as evidence has it: the processors and the GPU with its driver."""
    on_gpu = {} if gpu is None else {"model": gpu.get("model"), "driver": gpu.get("driver")}
    return {"cpu": host.get("cpu"), "cpus_per_arm": host.get("cpus_per_arm"), **on_gpu}


def as_own(found: Evidence, run_id: str) -> Evidence:
    """The same evidence under the id of the run that was deduplicated; it held its GPU for no time."""
    changes: dict[str, object] = {
        "run_id": run_id,
        "reused_from": found.run.run_id,
        "timings_s": {},
        "gpu_held_s": 0.0 if found.run.device == "cuda" else None,
    }
    return found.model_copy(update={"run": found.run.model_copy(update=changes)})
