"""Times our fair reference loader by itself: a pod of ours, images of ours, and no learner's code anywhere."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader_service.errors import SandboxUnavailable
from grader_service.held_out.plan import new_seed, plan_shard
from grader_service.held_out.shards import PendingShard
from grader_service.host.facts import Gpu, usable_cpus
from grader_service.measure.arms import ReferenceArm
from grader_service.measure.host_watch import HostWatch, processor_ticks
from grader_service.measure.interference import interference_monitor
from grader_service.model.base import Device
from grader_service.model.evidence import ImageSize, PodRole
from grader_service.model.lab import LabSpec
from grader_service.model.measurement import Arm, LoaderSettings, Window
from grader_service.run.pod_set import space_limits, trusted_spec
from grader_service.run.trusted_pod import await_ready
from sandbox.api import Pod, SandboxRunner

WINDOWS = 3
MOST_OTHERS = 0.2
"""Share of the processors' time that others may use while our pod is frozen: less changes a rate by less."""
_LOOK_S = 0.25
_MOST_S = 30.0
"""To warm up and for all windows. Learners choose the job: one whose batches take this long is not worth a wait."""


@dataclass(frozen=True)
class ReferenceTask:
    """What the reference has to do, as one run had it."""

    lab: LabSpec
    """Its image, limits and window length."""
    image_digest: str | None
    """Of the image that the run had under that name."""
    cpus: tuple[int, ...]
    plan: Mapping[str, object]
    """The job that the clean room derived from the graph of that run."""
    settings: LoaderSettings
    sizes: Sequence[ImageSize]
    """Of the learner's images; the reference gets images of ours with sizes drawn from them."""
    images: int


@dataclass(frozen=True)
class TimedReference:
    """What the reference did."""

    windows: tuple[Window, ...]
    mean_pixels: float
    """Of the images that it did it with."""


def time_reference(
    runner: SandboxRunner, task: ReferenceTask, device: Device, gpu: Gpu | None
) -> TimedReference | None:
    """Windows of the loader after it was warmed up; None when the host contaminated them.

    Raises:
        SandboxUnavailable: ours, or the job takes too long, or image and processors are not the task's any more.
    """
    runner = runner.of_image(task.lab.image)
    if usable_cpus(task.lab.limits.max_cpus) != task.cpus or runner.facts.image_digest != task.image_digest:
        raise SandboxUnavailable("the lab image or the processors are others than the runs of this job had")
    with runner.open_run(secrets.token_hex(16), space_limits(task.lab.limits)) as space:
        spec = trusted_spec(PodRole.REFERENCE, "trusted.reference", task.cpus, on_gpu=device == "cuda")
        pod = space.start(spec)
        shard = plan_shard(new_seed(), task.sizes, task.images)
        with PendingShard(shard, space.shards_dir) as pending:
            await_ready(pod)
            files = [f"{space.paths.shards}/{name}" for name in pending.names()]
        until = time.monotonic() + _MOST_S
        arm = ReferenceArm.prepare(pod, Arm.FAIR, task.settings, files, task.plan, device, timeout_s=_MOST_S)
        with interference_monitor(task.cpus, gpu if device == "cuda" else None) as watched:
            windows = _windows(arm, pod, task, watched.watch, until)
        pod.end()
    return None if windows is None else TimedReference(windows, shard.mean_pixels)


def _windows(
    arm: ReferenceArm, pod: Pod, task: ReferenceTask, watch: HostWatch, until: float
) -> tuple[Window, ...] | None:
    """Windows with a look at the others before, between and after them; None when anything contaminated one of them."""

    def window(length_s: float) -> Window:
        # Waited for twice, for its first mark and its end.
        return arm.window(arm.batches_for(length_s), timeout_s=max(0.1, (until - time.monotonic()) / 2))

    window(0.0)  # for its pace; not counted
    watch.begin()
    others = [others_share(pod, task.cpus)]
    windows = []
    for _ in range(WINDOWS):
        windows.append(window(task.lab.measurement.block_s))
        others.append(others_share(pod, task.cpus))
    if watch.contamination() is not None or max(others) > MOST_OTHERS:
        return None
    return tuple(windows)


def others_share(
    pod: Pod, cpus: Sequence[int], read: Callable[[], str] = lambda: Path("/proc/stat").read_text()
) -> float:
    """Share of these processors' time that is used while our pod is frozen: by other workers, other pods, anybody.

    In a run every arm suffers alike from them. A rate that is kept would be too low for a quiet hour, and let a graph
    look better than it is.
    """
    pod.pause()
    try:
        before = processor_ticks(cpus, read())
        time.sleep(_LOOK_S)
        busy, _, total = (now - then for now, then in zip(processor_ticks(cpus, read()), before, strict=True))
    finally:
        pod.resume()
    return busy / total if total else 0.0
