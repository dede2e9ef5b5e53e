"""The measuring half of a run: the graph in the clean room, or the learner's own code by what it delivers."""

from collections.abc import Sequence
from dataclasses import replace

from grader_service.held_out.plan import ShardPlan, plan_shard
from grader_service.held_out.shards import PendingShard
from grader_service.measure import acceptance, clean_room, tiers
from grader_service.measure.arms import TimedArm
from grader_service.measure.baselines import not_timed
from grader_service.measure.graph_timing import time_graph
from grader_service.measure.host_effect import Job, measure_host, needs_host_effect, with_host
from grader_service.measure.interference import interference_monitor
from grader_service.measure.kept_references import KeptReferences
from grader_service.model.evidence import CleanRoom
from grader_service.model.measurement import Measurement
from grader_service.run import trusted_pod
from grader_service.run.dialogue import Stopped
from grader_service.run.session import Session
from sandbox.api import Pod

LEAST_IMAGES = 128
_TRIED_IMAGES = 32
"""Enough for a first batch: a reader begins anew where a batch is larger."""


def measure(session: Session, references: KeptReferences | None = None) -> tuple[CleanRoom | None, Measurement | None]:
    """What became of the graph, and what was timed; as much of both as the run's checks need.

    Args:
        references: rates of our reference that were taken between runs; None to measure it in every run.

    Raises:
        SandboxUnavailable: a pod that runs only our code ended.
    """
    pod_set, clock = session.pod_set, session.clock
    room = pod_set.clean_room
    if room is None:
        return None, None
    distinct = session.inventory.distinct if session.inventory else 0
    shard, files = _held_out(session, room, min(max(distinct, LEAST_IMAGES), pod_set.lab.measurement.images))
    measures = pod_set.reference is not None
    carried = _carried(session, room, files, experiments=measures)
    if isinstance(carried, CleanRoom):
        with pod_set.space.quiet():
            return _by_content(session, room, carried, files)
    if not measures:
        return carried.facts, None

    clock.start("experiments", "running the graph on other pictures", limit_s=clean_room.EXPERIMENT_S)
    seen = clean_room.experimented(room)
    if isinstance(seen, Stopped):
        proof = acceptance.not_examined(f"Its process ended: {seen.ending.value.replace('_', ' ')}.", shard.sizes)
    else:
        proof, carried = acceptance.judge(seen.found, shard.sizes), replace(carried, plan=seen.plan)
    if proof.problem is not None:
        return carried.facts, not_timed(session, proof.note).model_copy(update={"graph": proof})
    with pod_set.space.quiet():
        measurement, baselines = time_graph(session, carried, files, shard, references)
        job = Job(files, carried.plan, carried.batch_size, len(pod_set.cpus), pod_set.device)
        measurement = _allowing_for_host(session, room, measurement, job, baselines.timed)
    return carried.facts, measurement.model_copy(update={"graph": proof})


def try_graph(session: Session) -> tuple[CleanRoom | None, None]:
    """What becomes of the graph, and its first batch: nothing is timed, and no code of the learner's is asked."""
    room = session.pod_set.clean_room
    if room is None:
        return None, None
    _, files = _held_out(session, room, _TRIED_IMAGES)
    carried = _carried(session, room, files, experiments=False)
    return (carried if isinstance(carried, CleanRoom) else carried.facts), None


def _held_out(session: Session, room: Pod, images: int) -> tuple[ShardPlan, list[str]]:
    """So many images, in sizes as the learner's have, made while the clean room gets ready; their paths in pods."""
    pod_set = session.pod_set
    session.clock.start("held_out", "making held-out images")
    shard = plan_shard(session.seed, session.sizes, images)
    with PendingShard(shard, pod_set.space.shards_dir) as pending:
        session.versions.update(trusted_pod.await_ready(room))  # imports meanwhile, if it has not done so already
        if pod_set.gpu is not None:
            trusted_pod.require_gpu(room, pod_set.gpu)
        return shard, [f"{pod_set.space.paths.shards}/{name}" for name in pending.names()]


def _carried(session: Session, room: Pod, files: Sequence[str], *, experiments: bool) -> clean_room.Carried | CleanRoom:
    pod_set = session.pod_set
    session.clock.start("clean_room", "rebuilding the DALI graph in the clean room")
    return clean_room.carry(room, session.found, files, len(pod_set.cpus), pod_set.device, experiments=experiments)


def _allowing_for_host(
    session: Session, room: Pod, measurement: Measurement, job: Job, references: Sequence[TimedArm]
) -> Measurement:
    """The measurement; where it is no pass, with what this host can show."""
    if not needs_host_effect(measurement):
        return measurement
    clock = session.clock
    clock.start("host", "measuring what this host can show")
    host = measure_host(room, references, job, session.pod_set.lab.measurement, clock.progress.note)
    return with_host(measurement, host)


def _by_content(
    session: Session, room: Pod, facts: CleanRoom, files: Sequence[str]
) -> tuple[CleanRoom, Measurement | None]:
    """What the learner's own code proves by delivering images, where its graph could not be carried."""
    pod_set, clock = session.pod_set, session.clock
    if not tiers.worth_trying(facts):
        return facts, None
    clock.start("proof", "measuring your own DALI code by what it delivers")
    if pod_set.reference is not None:
        session.versions.update(trusted_pod.await_ready(pod_set.reference))
    with interference_monitor(pod_set.cpus, pod_set.gpu) as watched:
        proven = tiers.measure_by_content(session, watched, facts, files)
    measurement, served = proven.measurement, proven.room.served
    if served is not None and room.alive():
        job = Job(files, proven.job, served.shape[0], len(pod_set.cpus), pod_set.device)
        measurement = _allowing_for_host(session, room, measurement, job, proven.references)
    return proven.room, measurement
