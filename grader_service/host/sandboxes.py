"""Opens the sandbox that a command or a worker runs pods in, and the broker that starts them for it."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from grader_service.errors import ConfigurationError
from grader_service.host.facts import Gpu, total_memory_mib
from grader_service.model.lab import LabSpec
from grader_service.settings import Settings
from grader_service.state_folder import require_own
from sandbox.api import SandboxRunner
from sandbox.gpu_access import GpuName

if TYPE_CHECKING:
    from sandbox.broker.server import PodBroker
    from sandbox.docker.runner import DockerRunner

_MOST_PIDS, _MOST_INODES = 4096, 2_000_000


def open_runner(
    kind: Literal["docker", "kubernetes", "process"], image: str, settings: Settings, gpu: Gpu | None
) -> SandboxRunner:
    """A runner of pods.

    Args:
        kind: `process` has no isolation.
        image: of the lab; where the settings name one, that one is taken for every lab.
        gpu: the one that pods get; None for rehearsals.

    Raises:
        ConfigurationError: the state folder is another user's, or Kubernetes without a node's name or its client.
        SandboxUnavailable: the engine, the image or the GPU cannot be had.
    """
    require_own(settings.state_dir)
    if kind == "process":
        from sandbox.process.runner import ProcessRunner  # noqa: PLC0415 - only the runner in use is imported

        python = sys.executable if settings.lab_python is None else settings.lab_python
        uuid = gpu.uuid if gpu is not None else None
        return ProcessRunner(settings.state_dir, python=python, lab_data=settings.lab_data, gpu=uuid)
    if kind == "kubernetes":
        return _on_kubernetes(image, settings, gpu)
    if settings.pod_broker is not None:
        from sandbox.broker.client import BrokerRunner  # noqa: PLC0415

        any_lab = settings.lab_image is not None
        runner = BrokerRunner(settings.pod_broker, settings.lab_image or image, settings.state_dir, any_lab=any_lab)
        if settings.lab_data not in (None, runner.lab_data):
            raise ConfigurationError(
                f"GRADER_LAB_DATA: expected the pod broker's ({runner.lab_data}), which gives pods the lab's data, "
                f"got {settings.lab_data}; set it there (with compose: GRADER_LAB_DATA={settings.lab_data} make up)"
            )
        if settings.oci_runtime not in ("", runner.facts.oci_runtime):
            raise ConfigurationError(
                f"GRADER_OCI_RUNTIME: expected the pod broker's ({runner.facts.oci_runtime}), which starts pods, got "
                f"{settings.oci_runtime}; set it there (with compose: GRADER_OCI_RUNTIME={settings.oci_runtime} "
                "make up)"
            )
        return runner
    return _on_docker(image, settings, gpu, shared=False)


def open_broker(labs: Sequence[LabSpec], settings: Settings, gpu: Gpu | None) -> "PodBroker":
    """What starts pods for a runner that has no engine.

    Args:
        labs: those that are installed: their images, or the one that the settings name for every lab, and their limits,
            below which no bound is that the settings do not name.
        gpu: the one that pods get; None for rehearsals.

    Raises:
        ConfigurationError: as `open_runner`.
        SandboxUnavailable: as `open_runner`.
    """
    from sandbox.broker.rules import Bounds  # noqa: PLC0415
    from sandbox.broker.server import PodBroker  # noqa: PLC0415

    require_own(settings.state_dir)
    of_labs = [lab.limits for lab in labs]
    memory = (max(limits.memory_mib, limits.shm_mib, limits.workspace_mib) for limits in of_labs)
    bounds = Bounds(
        memory_mib=settings.pod_most_memory_mib or max(total_memory_mib(), *memory),
        pids=settings.pod_most_pids or max(_MOST_PIDS, *(limits.pids for limits in of_labs)),
        inodes=settings.pod_most_inodes or max(_MOST_INODES, *(limits.workspace_inodes for limits in of_labs)),
        pods=settings.pod_most_pods,
        runs=settings.pod_most_runs,
        cpus=frozenset(os.sched_getaffinity(0)),
        gpu=gpu is not None,
    )
    allowed = tuple(dict.fromkeys(lab.image for lab in labs)) if settings.lab_image is None else (settings.lab_image,)
    if not allowed:
        raise ConfigurationError("no lab is installed that can be read, so that no image is known: `grader labs list`")
    peers = {os.geteuid()} | ({settings.pod_runner_uid} if settings.pod_runner_uid is not None else set())
    runner = _on_docker(allowed[0], settings, gpu, shared=True)
    return PodBroker(runner, allowed, bounds, frozenset(peers))


def _on_docker(image: str, settings: Settings, gpu: Gpu | None, *, shared: bool) -> "DockerRunner":
    from sandbox.docker.pod_uids import PodUids  # noqa: PLC0415
    from sandbox.docker.runner import DockerRunner  # noqa: PLC0415

    if settings.pod_uid_last < settings.pod_uid_first:
        raise ConfigurationError(
            f"GRADER_POD_UID_LAST: expected at least GRADER_POD_UID_FIRST ({settings.pod_uid_first}), "
            f"got {settings.pod_uid_last}"
        )

    return DockerRunner(
        settings.lab_image or image,
        settings.state_dir,
        gpu=gpu_name(gpu) if gpu is not None else None,
        lab_data=settings.lab_data,
        any_lab=settings.lab_image is not None,
        runtime=settings.oci_runtime or None,
        uids=PodUids(settings.lock_dir, settings.pod_uid_first, settings.pod_uid_last),
        shared=shared,
    )


def gpu_name(gpu: Gpu) -> GpuName:
    """What engines may call it."""
    minor = gpu.index if gpu.minor is None else gpu.minor
    return GpuName(gpu.uuid, gpu.index, minor, None if gpu.mig is None else gpu.mig.index)


def _on_kubernetes(image: str, settings: Settings, gpu: Gpu | None) -> SandboxRunner:
    if settings.node_name is None:
        raise ConfigurationError(
            "GRADER_SANDBOX=kubernetes needs GRADER_NODE_NAME, the node on which this runner runs; "
            "in a manifest it is the field spec.nodeName"
        )
    try:
        from sandbox.kubernetes.manifests import Site  # noqa: PLC0415
        from sandbox.kubernetes.runner import KubernetesRunner  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"GRADER_SANDBOX=kubernetes needs the extra grader-service[kubernetes]: {error}"
        ) from error
    runtime, priority = settings.kubernetes_runtime_class, settings.kubernetes_priority_class
    site = Site(settings.kubernetes_namespace, settings.node_name, runtime, priority)
    return KubernetesRunner(
        settings.lab_image or image,
        settings.state_dir,
        site,
        gpu=gpu.uuid if gpu is not None else None,
        lab_data=settings.lab_data,
        any_lab=settings.lab_image is not None,
    )
