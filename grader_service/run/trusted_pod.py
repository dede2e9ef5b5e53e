"""Pods that run only our code: they are ready once their imports are done, and they have the runner's GPU."""

from collections.abc import Mapping
from typing import Literal

from grader_service.errors import SandboxUnavailable
from grader_service.host.facts import Gpu
from grader_service.model.base import ShortText, Wire
from grader_service.run.dialogue import Ready, hear, parse, trusted
from sandbox.api import Pod

READY_S = 120.0
GPU_S = 60.0


def await_ready(pod: Pod) -> Mapping[str, str]:
    """Waits until a trusted guest has imported its libraries; returns their versions.

    Raises:
        SandboxUnavailable: the pod ended.
    """
    return trusted(parse(pod, hear(pod, READY_S), Ready), pod).versions


class GpuGiven(Wire):
    """Which GPU a trusted pod has."""

    kind: Literal["gpu"]
    uuid: ShortText | None
    """As CUDA writes it; None where it does not say it."""
    problem: ShortText | None
    """Why CUDA cannot use a GPU."""


def begin_gpu(pod: Pod) -> None:
    """Has a pod of ours begin CUDA and the GPU's decoder, whenever its imports are done: `require_gpu` hears of it."""
    pod.send({"kind": "which_gpu"}, timeout_s=READY_S)  # how the pod ended, if it did, is heard there too


def require_gpu(pod: Pod, held: Gpu) -> None:
    """A pod of ours has the GPU that the runner holds and watches, and CUDA works on it, as `begin_gpu` asked.

    Without a GPU every learner would fail for what is ours; with another one, the measurement would stand beside
    whatever another runner does there. CUDA writes UUIDs without NVML's `GPU-`. For an instance of a partitioned GPU
    they are not compared: which of its two UUIDs CUDA gives depends on the driver.

    Raises:
        SandboxUnavailable: it is not so, or the pod ended.
    """
    message = hear(pod, GPU_S)
    given = trusted(parse(pod, message, GpuGiven), pod)
    if given.problem is not None:
        raise SandboxUnavailable(
            f"expected {held.uuid} to work in pods, but CUDA in one of ours says: {given.problem}; "
            "look at `nvidia-smi` on the host and at `grader doctor`"
        )
    if held.mig is None and given.uuid is not None and _plain(given.uuid) != _plain(held.uuid):
        raise SandboxUnavailable(
            f"expected pods to have {held.uuid}, which this runner holds and watches, but they have {given.uuid}: the "
            "engine counts GPUs differently; `nvidia-ctk cdi generate --device-name-strategy=uuid` names them by UUID"
        )


def _plain(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-")
