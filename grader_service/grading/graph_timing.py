"""Times a carried graph against the baselines: beside a kept reference first, where one is fresh, or in full."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader_service.grading import blocks, clean_room
from grader_service.grading.baselines import Baselines, add_references, assemble, own_loader
from grader_service.grading.clean_room import Carried
from grader_service.grading.comparison import fair_settings
from grader_service.grading.kept_references import JobKey
from grader_service.grading.lookout import Lookout, lookout
from grader_service.grading.reference_run import ReferenceTask
from grader_service.grading.session import Session
from grader_service.held_out.plan import ShardPlan
from grader_service.model.measurement import Arm, Block, KeptReference, Measurement


@dataclass(frozen=True)
class GraphTiming:
    """What was measured of a graph, and the arms that did it."""

    measurement: Measurement
    baselines: Baselines


def time_graph(session: Session, carried: Carried, files: Sequence[str], shard: ShardPlan) -> GraphTiming:
    """Warms the loaders up and takes blocks until the test decides.

    Args:
        session: of the run.
        carried: the graph.
        files: the held-out images, as pods see them.
        shard: the plan that these were made by.

    Raises:
        InfrastructureError: a trusted pod ended, or the GPU is gone.
    """
    crew, clock, plan = session.crew, session.clock, session.crew.lab.measurement
    clock.start("warm_up", "warming up the loaders")
    fair = fair_settings(plan, len(crew.cpus), carried.batch_size)
    key = JobKey.of(crew.image_digest, carried.plan, fair, crew.cpus, plan.block_s)
    kept = _known(session, carried, key, shard)
    baselines = own_loader(
        crew.learner,
        session.found.discovery,
        carried,
        shards_path=crew.space.paths.shards,
        cpus=len(crew.cpus),
        fair=fair,
    )
    screened: tuple[Block, ...] = ()
    with lookout(crew.cpus, crew.gpu) as watched:
        timed: blocks.Timed | None = None
        if kept is not None and _may_screen(baselines):
            clock.start("measure", "timing blocks beside the kept reference")
            timed = _screen(session, carried, baselines, kept, watched)
            if timed.decision is None and Arm.DALI not in timed.lost:
                screened, timed = tuple(timed.blocks), None
                clock.start("warm_up", "warming up the loaders")
        if timed is None:
            kept = None
            assert crew.reference is not None  # noqa: S101 - a measurement has one
            session.versions.update(clean_room.await_ready(crew.reference))
            add_references(baselines, crew.reference, carried, files, crew.device)
            clock.start("measure", "timing blocks")
            timed = blocks.measure(
                carried.arm,
                baselines.timed,
                plan,
                session.threshold,
                clock.progress,
                attempt=session.attempt,
                lookout=watched,
            )
    measurement = assemble(
        timed, baselines, session.found.discovery, carried, shard, plan, crew.device, session.attempt, kept=kept
    )
    return GraphTiming(measurement.model_copy(update={"screened": screened}), baselines)


def _known(session: Session, carried: Carried, key: JobKey, shard: ShardPlan) -> KeptReference | None:
    """The rate that is kept for this job, for a first attempt; the job is noted for the next runs."""
    references, lab = session.references, session.crew.lab
    if references is None:
        return None
    sizes = session.inventory.sizes if session.inventory else ()
    task = ReferenceTask(lab, carried.plan, key.settings, sizes, len(shard.sizes))
    references.saw(key, task, shard.mean_pixels)
    if session.attempt > 1 or lab.measurement.glaring is None:
        return None
    return references.rate(key, shard.mean_pixels)


def _may_screen(baselines: Baselines) -> bool:
    """Whether the fair reference alone speaks for ours: with as many workers as the learner's loader, or with more."""
    own = baselines.settings.get(Arm.LEARNER)
    return own is not None and own.num_workers <= baselines.fair.num_workers


def _screen(
    session: Session, carried: Carried, baselines: Baselines, kept: KeptReference, watched: Lookout
) -> blocks.Timed:
    return blocks.screen(
        carried.arm,
        baselines.timed[0],
        kept,
        session.crew.lab.measurement,
        session.threshold,
        session.clock.progress,
        lookout=watched,
    )
