"""Whose fault an Xid is, by NVIDIA's own sorting: their device plugin keeps a GPU after application errors."""

from enum import StrEnum

# nvidia/k8s-device-plugin and the DRA driver skip these in their health checks: the program was wrong, not the GPU.
APPLICATION = {
    13: "graphics engine exception: an illegal instruction or address in a kernel",
    31: "memory page fault: an illegal address",
    43: "a channel was stopped after its program's error",
    45: "a channel was removed while it still had work, as when a program is killed",
    68: "NVDEC exception: the video decoder met data that it cannot decode",
    109: "context switch timeout: a kernel that did not end",
}


class Blame(StrEnum):
    """Who has to do something."""

    LEARNER = "learner"
    HARDWARE = "hardware"


def blame(xid: int) -> Blame:
    """The learner for application errors, the hardware for everything else, unknown numbers included."""
    return Blame.LEARNER if xid in APPLICATION else Blame.HARDWARE


def explain(xid: int) -> str:
    """One line on an Xid."""
    return f"Xid {xid}: {APPLICATION.get(xid, 'a fault of the GPU, its memory or its bus')}"
