"""Spares a run whose findings are known: the same bytes were measured before, on a device like this one."""

from collections.abc import Sequence

from grader_service.host import Gpu
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec
from grader_service.store import results
from grader_service.store.engine import Store
from sandbox.api import SandboxFacts


def evidence_of_twin(
    store: Store, runs: Sequence[str], lab: LabSpec, sandbox: SandboxFacts, device: str, gpu: Gpu | None
) -> Evidence | None:
    """What the first of these runs found that a run here and now would find too; None when there is none.

    The image, the isolation, the model of the GPU and the lab's measurement plan must be those of today: a rate of
    another host class, or of another plan, is not this run's.

    Args:
        store: where evidence is kept.
        runs: ids, as `store.twins` finds them.
        lab: by which the submission is graded.
        sandbox: in which the run would be executed.
        device: `cuda` or `cpu`.
        gpu: on which; None for a rehearsal.

    Raises:
        StoreUnavailable: the database failed.
    """
    for run_id in runs:
        stored = results.load_evidence(store, run_id)
        if stored is None:
            continue
        found = Evidence.model_validate_json(stored.document)
        run, measurement = found.run, found.measurement
        model = None if gpu is None else gpu.model
        if (
            measurement is not None
            and measurement.unsteady is None
            and measurement.plan == lab.measurement
            and (run.device, run.sandbox, run.isolated) == (device, sandbox.name, sandbox.isolated)
            and run.image_digest == sandbox.image_digest
            and (run.gpu or {}).get("model") == model
            # Of one that was spared itself, the run that was not is named.
            and run.reused_from is None
        ):
            return found
    return None


def as_own(found: Evidence, run_id: str) -> Evidence:
    """The same evidence under the id of the run that was spared; it held no GPU."""
    changes: dict[str, object] = {
        "run_id": run_id,
        "reused_from": found.run.run_id,
        "timings_s": {},
        "gpu_held_s": None,
    }
    return found.model_copy(update={"run": found.run.model_copy(update=changes)})
