"""The sandbox's policy on Kubernetes as one pure function: a pod's specification in, a `batch/v1` Job out."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader_service.errors import ConfigurationError
from sandbox.api import PodSpec, Scratch
from sandbox.docker.options import (
    GUEST_PATHS,
    GUEST_UID,
    LABEL,
    ROLE_LABEL,
    STATE_LABEL,
    PodFolders,
    guest_command,
    guest_environment,
    shown_folders,
)
from sandbox.gpu_access import GpuAccess
from sandbox.seccomp import profile_text

POD_LABEL = "org.grader.pod"
RUN_ANNOTATION = "org.grader.run-id"
"""The whole run id, of which the label may hold a digest only."""
CONTAINER = "guest"
SECCOMP_FOLDER = "grader"
"""Below the kubelet's own folder of profiles."""
Document = dict[str, Any]
GRACE_S = 1
"""Never 0: with 0 the API server forgets a pod before its node has ended it."""
FORGET_S = 900
"""A finished Job that nobody removed goes by itself after this time."""
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
# dash counts 512-byte blocks.
_LIMITS = 'ulimit -c 0; if [ "$1" -gt 0 ]; then ulimit -f "$1"; fi; shift; exec "$@"'
_BLOCKS_PER_MIB = 2048


@dataclass(frozen=True)
class Site:
    """What this runner's cluster and node are."""

    namespace: str
    node: str
    """Name of the node on which the runner itself runs: its pods share folders with it."""
    runtime_class: str | None = None
    priority_class: str | None = None


@dataclass(frozen=True)
class ScratchFolders:
    """Host folders on which the run's tmpfs are mounted, and the largest file that fits into one of them."""

    workspace: Path
    tmp: Path
    shm: Path
    largest_mib: int


def job_manifest(
    spec: PodSpec,
    *,
    site: Site,
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    image: str,
    folders: PodFolders,
    scratch: ScratchFolders,
    gpu: GpuAccess | None,
    deadline_s: int,
) -> dict[str, Any]:
    """The Job whose one pod is this pod.

    What the API cannot say stands elsewhere: number of processes and CPU set in `pod_cgroup`, no network in the
    namespace's NetworkPolicy.

    Args:
        name: of the Job, a DNS label.
        gpu: as `kubernetes_gpu` gives it; the GPU is never requested here, since the runner holds it already.
        deadline_s: seconds after which the cluster ends the pod, whatever became of its runner.
    """
    mounts: list[dict[str, Any]] = []
    volumes: list[dict[str, Any]] = []

    def mount(volume: str, guest: str, source: Mapping[str, Any], *, read_only: bool) -> None:
        volumes.append({"name": volume, **source})
        mounts.append({"name": volume, "mountPath": guest, "readOnly": read_only})

    for volume, host, guest in shown_folders(spec, folders):
        mount(volume, guest, _folder(host), read_only=True)
    if spec.scratch is Scratch.NONE:
        mount("tmp", GUEST_PATHS.tmp, _memory(256), read_only=False)
        mount("shm", GUEST_PATHS.shm, _memory(spec.shm_mib), read_only=False)
    else:
        read_only = spec.scratch is Scratch.READ_ONLY
        mount("workspace", GUEST_PATHS.workspace, _folder(scratch.workspace), read_only=read_only)
        mount("tmp", GUEST_PATHS.tmp, _folder(scratch.tmp), read_only=read_only)
        mount("shm", GUEST_PATHS.shm, _folder(scratch.shm), read_only=read_only)
    # The kubelet mounts a writable file of its own, /dev/termination-log, without a cap: no file may outgrow scratch.
    largest_mib = 0 if spec.scratch is Scratch.NONE else scratch.largest_mib + 1
    environment = guest_environment(spec, gpu)
    pod_spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "nodeName": site.node,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostNetwork": False,
        "hostPID": False,
        "hostIPC": False,
        "shareProcessNamespace": False,
        "hostname": "pod",
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": GUEST_UID,
            "runAsGroup": GUEST_UID,
            "seccompProfile": {"type": "Localhost", "localhostProfile": seccomp_path()},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": limited(guest_command(spec.program), largest_mib),
                "env": [{"name": key, "value": value} for key, value in sorted(environment.items())],
                "workingDir": GUEST_PATHS.workspace if spec.scratch is not Scratch.NONE else "/",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "privileged": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                # No CPU limit and hardly a request: the pods of a run share the cores that their runner requested.
                "resources": {
                    "requests": {"cpu": "10m", "memory": f"{spec.memory_mib}Mi"},
                    "limits": {"memory": f"{spec.memory_mib}Mi"},
                },
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }
    runtime_class = (gpu.runtime if gpu else None) or site.runtime_class
    if runtime_class is not None:
        pod_spec["runtimeClassName"] = runtime_class
    if site.priority_class is not None:
        pod_spec["priorityClassName"] = site.priority_class
    marks = {**labels, ROLE_LABEL: spec.role.value, POD_LABEL: name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": site.namespace,
            "labels": marks,
            "annotations": dict(annotations),
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": deadline_s,
            "ttlSecondsAfterFinished": FORGET_S,
            "template": {"metadata": {"labels": marks, "annotations": dict(annotations)}, "spec": pod_spec},
        },
    }


def kubernetes_gpu(uuid: str, runtime_class: str | None) -> GpuAccess:
    """How a pod gets the GPU that its runner holds: by a RuntimeClass with NVIDIA's hook.

    A CDI annotation on the pod would be the other way, but a kubelet hands an engine only those of device plugins.

    Raises:
        ConfigurationError: there is no RuntimeClass.
    """
    if runtime_class is None:
        raise ConfigurationError(
            f"pods get {uuid} by a RuntimeClass; expected its name in GRADER_KUBERNETES_RUNTIME_CLASS "
            "(deploy/kubernetes has one, `grader-gpu`)"
        )
    return GpuAccess(
        "nvidia-runtime",
        runtime=runtime_class,
        environment={"NVIDIA_VISIBLE_DEVICES": uuid, "NVIDIA_DRIVER_CAPABILITIES": "compute,video"},
    )


def run_labels(run_id: str, node: str, state_dir: Path) -> dict[str, str]:
    """Labels of everything that belongs to a run; a path and some run ids are no label values, so digests stand."""
    value = run_id if _LABEL_VALUE.fullmatch(run_id) else f"sha256-{_digest(run_id)}"
    return {LABEL: value, STATE_LABEL: state_label(node, state_dir)}


def state_label(node: str, state_dir: Path) -> str:
    """Digest that names one state folder of one node."""
    return _digest(f"{node}:{state_dir}")


def job_name(run_id: str, number: int, role: str) -> str:
    """A DNS label that no other pod has; run ids may differ in case only."""
    return f"grader-{_digest(run_id)[:16]}-{number}-{role.replace('_', '-')}"


def seccomp_path() -> str:
    """Where the kubelet finds the profile; named by its content, so that an older one is never taken for it."""
    return f"{SECCOMP_FOLDER}/{hashlib.sha256(profile_text().encode()).hexdigest()[:16]}.json"


def limited(command: Sequence[str], largest_mib: int) -> list[str]:
    """The command without core dumps and, for `largest_mib` above 0, with a cap on every file's size in MiB."""
    return ["/bin/sh", "-c", _LIMITS, "sh", str(largest_mib * _BLOCKS_PER_MIB), *command]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _folder(host: Path) -> dict[str, Any]:
    return {"hostPath": {"path": str(host), "type": "Directory"}}


def _memory(size_mib: int) -> dict[str, Any]:
    return {"emptyDir": {"medium": "Memory", "sizeLimit": f"{size_mib}Mi"}}
