"""The baselines of a measurement: the learner's own loader, and our references; then everything as one record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from grader_service.grading import arms, blocks, learner
from grader_service.grading.clean_room import Carried
from grader_service.grading.comparison import claims_beside, declared_settings, fair_settings, reference_settings
from grader_service.grading.contradictions import Setting, corroborate
from grader_service.held_out.plan import ShardPlan
from grader_service.model.evidence import Discovery
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, LoaderSettings, Measurement
from sandbox.api import Pod


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
    fair = fair_settings(plan, cpus, carried.batch_size)
    declared = fair
    if isinstance(own, arms.LearnerArm):
        declared = found.settings[Arm.LEARNER] = declared_settings(own.facts.loader, carried.batch_size)
        images = f"{own.facts.loader.name}: held-out images {own.facts.content}, batch {list(own.facts.shape)}"
        found.notes[Arm.LEARNER] = [images[:200]]
        found.timed.append(own)
    else:
        found.notes[Arm.LEARNER] = [f"could not be re-measured: {own.reason}"[:200]]
    wanted = reference_settings(declared, fair)
    if Arm.FAIR not in wanted:
        found.notes[Arm.DECLARED] = ["also the fair setting of this host"]
    for arm, settings in wanted.items():
        found.settings[arm] = settings
        found.timed.append(arms.prepare_reference(reference_pod, arm, settings, files, carried.plan, device))
    return found


def assemble(
    timed: blocks.Timed,
    baselines: Baselines,
    discovery: Discovery,
    carried: Carried,
    shard: ShardPlan,
    plan: MeasurementPlan,
    device: Literal["cuda", "cpu"],
    attempt: int,
) -> Measurement:
    """The record of a measurement, with the learner's claims beside it."""
    reports = blocks.reports(timed, baselines.settings, baselines.notes)
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
    )
