"""Turns items that have to run into runs, few at a time: learners' submissions go first, and a pause takes effect."""

from dataclasses import dataclass, field

import structlog

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.errors import GraderError, StoreUnavailable
from grader_service.model.evidence import RunPlan
from grader_service.model.lab import LabRef, LabSpec
from grader_service.service.kept_labs import kept_lab
from grader_service.service.run_planning import plan_run
from grader_service.store import devices, regrades
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store
from grader_service.store.regrade_runs import Due, dead_letter_run, due_items, release

log = structlog.get_logger(__name__)

_PER_DEVICE = 2
"""Runs under way for each device: one that runs, and one that need not be waited for."""


@dataclass
class ReleaseDeps:
    """What releasing works with."""

    store: Store
    artifacts: ArtifactStore
    registry: Registry
    owner: str
    probes: ProbeFiles = field(default_factory=ProbeFiles)


def release_due(deps: ReleaseDeps) -> int:
    """Releases what may run now; returns how many runs were made.

    Raises:
        StoreUnavailable: the database failed.
    """
    due = due_items(deps.store, in_flight=_PER_DEVICE * max(1, devices.ready(deps.store)), actor=deps.owner)
    if not due:
        return 0
    refs: dict[str, dict[str, LabRef]] = {}
    planned = []
    for item in due:
        if item.batch_id not in refs:
            refs[item.batch_id] = {ref.lab: ref for ref in regrades.batch(deps.store, item.batch_id).labs}
        try:
            planned.append((item, _plan(deps, item, refs[item.batch_id][item.lab])))
        except StoreUnavailable:
            raise
        except GraderError as error:
            log.warning("item_not_released", batch=item.batch_id, submission_id=item.submission_id, error=str(error))
            dead_letter_run(deps.store, item, f"{type(error).__name__}: {error}", deps.owner)
    return release(deps.store, planned)


def _plan(deps: ReleaseDeps, item: Due, ref: LabRef) -> RunPlan:
    lab: LabSpec = kept_lab(deps.store, ref, deps.registry)
    planned = plan_run(lab, item.steps, deps.registry, deps.probes)
    for task in planned.probes:
        deps.artifacts.put(task.source)
    return planned.by(LabRef(sha256=ref.sha256, form=ref.form))
