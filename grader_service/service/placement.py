"""Which labs a worker leaves to others, because its device is not what they ask for."""

from collections.abc import Iterable, Mapping

from grader_service.host.facts import Gpu
from grader_service.model.lab import LabSpec, Placement


def unfit(wanted: Placement, gpu: Gpu, cpus: int) -> str | None:
    """Why runs of a lab must not go to this device, whose worker may use so many cores; None when they may."""
    if wanted.gpu_models and not any(_names(part.casefold(), gpu) for part in wanted.gpu_models):
        return f"it asks for a GPU of {' or '.join(wanted.gpu_models)}, this is {gpu.model}"
    if gpu.memory_mib < wanted.gpu_memory_mib:
        return f"it asks for {wanted.gpu_memory_mib} MiB of GPU memory, this GPU has {gpu.memory_mib}"
    if cpus < wanted.cpus:
        return f"it asks for {wanted.cpus} cores, this worker may use {cpus}"
    return None


def _names(part: str, gpu: Gpu) -> bool:
    """Whether this part of a name is that of the device.

    What names a whole GPU does not name an instance of it: a seventh of an H100 is not what a lab that asks for an H100
    was tried on. Instances are asked for by `MIG` or their profile.
    """
    model = gpu.model.casefold()
    if gpu.mig is None:
        return part in model
    return part in model and part not in model.partition(" mig ")[0]


def left_to_others(labs: Iterable[LabSpec], gpu: Gpu | None, cpus: int) -> Mapping[str, str]:
    """Ids of the labs that this worker does not serve, with the reason; none for a worker that rehearses."""
    if gpu is None:
        return {}
    reasons = {lab.id: unfit(lab.placement, gpu, cpus) for lab in labs}
    return {lab_id: reason for lab_id, reason in reasons.items() if reason is not None}
