"""The baselines of a measurement: the learner's own loader, and our references; then everything as one record."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from grader_service.held_out.plan import ShardPlan
from grader_service.measure import arms, blocks
from grader_service.measure.clean_room import Carried
from grader_service.measure.comparison import claims_beside, declared_settings, reference_settings
from grader_service.measure.contradictions import Setting, corroborate
from grader_service.model.base import Device
from grader_service.model.discovery import Discovery
from grader_service.model.measurement import Arm, ArmReport, GpuUse, KeptReference, LoaderSettings, Measurement
from grader_service.run.dialogue import awake
from grader_service.run.session import Session
from sandbox.api import Pod


@dataclass
class Baselines:
    """What DALI is compared with."""

    fair: LoaderSettings
    timed: list[arms.TimedArm] = field(default_factory=list)
    settings: dict[Arm, LoaderSettings] = field(default_factory=dict)
    notes: dict[Arm, list[str]] = field(default_factory=dict)


def own_loader(
    pod: Pod, discovery: Discovery, carried: Carried, *, shards_path: str, fair: LoaderSettings
) -> Baselines:
    """Warms up the learner's loader; one that cannot be timed is left out with a note: the reference stands in for it.

    Args:
        pod: the learner's, frozen before and after.
        shards_path: of the held-out images, as pods see it.
    """
    found = Baselines(fair)
    with awake(pod):
        own = arms.prepare_learner_arm(pod, discovery, shards_path, carried.batch_size)
    if isinstance(own, arms.LearnerArm):
        found.settings[Arm.LEARNER] = declared_settings(own.facts.loader, carried.batch_size)
        images = f"{own.facts.loader.name}: held-out images {own.facts.content}, batch {list(own.facts.shape)}"
        found.notes[Arm.LEARNER] = [images[:200]]
        found.timed.append(own)
    else:
        found.notes[Arm.LEARNER] = [f"could not be re-measured: {own.reason}"[:200]]
    return found


def add_references(found: Baselines, pod: Pod, carried: Carried, files: Sequence[str], device: Device) -> None:
    """Warms up the reference at the learner's declared settings and, if they differ, at fair ones.

    Raises:
        SandboxUnavailable: the reference's pod ended.
    """
    wanted = reference_settings(found.settings.get(Arm.LEARNER, found.fair), found.fair)
    if Arm.FAIR not in wanted:
        found.notes[Arm.DECLARED] = ["also the fair setting of this host"]
    for arm, settings in wanted.items():
        found.settings[arm] = settings
        found.timed.append(arms.ReferenceArm.prepare(pod, arm, settings, files, carried.plan, device))


def assemble(
    session: Session,
    timed: blocks.Timed,
    baselines: Baselines,
    carried: Carried,
    shard: ShardPlan,
    kept: KeptReference | None,
) -> Measurement:
    """The record of the measurement of a graph.

    Args:
        kept: the reference that the blocks were held against, where none was timed beside them.
    """
    reports = blocks.reports(timed, baselines.settings, baselines.notes)
    if kept is not None:
        reports = (*reports, _kept_report(kept))
    decoders = carried.facts.graph.decoder_devices if carried.facts.graph is not None else ()
    on_gpu = session.pod_set.device == "cuda" and any(decoder in ("mixed", "gpu") for decoder in decoders)
    made = measured(session, timed, reports, shard, timed.uses, decodes_on_gpu=on_gpu)
    return made.model_copy(update={"dali_settings": carried.settings, "kept_reference": kept})


def measured(
    session: Session,
    timed: blocks.Timed,
    reports: tuple[ArmReport, ...],
    shard: ShardPlan,
    uses: tuple[GpuUse, ...],
    *,
    decodes_on_gpu: bool,
) -> Measurement:
    """What every measurement says that took blocks, with the learner's claims beside it."""
    device, rates = session.pod_set.device, {report.arm: report.images_per_s for report in reports}
    setting = Setting(device, len(session.pod_set.cpus), shard.mean_pixels, decodes_on_gpu)
    return Measurement(
        device=device,
        plan=session.pod_set.lab.measurement,
        images=len(shard.sizes),
        image_sizes=shard.size_text,
        arms=reports,
        blocks=tuple(timed.blocks),
        decision=timed.decision,
        claims=claims_beside(session.found.discovery, rates),
        problem=timed.lost.get(Arm.DALI),
        measured_s=timed.seconds,
        corroboration=corroborate(uses, timed.notes, rates.get(Arm.DALI), setting),
        attempt=session.attempt,
        unsteady=timed.unsteady,
    )


def not_timed(session: Session, problem: str) -> Measurement:
    """The record where nothing was timed: whatever the rate is, it would not count, or there is none."""
    return Measurement(
        device=session.pod_set.device,
        plan=session.pod_set.lab.measurement,
        images=0,
        image_sizes="",
        arms=(),
        blocks=(),
        decision=None,
        problem=problem,
        attempt=session.attempt,
    )


def _kept_report(kept: KeptReference) -> ArmReport:
    note = (
        f"not timed in this run: the fastest of {kept.windows} windows on this host, {kept.age_s / 60:.0f} min before"
    )
    return ArmReport(
        arm=Arm.FAIR,
        images_per_s=kept.images_per_s,
        low=kept.images_per_s,
        high=kept.images_per_s,
        settings=kept.settings,
        notes=(note,),
    )
