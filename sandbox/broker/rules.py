"""What the pod broker starts, and for whom: every bound on what a runner may ask, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from grader_service.model.evidence import PodRole
from sandbox.broker.wire import Limits, PodAsked
from sandbox.guest_code import GUEST_SOURCE

_WITH_GPU = frozenset(PodRole) - {PodRole.SCANNER}
_RUN = "\ndef run(link: Link) -> None:\n"


class NotAllowed(Exception):
    """What was asked is against the rules: what was expected, what came, and what to do."""


@dataclass(frozen=True)
class Bounds:
    """The most that one pod, one run space, and all of them together may have."""

    memory_mib: int
    """Of a pod, of its shared memory, and of each scratch volume."""
    pids: int
    inodes: int
    pods: int
    runs: int
    cpus: frozenset[int]
    gpu: bool
    """Whether there is one to give."""


def require_limits(limits: Limits, bounds: Bounds) -> None:
    """Refuses scratch that is too large.

    Raises:
        NotAllowed: it is.
    """
    _at_most({"workspace_mib": limits.workspace_mib, "shm_mib": limits.shm_mib}, bounds.memory_mib, "MEMORY_MIB")
    _at_most({"workspace_inodes": limits.workspace_inodes}, bounds.inodes, "INODES")


def require_pod(pod: PodAsked, bounds: Bounds) -> None:
    """Refuses a pod that none of our code would ask for, or that is too large.

    Raises:
        NotAllowed: it is.
    """
    if pod.program not in programs():
        raise NotAllowed(f"program: expected one of {', '.join(sorted(programs()))}, got {pod.program!r}")
    _at_most({"memory_mib": pod.memory_mib, "shm_mib": pod.shm_mib}, bounds.memory_mib, "MEMORY_MIB")
    _at_most({"pids": pod.pids}, bounds.pids, "PIDS")
    if not bounds.cpus.issuperset(pod.cpus):
        raise NotAllowed(f"cpus: expected some of {sorted(bounds.cpus)}, got {list(pod.cpus)[:100]}")
    if pod.gpu and pod.role not in _WITH_GPU:
        raise NotAllowed(f"gpu: a {pod.role.value} pod gets none")
    if pod.gpu and not bounds.gpu:
        raise NotAllowed("gpu: this broker has none to give; set its GRADER_GPU to that of its runner")


@cache
def programs() -> frozenset[str]:
    """Guest programs: the modules that boot.py runs."""
    return frozenset(
        ".".join(path.relative_to(GUEST_SOURCE).with_suffix("").parts)
        for path in GUEST_SOURCE.rglob("*.py")
        if _RUN in path.read_text()
    )


def _at_most(asked: Mapping[str, int], most: int, setting: str) -> None:
    for name, value in asked.items():
        if value > most:
            raise NotAllowed(
                f"{name}: expected at most {most}, got {value}; where a lab needs it, raise GRADER_POD_MOST_{setting} "
                "of the pod broker"
            )
