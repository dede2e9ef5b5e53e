"""The pods of one run."""

import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

from grader_service.host.facts import Gpu, total_memory_mib, usable_cpus
from grader_service.model.base import Device
from grader_service.model.evidence import Need, PodRecord, PodRole
from grader_service.model.lab import LabSpec, PodLimits
from sandbox.api import Pod, PodSpec, RunSpace, Scratch, SpaceLimits

AHEAD = ("torch", "torchvision", "nvidia.dali.fn", "nvidia.dali.types")
"""What a learner's pod imports while it waits for a run that measures: two seconds of a processor, which a run that
only reads lists would wait for in vain. None of them touches a GPU before it is used."""
_TRUSTED_MEMORY_MIB = 8192
_SCANNER_MEMORY_MIB = 2048


class PodSet:
    """The pods of one run: the learner's, and the others from `start_others` on, whose imports overlap with it."""

    def __init__(
        self,
        space: RunSpace,
        lab: LabSpec,
        needs: Collection[Need],
        device: Device,
        gpu: Gpu | None,
        *,
        probes_graphs: bool = False,
        image_digest: str | None = None,
    ) -> None:
        self.space = space
        self.gpu = gpu if device == "cuda" else None
        self.lab = lab
        self.image_digest = image_digest
        self.cpus = usable_cpus(lab.limits.max_cpus)
        self.device: Device = device
        self.needs = frozenset(needs)
        memory = min(lab.limits.memory_mib, total_memory_mib() * 3 // 4)
        on_gpu = device == "cuda"
        self.pods: list[Pod] = []
        self.scanner: Pod | None = None
        self.clean_room: Pod | None = None
        self.reference: Pod | None = None
        self.probe_room: Pod | None = None
        self._probes_graphs = probes_graphs
        self._began: dict[int, float] = {}
        self.learner = self._start(
            PodSpec(
                role=PodRole.LEARNER,
                program="learner.main",
                memory_mib=memory,
                pids=lab.limits.pids,
                cpus=self.cpus,
                shm_mib=lab.limits.shm_mib,
                scratch=Scratch.READ_WRITE,
                submission=True,
                shards=True,
                gpu=on_gpu,
                imports=AHEAD if self._measures else (),
            )
        )

    def start_others(self) -> None:
        """Starts every other pod.

        Raises:
            SandboxUnavailable: one did not start.
        """
        if self._measures or Need.SCAN in self.needs:
            self.scanner = self._start(
                PodSpec(
                    role=PodRole.SCANNER,
                    program="trusted.scanner",
                    memory_mib=_SCANNER_MEMORY_MIB,
                    pids=64,
                    cpus=self.cpus,
                    scratch=Scratch.READ_ONLY,
                )
            )
        if self._measures:
            self.clean_room = self._trusted(PodRole.CLEAN_ROOM, "trusted.clean_room")
        if Need.MEASUREMENT in self.needs:
            self.reference = self._trusted(PodRole.REFERENCE, "trusted.reference")
        if self._probes_graphs:
            self.probe_room = self.start_probe_room()

    def start_probe_room(self) -> Pod:
        """A pod for probes on graphs; another one when a graph or a probe has ended the last."""
        return self._trusted(PodRole.PROBE_ROOM, "trusted.probe_room")

    @property
    def _measures(self) -> bool:
        return not self.needs.isdisjoint((Need.CLEAN_ROOM, Need.MEASUREMENT))

    def gpu_held_s(self, since: float, records: Sequence[PodRecord]) -> float | None:
        """Seconds from `since` until the last pod with the GPU ended; None in a rehearsal.

        Args:
            since: of the monotonic clock.
            records: of `pods`, in their order.
        """
        if self.device == "cpu":
            return None
        pods = zip(self.pods, records, strict=True)
        ends = [self._began[id(pod)] + record.wall_s for pod, record in pods if pod.spec.gpu]
        return round(max(0.0, max(ends) - since), 3)

    def _start(self, spec: PodSpec) -> Pod:
        pod = self.space.start(spec)
        self._began[id(pod)] = time.monotonic()
        self.pods.append(pod)
        return pod

    def _trusted(self, role: PodRole, program: str) -> Pod:
        return self._start(trusted_spec(role, program, self.cpus, on_gpu=self.device == "cuda"))


def end_all(pods: Sequence[Pod]) -> tuple[PodRecord, ...]:
    """Ends pods beside each other: most of it is waiting for the engine, and for the driver to let go of memory."""
    with ThreadPoolExecutor(len(pods)) as threads:
        return tuple(threads.map(lambda pod: pod.end(), pods))


def space_limits(limits: PodLimits) -> SpaceLimits:
    """Sizes of the scratch that a run of a lab with these limits gets."""
    return SpaceLimits(limits.workspace_mib, limits.workspace_inodes, limits.shm_mib)


def trusted_spec(role: PodRole, program: str, cpus: Sequence[int], *, on_gpu: bool) -> PodSpec:
    """A pod that runs our own code on held-out images."""
    return PodSpec(
        role=role,
        program=program,
        memory_mib=min(_TRUSTED_MEMORY_MIB, total_memory_mib() * 3 // 4),
        pids=512,
        cpus=tuple(cpus),
        shm_mib=2048,
        shards=True,
        gpu=on_gpu,
    )
