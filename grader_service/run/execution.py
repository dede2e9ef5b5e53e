"""One run of one submission: pods started, learner code run once, evidence collected, everything removed."""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from grader_service import __version__
from grader_service.errors import InfrastructureError, NotBegun
from grader_service.held_out.libraries import import_ahead
from grader_service.held_out.plan import new_seed
from grader_service.host.facts import Gpu, host_facts, usable_cpus
from grader_service.ingest.artifact import Artifact, Prepared, prepare
from grader_service.ingest.size_check import require_fits
from grader_service.model.base import Device
from grader_service.model.discovery import Discovery
from grader_service.model.evidence import (
    MAX_OUTPUT,
    CleanRoom,
    Evidence,
    PodRecord,
    ProbeTask,
    RunRecord,
    RunTask,
    Scan,
)
from grader_service.model.lab import LabSpec
from grader_service.model.measurement import Measurement
from grader_service.run import learner, live, scanning, trusted_pod
from grader_service.run.dialogue import Stopped
from grader_service.run.learner import Found
from grader_service.run.pod_set import PodSet, end_all, space_limits
from grader_service.run.probing import Prober
from grader_service.run.progress import Progress, StageClock
from grader_service.run.scrubbing import Scrubber
from grader_service.run.session import Session
from sandbox.api import RunSpace, SandboxRunner

_FEW_CPUS = 4
"""With fewer, preparing pods for the next run slows this one down."""


@contextlib.contextmanager
def beginning() -> Iterator[None]:
    """Marks failures before any code of the learner's was started: its pod still waits for a first message.

    Raises:
        NotBegun: our side failed.
    """
    try:
        yield
    except InfrastructureError as error:
        raise NotBegun(str(error)) from error


Measure = Callable[[Session], tuple[CleanRoom | None, Measurement | None]]
"""Runs the graph in the clean room and times it, as far as the task needs."""


@dataclass(frozen=True)
class RunOutcome:
    """What a run leaves: evidence, and the graphs that it refers to by digest."""

    evidence: Evidence
    blobs: Mapping[str, bytes]


def execute(
    artifact: Artifact,
    lab: LabSpec,
    task: RunTask,
    runner: SandboxRunner,
    device: Device,
    progress: Progress,
    *,
    run_id: str,
    measure: Measure,
    gpu: Gpu | None = None,
    probes: Sequence[ProbeTask] = (),
    submitter: str | None = None,
    afterwards: ExitStack | None = None,
    preflight: bool = False,
) -> RunOutcome:
    """Runs a submission and collects the evidence that its checks need.

    Args:
        task: parts of the evidence to collect, and what they are collected for.
        device: `cuda` for an official run, `cpu` for a rehearsal.
        gpu: recorded in the evidence; which GPU pods get is the runner's to know.
        submitter: who hands in, by whatever name; None where the content has to stand for somebody.
        afterwards: whoever waits for the outcome closes it once that is out of his hands, and only then are folders and
            scratch volumes removed; the pods have ended by then, but for those of a preflight. None, or a run that
            fails: all is removed at once.
        preflight: somebody waits for a quick look: pods are started before the submission is unpacked, and the record
            names them only where one of them stopped.

    Raises:
        SubmissionRejected: the artifact is unusable; no learner code ran.
        NotBegun: ours, before any code of the learner's was started.
        SandboxUnavailable: ours.
    """
    clock = StageClock(progress)
    with ExitStack() as leaving:
        with beginning():
            space = _opened(leaving, runner, lab, waited_for=preflight)
            clock.start("unpack", "unpacking the submission")
            unpacking = _unpacking(leaving, artifact, space, lab)
            if not preflight:
                unpacking.result()  # what is rejected starts no pod, unless somebody waits for it
            clock.start("start", "starting pods")
            prober = Prober(probes)
            pod_set = PodSet(
                space,
                lab,
                task.needs,
                device,
                gpu,
                probes_graphs=prober.wants_graphs,
                image_digest=runner.facts.image_digest,
            )
            if not preflight:
                _start_others(pod_set)
            prepared = unpacking.result()
        since = time.monotonic()
        scrubber = Scrubber(space.paths)
        meanwhile = partial(_start_others, pod_set) if preflight else None
        found, output = _run_learner(pod_set, prepared, space, clock, scrubber, meanwhile)
        seed = new_seed()
        seen: dict[str, Any] = {}
        versions: dict[str, str] = {}
        if not isinstance(found, Stopped) and found.discovery.defined and prober.wants_learner:
            clock.start("probes", "looking at what your code left behind", limit_s=prober.learner_s)
            prober.visit_learner(pod_set)
        if not isinstance(found, Stopped) and not found.discovery.left_nothing:  # else no other pod has work to do
            if len(pod_set.pods) > 1:
                pod_set.learner.pause()  # from here on its files and its processor time cannot change under the others
            versions.update(found.discovery.versions)
            inventory = _scan(pod_set, found.discovery, space, clock, task.enough_images)
            session = Session(
                pod_set=pod_set,
                found=found,
                inventory=inventory,
                seed=seed,
                clock=clock,
                threshold=task.threshold,
                attempt=task.attempt,
                submitter=submitter or artifact.sha256,
                versions=versions,
            )
            room, measurement = measure(session)
            seen = {"scan": inventory, "clean_room": scrubber.room(room), "measurement": scrubber.refused(measurement)}
            if prober.wants_graphs:
                _probe_graphs(session, prober)
        if not isinstance(found, Stopped):
            seen["discovery"] = scrubber.discovery(found.discovery)
        # Somebody waits for a preflight's answer, which needs nothing of how pods end.
        records = _end(pod_set, clock, leaving if preflight and not isinstance(found, Stopped) else None)
        clock.stop()
        gpu_held_s = pod_set.gpu_held_s(since, records)
        if afterwards is not None:
            afterwards.push(leaving.pop_all())
    facts = runner.facts
    record = RunRecord(
        run_id=run_id,
        grader_version=__version__,
        device=device,
        sandbox=facts.name,
        isolated=facts.isolated,
        image=facts.image,
        image_digest=facts.image_digest,
        engine=facts.engine,
        entry_point=prepared.entry,
        host={
            **host_facts(),
            "cpus_per_arm": len(pod_set.cpus),
            "gpu_access": facts.gpu_access,
            "oci_runtime": facts.oci_runtime,
        },
        gpu=gpu.facts() if gpu is not None else None,
        seed=seed,
        pods=records,
        versions=versions,
        timings_s=clock.seconds,
        learner_limit_s=lab.limits.learner_timeout_s,
        learner_output=output,
        gpu_held_s=gpu_held_s,
    )
    blobs: dict[str, bytes] = {}
    if not isinstance(found, Stopped):
        blobs = {ref.sha256: graph for ref, graph in zip(found.discovery.graphs, found.graphs, strict=True)}
    return RunOutcome(Evidence(run=record, probes=prober.records, **seen), blobs)


def _opened(leaving: ExitStack, runner: SandboxRunner, lab: LabSpec, *, waited_for: bool) -> RunSpace:
    """A space of its own for every try: what an earlier one left behind is never in the way."""
    space = leaving.enter_context(runner.open_run(secrets.token_hex(16), space_limits(lab.limits)))
    if waited_for and len(usable_cpus(lab.limits.max_cpus)) < _FEW_CPUS:
        leaving.enter_context(space.quiet())
    return space


def _unpacking(leaving: ExitStack, artifact: Artifact, space: RunSpace, lab: LabSpec) -> Future[Prepared]:
    """Unpacks in a thread, which ends before the space does."""

    def unpack() -> Prepared:
        prepared = prepare(artifact, space.submission_dir)
        require_fits(space.submission_dir, lab.limits.workspace_mib, lab.limits.workspace_inodes)
        return prepared

    return leaving.enter_context(ThreadPoolExecutor(1, "unpack")).submit(unpack)


def _start_others(pod_set: PodSet) -> None:
    """Starts all but the learner's pod, and what can be done while the learner's code runs."""
    pod_set.start_others()
    if pod_set.reference is not None:
        import_ahead()
    if pod_set.clean_room is not None and pod_set.gpu is not None:
        trusted_pod.begin_gpu(pod_set.clean_room)


def _run_learner(
    pod_set: PodSet,
    prepared: Prepared,
    space: RunSpace,
    clock: StageClock,
    scrubber: Scrubber,
    meanwhile: Callable[[], None] | None,
) -> tuple[Found | Stopped, str]:
    """What the learner's code left behind, and the end of what it printed, by the names that a learner knows."""
    limits = pod_set.lab.limits
    clock.start("learner", "running the submission, top to bottom", limit_s=limits.learner_timeout_s)
    with live.watched(pod_set.learner, scrubber, clock.progress, limits.learner_timeout_s):
        found = learner.discover(pod_set.learner, prepared, space.paths, limits, pod_set.device, meanwhile)
    return found, scrubber.text(pod_set.learner.output())[-MAX_OUTPUT:]  # what it prints later is not of this run


def _end(pod_set: PodSet, clock: StageClock, later: ExitStack | None) -> tuple[PodRecord, ...]:
    """Ends the pods; with `later` when that is closed, and then without their records."""
    if later is not None:
        later.callback(end_all, pod_set.pods)
        return ()
    clock.start("end", "ending pods")
    return end_all(pod_set.pods)


def _probe_graphs(session: Session, prober: Prober) -> None:
    pod_set = session.pod_set
    session.clock.start("graph_probes", "running your DALI graphs on the grader's images")
    for pod in (pod_set.learner, pod_set.reference, pod_set.clean_room):
        if pod is not None:
            pod.end()  # the GPU's memory is the probes'; what these pods had to say was heard
    prober.visit_graphs(pod_set, session.found)


def _scan(pod_set: PodSet, discovery: Discovery, space: RunSpace, clock: StageClock, enough: int) -> Scan | None:
    if pod_set.scanner is None or discovery.dataset_dir.path is None:
        return None
    clock.start("scan", "counting JPEGs", limit_s=scanning.SCAN_S)
    return scanning.scan(pod_set.scanner, discovery.dataset_dir.path, space.paths, enough)
