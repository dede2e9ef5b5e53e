"""Times a carried graph against the baselines: beside a kept reference first, where one is fresh, or in full."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from grader_service.held_out.plan import ShardPlan
from grader_service.measure import blocks
from grader_service.measure.baselines import Baselines, add_references, assemble, own_loader
from grader_service.measure.clean_room import Carried
from grader_service.measure.comparison import fair_settings
from grader_service.measure.interference import interference_monitor
from grader_service.measure.kept_references import JobKey, KeptReferences, comparable
from grader_service.measure.reference_run import ReferenceTask
from grader_service.model.lab import EARLY_BLOCKS
from grader_service.model.measurement import REFERENCES, Arm, Block, KeptReference, Measurement
from grader_service.run import trusted_pod
from grader_service.run.session import Session


def time_graph(
    session: Session, carried: Carried, files: Sequence[str], shard: ShardPlan, references: KeptReferences | None
) -> tuple[Measurement, Baselines]:
    """Warms the loaders up and takes blocks until the test decides; the record, and what it was held against.

    Args:
        files: the held-out images, as pods see them.
        shard: the plan that these were made by.
        references: see `measuring.measure`.

    Raises:
        InfrastructureError: a trusted pod ended, or the GPU is gone.
    """
    pod_set, clock, plan = session.pod_set, session.clock, session.pod_set.lab.measurement
    assert pod_set.clean_room is not None  # noqa: S101 - it runs the graph
    pod_set.clean_room.pause()  # from here on its arm wakes it for its windows alone
    clock.start("warm_up", "warming up the loaders")
    fair = fair_settings(plan, len(pod_set.cpus), carried.batch_size)
    key = JobKey(pod_set.image_digest, comparable(carried.plan), fair, pod_set.cpus, plan.block_s)
    usable = references if _keeps(session) else None
    kept = usable.rate(key, shard.mean_pixels) if usable is not None else None
    baselines = own_loader(
        pod_set.learner,
        session.found.discovery,
        carried,
        shards_path=pod_set.space.paths.shards,
        fair=fair,
    )
    before: list[Block] = []
    if kept is None or not _may_screen(baselines):
        timed, kept = _in_full(session, carried, baselines, files), None
    else:
        timed = screened = _screen(session, carried, baselines, kept)
        if screened.decision is None:
            kept, before = None, screened.blocks
            if Arm.DALI in screened.lost:  # nothing is left to time
                timed = replace(screened, blocks=[])
            else:
                clock.start("warm_up", "warming up the loaders")
                timed = _in_full(session, carried, baselines, files)
                timed.notes[:0] = screened.notes
    measurement = assemble(session, timed, baselines, carried, shard, kept)
    measurement = measurement.model_copy(update={"screened": tuple(before)})
    if usable is not None and measurement.decision is not None:
        _note(usable, session, key, carried, shard, measurement)
    return measurement, baselines


def _in_full(session: Session, carried: Carried, baselines: Baselines, files: Sequence[str]) -> blocks.Timed:
    """Blocks with every reference that is due, under a monitor that has seen all of their processes."""
    pod_set, clock = session.pod_set, session.clock
    assert pod_set.reference is not None  # noqa: S101 - a measurement has one
    session.versions.update(trusted_pod.await_ready(pod_set.reference))
    add_references(baselines, pod_set.reference, carried, files, pod_set.device)
    clock.start("measure", "timing blocks")
    with interference_monitor(pod_set.cpus, pod_set.gpu) as watched:
        return blocks.measure(
            carried.arm,
            baselines.timed,
            pod_set.lab.measurement,
            session.threshold,
            clock.progress,
            attempt=session.attempt,
            interference=watched,
        )


def _screen(session: Session, carried: Carried, baselines: Baselines, kept: KeptReference) -> blocks.Timed:
    """Two blocks beside the kept reference.

    Under a monitor of their own: who comes to the GPU between them and the first block of the full measurement is the
    reference's loader, and nobody foreign.
    """
    pod_set, clock = session.pod_set, session.clock
    clock.start("measure", "timing blocks beside the kept reference")
    with interference_monitor(pod_set.cpus, pod_set.gpu) as watched:
        return blocks.screen(
            carried.arm,
            baselines.timed[0],
            kept,
            pod_set.lab.measurement,
            session.threshold,
            clock.progress,
            interference=watched,
        )


def _keeps(session: Session) -> bool:
    """Whether a kept rate is of use: for a first attempt, where no test looks at as few blocks as a screen has."""
    plan = session.pod_set.lab.measurement
    return session.attempt == 1 and plan.glaring is not None and plan.looks[0] > EARLY_BLOCKS


def _note(
    references: KeptReferences,
    session: Session,
    key: JobKey,
    carried: Carried,
    shard: ShardPlan,
    measurement: Measurement,
) -> None:
    """The job, for the next runs; a first attempt that was decided speaks for its learner."""
    pod_set = session.pod_set
    task = ReferenceTask(
        pod_set.lab, pod_set.image_digest, pod_set.cpus, carried.plan, key.settings, session.sizes, len(shard.sizes)
    )
    rate = _rate_of(key, measurement) if measurement.kept_reference is None else None
    references.saw(key, task, session.submitter, shard.mean_pixels, rate)


def _rate_of(key: JobKey, measurement: Measurement) -> float | None:
    """Of the loader of this job in a run; the declared reference is that loader where both have the same settings."""
    arms = [report.arm for report in measurement.arms if report.settings == key.settings and report.arm in REFERENCES]
    rates = [
        window.images_per_s
        for block in measurement.blocks
        for window in block.windows
        if block.spoiled is None and window.arm in arms
    ]
    return statistics.median(rates) if rates else None


def _may_screen(baselines: Baselines) -> bool:
    """Whether the fair reference alone speaks for ours: with as many workers as the learner's loader, or with more.

    Of the declared settings only more workers could make a loader faster than the fair one: its batch size is a fair
    one, its memory is pinned and its workers persist.
    """
    own = baselines.settings.get(Arm.LEARNER)
    return own is not None and own.num_workers <= baselines.fair.num_workers
