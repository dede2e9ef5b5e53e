"""Times our fair reference loader by itself: a pod of ours, images of ours, and no learner's code anywhere."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader_service.grading.arms import prepare_reference
from grader_service.grading.clean_room import await_ready
from grader_service.grading.crew import Device, space_limits, trusted_spec
from grader_service.grading.lookout import lookout
from grader_service.held_out.plan import new_seed, plan_shard
from grader_service.held_out.shards import begin_shard
from grader_service.host import Gpu, usable_cpus
from grader_service.model.evidence import ImageSize, PodRole
from grader_service.model.lab import LabSpec
from grader_service.model.measurement import Arm, LoaderSettings, Window
from sandbox.api import SandboxRunner

WINDOWS = 3
_MOST_S = 20.0
"""For all windows together. Learners choose the job: one whose batches take this long is not worth a wait to others."""


@dataclass(frozen=True)
class ReferenceTask:
    """What the reference has to do, as one run had it."""

    lab: LabSpec
    """Its image, limits and window length."""
    plan: Mapping[str, object]
    """The job that the clean room derived from the graph of that run."""
    settings: LoaderSettings
    sizes: Sequence[ImageSize]
    """Of the learner's images; the reference gets images of ours with sizes drawn from them."""
    images: int


def time_reference(
    runner: SandboxRunner, task: ReferenceTask, device: Device, gpu: Gpu | None
) -> tuple[Window, ...] | None:
    """Windows of the loader after it was warmed up; None when the host spoiled them.

    Raises:
        SandboxUnavailable: ours, or the job takes too long.
    """
    cpus = usable_cpus(task.lab.limits.max_cpus)
    runner = runner.of_image(task.lab.image)
    with runner.open_run(secrets.token_hex(16), space_limits(task.lab.limits)) as space:
        spec = trusted_spec(PodRole.REFERENCE, "trusted.reference", cpus, on_gpu=device == "cuda")
        pod = space.start(spec)
        shard = plan_shard(new_seed(), task.sizes, task.images)
        with begin_shard(shard, space.shards_dir, threads=len(cpus)) as pending:
            await_ready(pod)
            files = [f"{space.paths.shards}/{name}" for name in pending.names()]
        arm = prepare_reference(pod, Arm.FAIR, task.settings, files, task.plan, device)
        length_s = task.lab.measurement.block_s
        with lookout(cpus, gpu if device == "cuda" else None) as watched:
            until = time.monotonic() + _MOST_S
            arm.window(arm.batches_for(0.0), timeout_s=_MOST_S)  # for its pace; not counted
            watched.watch.begin()
            windows = [
                arm.window(arm.batches_for(length_s), timeout_s=max(0.1, until - time.monotonic()))
                for _ in range(WINDOWS)
            ]
            spoiled = watched.watch.spoiled()
        pod.end()
    return tuple(windows) if spoiled is None else None
