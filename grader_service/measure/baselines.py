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
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, ArmReport, KeptReference, LoaderSettings, Measurement
from grader_service.run.dialogue import awake
from sandbox.api import Pod


@dataclass
class Baselines:
    """What DALI is compared with."""

    cpus: int
    """Cores of the CPU set that every arm has."""
    fair: LoaderSettings
    """Settings of the fair reference."""
    timed: list[arms.TimedArm] = field(default_factory=list)
    settings: dict[Arm, LoaderSettings] = field(default_factory=dict)
    notes: dict[Arm, list[str]] = field(default_factory=dict)


def own_loader(
    pod: Pod, discovery: Discovery, carried: Carried, *, shards_path: str, cpus: int, fair: LoaderSettings
) -> Baselines:
    """Warms up the learner's loader; one that cannot be timed is left out with a note: the reference stands in for it.

    Args:
        pod: the learner's, frozen before and after.
        discovery: what its code left behind.
        carried: the graph.
        shards_path: of the held-out images, as pods see it.
        cpus: cores of every arm.
        fair: settings of the fair reference.
    """
    found = Baselines(cpus, fair)
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
    timed: blocks.Timed,
    baselines: Baselines,
    discovery: Discovery,
    carried: Carried,
    shard: ShardPlan,
    plan: MeasurementPlan,
    device: Device,
    attempt: int,
    *,
    kept: KeptReference | None = None,
) -> Measurement:
    """The record of a measurement, with the learner's claims beside it.

    Args:
        timed: what the blocks showed.
        baselines: that were timed.
        discovery: with the claims.
        carried: the graph.
        shard: plan of the held-out images.
        plan: of the measurement.
        device: that the run had.
        attempt: of the learner at the lab.
        kept: the reference that the blocks were held against, where none was timed beside them.
    """
    reports = blocks.reports(timed, baselines.settings, baselines.notes)
    if kept is not None:
        reports = (*reports, _kept_report(kept))
    rates = {report.arm: report.images_per_s for report in reports}
    decoders = carried.facts.graph.decoder_devices if carried.facts.graph is not None else ()
    setting = Setting(
        device=device,
        cpus=baselines.cpus,
        pixels_per_image=shard.mean_pixels,
        decodes_on_gpu=device == "cuda" and any(decoder in ("mixed", "gpu") for decoder in decoders),
    )
    return Measurement(
        device=device,
        plan=plan,
        images=len(shard.sizes),
        image_sizes=shard.size_text,
        arms=reports,
        blocks=tuple(timed.blocks),
        decision=timed.decision,
        dali_settings=carried.settings,
        claims=claims_beside(discovery, rates),
        problem=timed.lost.get(Arm.DALI),
        measured_s=timed.seconds,
        corroboration=corroborate(timed.uses, timed.notes, rates.get(Arm.DALI), setting),
        attempt=attempt,
        unsteady=timed.unsteady,
        kept_reference=kept,
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
