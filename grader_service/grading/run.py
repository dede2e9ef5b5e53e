"""One run of one submission: pods started, learner code run once, evidence collected, everything removed."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from grader_service.grading import blocks, clean_room, learner, scanning, shards
from grader_service.grading.baselines import assemble, prepare_baselines
from grader_service.grading.dialogue import Stopped
from grader_service.grading.progress import Progress
from grader_service.grading.stages import StageClock
from grader_service.host import Gpu, host_facts, total_memory_mib, usable_cpus
from grader_service.ingest.artifact import Artifact, prepare
from grader_service.model.evidence import (
    CleanRoom,
    Discovery,
    Evidence,
    Need,
    PodRole,
    RunRecord,
    Scan,
)
from grader_service.model.lab import LabSpec
from grader_service.model.measurement import Measurement
from sandbox.api import Pod, PodSpec, RunSpace, SandboxRunner, Scratch, SpaceLimits

Device = Literal["cuda", "cpu"]
_TRUSTED_MEMORY_MIB = 8192
_SCANNER_MEMORY_MIB = 1024
_LEAST_IMAGES = 128


@dataclass(frozen=True)
class RunOutcome:
    """What a run leaves: evidence, and the graphs that it refers to by digest."""

    evidence: Evidence
    blobs: Mapping[str, bytes]


def execute(
    artifact: Artifact,
    lab: LabSpec,
    needs: Collection[Need],
    runner: SandboxRunner,
    device: Device,
    progress: Progress,
    *,
    run_id: str,
    gpu: Gpu | None = None,
    threshold: float = 1.1,
) -> RunOutcome:
    """Runs a submission and collects the evidence that its checks need.

    Args:
        artifact: the bytes as sent.
        lab: limits and measurement plan.
        needs: parts of the evidence to collect.
        runner: where pods run.
        device: `cuda` for an official run, `cpu` for a rehearsal.
        progress: hears about stages and blocks.
        run_id: stands in the evidence.
        gpu: recorded in the evidence; which GPU pods get is the runner's to know.
        threshold: ratio at which the sequential test aims; stored evidence can be judged against another one.

    Raises:
        SubmissionRejected: the artifact is unusable; no learner code ran.
        SandboxUnavailable: ours.
    """
    clock = StageClock(progress)
    limits = SpaceLimits(lab.limits.workspace_mib, lab.limits.workspace_inodes, lab.limits.shm_mib)
    # A space of its own for every try: what an earlier one left behind is never in the way.
    with runner.open_run(secrets.token_hex(16), limits) as space:
        clock.start("unpack", "unpacking the submission")
        prepared = prepare(artifact, space.submission_dir)
        clock.start("start", "starting pods")
        crew = _Crew(space, lab, needs, device)
        clock.start("learner", "running the submission, top to bottom")
        found = learner.discover(crew.learner, prepared, space.paths, lab.limits, device)
        seed = shards.new_seed()
        evidence = _Collected()
        versions: dict[str, str] = {}
        if not isinstance(found, Stopped):
            crew.learner.pause()  # from here on its files and its processor time cannot change under us
            evidence.discovery = found.discovery
            versions.update(found.discovery.versions)
            evidence.scan = _scan(crew, found.discovery, space, clock)
            evidence.clean_room, evidence.measurement = _measure(
                crew, found, evidence.scan, seed, clock, threshold, versions
            )
        clock.start("end", "ending pods")
        records = tuple(pod.end() for pod in crew.pods)
        clock.stop()
    facts = runner.facts
    record = RunRecord(
        run_id=run_id,
        device=device,
        sandbox=facts.name,
        isolated=facts.isolated,
        image=facts.image,
        image_digest=facts.image_digest,
        engine=facts.engine,
        entry_point=prepared.entry,
        host={**host_facts(), "cpus_per_arm": len(crew.cpus), "gpu_access": facts.gpu_access},
        gpu=gpu.facts() if gpu is not None else None,
        seed=seed,
        pods=records,
        versions=versions,
        timings_s=clock.seconds,
    )
    blobs: dict[str, bytes] = {}
    if not isinstance(found, Stopped):
        blobs = {ref.sha256: graph for ref, graph in zip(found.discovery.graphs, found.graphs, strict=True)}
    whole = Evidence(
        run=record,
        discovery=evidence.discovery,
        scan=evidence.scan,
        clean_room=evidence.clean_room,
        measurement=evidence.measurement,
    )
    return RunOutcome(whole, blobs)


@dataclass
class _Collected:
    discovery: Discovery | None = None
    scan: Scan | None = None
    clean_room: CleanRoom | None = None
    measurement: Measurement | None = None


class _Crew:
    """The pods of one run. All start together, so that their imports overlap with the learner's."""

    def __init__(self, space: RunSpace, lab: LabSpec, needs: Collection[Need], device: Device) -> None:
        self.space = space
        self.lab = lab
        self.cpus = usable_cpus(lab.limits.max_cpus)
        self.device: Device = device
        self.needs = frozenset(needs)
        memory = min(lab.limits.memory_mib, total_memory_mib() * 3 // 4)
        on_gpu = device == "cuda"
        measures = bool(self.needs & {Need.CLEAN_ROOM, Need.MEASUREMENT})
        self.learner = space.start(
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
            )
        )
        self.scanner: Pod | None = None
        if measures or Need.SCAN in self.needs:
            self.scanner = space.start(
                PodSpec(
                    role=PodRole.SCANNER,
                    program="trusted.scanner",
                    memory_mib=_SCANNER_MEMORY_MIB,
                    pids=64,
                    cpus=self.cpus,
                    scratch=Scratch.READ_ONLY,
                )
            )
        self.clean_room = self._trusted(space, PodRole.CLEAN_ROOM, "trusted.clean_room", on_gpu) if measures else None
        self.reference: Pod | None = None
        if Need.MEASUREMENT in self.needs:
            self.reference = self._trusted(space, PodRole.REFERENCE, "trusted.reference", on_gpu)
        self.pods = [pod for pod in (self.learner, self.scanner, self.clean_room, self.reference) if pod is not None]

    def _trusted(self, space: RunSpace, role: PodRole, program: str, on_gpu: bool) -> Pod:  # noqa: FBT001
        return space.start(
            PodSpec(
                role=role,
                program=program,
                memory_mib=min(_TRUSTED_MEMORY_MIB, total_memory_mib() * 3 // 4),
                pids=512,
                cpus=self.cpus,
                shm_mib=2048,
                shards=True,
                gpu=on_gpu,
            )
        )


def _scan(crew: _Crew, discovery: Discovery, space: RunSpace, clock: StageClock) -> Scan | None:
    if crew.scanner is None or discovery.dataset_dir.path is None:
        return None
    clock.start("scan", "counting JPEGs")
    return scanning.scan(crew.scanner, discovery.dataset_dir.path, space.paths)


def _measure(
    crew: _Crew,
    found: learner.Found,
    inventory: Scan | None,
    seed: str,
    clock: StageClock,
    threshold: float,
    versions: dict[str, str],
) -> tuple[CleanRoom | None, Measurement | None]:
    if crew.clean_room is None:
        return None, None
    clock.start("held_out", "making held-out images")
    count = min(max(inventory.distinct if inventory else 0, _LEAST_IMAGES), crew.lab.measurement.images)
    shard = shards.plan_shard(seed, inventory.sizes if inventory else (), count)
    files = [f"{crew.space.paths.shards}/{name}" for name in shards.make_shard(shard, crew.space.shards_dir)]

    clock.start("clean_room", "rebuilding the DALI graph in the clean room")
    versions.update(clean_room.await_ready(crew.clean_room))
    carried = clean_room.carry(crew.clean_room, found, files, len(crew.cpus), crew.device)
    if isinstance(carried, CleanRoom):
        return carried, None
    if crew.reference is None:
        return carried.facts, None

    clock.start("warm_up", "warming up the loaders")
    versions.update(clean_room.await_ready(crew.reference))
    baselines = prepare_baselines(
        crew.learner,
        crew.reference,
        found.discovery,
        carried,
        files,
        shards_path=crew.space.paths.shards,
        plan=crew.lab.measurement,
        cpus=len(crew.cpus),
        device=crew.device,
    )
    clock.start("measure", "timing blocks")
    timed = blocks.measure(carried.arm, baselines.timed, crew.lab.measurement, threshold, clock.progress)
    return carried.facts, assemble(timed, baselines, found.discovery, carried, shard, crew.lab.measurement, crew.device)
