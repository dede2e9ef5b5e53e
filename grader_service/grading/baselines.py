"""The baselines of a measurement: the learner's own loader, and our references; then everything as one record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from grader_service.grading import arms, blocks, learner
from grader_service.grading.clean_room import Carried
from grader_service.grading.contradictions import Setting, corroborate
from grader_service.held_out.plan import ShardPlan
from grader_service.model.evidence import Discovery
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, ClaimBesideMeasurement, LoaderSettings, Measurement
from sandbox.api import Pod

_MOST_WORKERS = 32
_MOST_BATCH = 4096


@dataclass
class Baselines:
    """What DALI is compared with."""

    timed: list[arms.TimedArm] = field(default_factory=list)
    cpus: int = 1
    """Cores of the CPU set that every arm has."""
    settings: dict[Arm, LoaderSettings] = field(default_factory=dict)
    notes: dict[Arm, list[str]] = field(default_factory=dict)


def prepare_baselines(
    learner_pod: Pod,
    reference_pod: Pod,
    discovery: Discovery,
    carried: Carried,
    files: Sequence[str],
    *,
    shards_path: str,
    plan: MeasurementPlan,
    cpus: int,
    device: Literal["cuda", "cpu"],
) -> Baselines:
    """Warms up the learner's loader, then the reference at its declared settings and, if they differ, at fair ones.

    A learner's loader that cannot be timed is left out with a note: the reference stands in for it.

    Raises:
        SandboxUnavailable: the reference's pod ended.
    """
    found = Baselines(cpus=cpus)
    learner_pod.resume()
    own = learner.prepare_arm(learner_pod, discovery, shards_path, carried.batch_size)
    learner_pod.pause()
    fair = arms.fair_settings(plan, cpus, carried.batch_size)
    declared = fair
    if isinstance(own, arms.LearnerArm):
        declared = found.settings[Arm.LEARNER] = _declared(own, carried.batch_size)
        images = f"{own.facts.loader.name}: held-out images {own.facts.content}, batch {list(own.facts.shape)}"
        found.notes[Arm.LEARNER] = [images[:200]]
        found.timed.append(own)
    else:
        found.notes[Arm.LEARNER] = [f"could not be re-measured: {own.reason}"[:200]]
    wanted = [(Arm.DECLARED, declared)]
    if fair.num_workers == declared.num_workers:
        found.notes[Arm.DECLARED] = ["also the fair setting of this host"]
    else:
        wanted.append((Arm.FAIR, fair))
    for arm, settings in wanted:
        found.settings[arm] = settings
        found.timed.append(arms.prepare_reference(reference_pod, arm, settings, list(files), carried.plan, device))
    return found


def assemble(
    timed: blocks.Timed,
    baselines: Baselines,
    discovery: Discovery,
    carried: Carried,
    shard: ShardPlan,
    plan: MeasurementPlan,
    device: Literal["cuda", "cpu"],
) -> Measurement:
    """The record of a measurement, with the learner's claims beside it."""
    reports = blocks.reports(timed, baselines.settings, baselines.notes)
    rates = {report.arm: report.images_per_s for report in reports}
    decoders = carried.facts.graph.decoder_devices if carried.facts.graph is not None else ()
    setting = Setting(
        device=device,
        cpus=baselines.cpus,
        pixels_per_image=sum(width * height for width, height in shard.sizes) / max(1, len(shard.sizes)),
        decodes_on_gpu=device == "cuda" and any(decoder in ("mixed", "gpu") for decoder in decoders),
    )
    claims = (
        ClaimBesideMeasurement(
            name="pytorch_throughput",
            claimed=discovery.pytorch_throughput.value,
            measured=rates.get(Arm.LEARNER) or rates.get(Arm.DECLARED),
        ),
        ClaimBesideMeasurement(
            name="dali_throughput", claimed=discovery.dali_throughput.value, measured=rates.get(Arm.DALI)
        ),
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
        claims=claims,
        problem=timed.lost.get(Arm.DALI),
        measured_s=timed.seconds,
        corroboration=corroborate(timed.uses, timed.notes, rates.get(Arm.DALI), setting),
        unsteady=timed.unsteady,
    )


def _declared(own: arms.LearnerArm, batch_size: int) -> LoaderSettings:
    loader = own.facts.loader
    return LoaderSettings(
        batch_size=min(loader.batch_size or batch_size, _MOST_BATCH),
        num_workers=min(loader.num_workers, _MOST_WORKERS),
        pin_memory=loader.pin_memory,
        persistent_workers=loader.persistent_workers,
        prefetch_factor=min(loader.prefetch_factor, 16) if loader.prefetch_factor else None,
    )
