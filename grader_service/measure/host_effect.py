"""What this host can show: our own DALI graph against our own fair loader, on the learner's job, in the same run.

Measured only when the outcome would not be a pass. Where nobody's graph could beat the threshold, nobody fails.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grader_service.measure.arms import ArmLost, DaliArm, GraphRefusedAnswer, TimedArm, window_timeout_s
from grader_service.measure.sequential_test import allow_for_host
from grader_service.model.base import Device, Wire
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, HostBlock, HostEffect, Measurement
from grader_service.run.dialogue import ask, awake, parse
from sandbox.api import Pod

BLOCKS = 4
_WINDOW_SHARE = 0.5
"""Of the usual window: a median over four blocks need not be as sharp as a grade."""
_LEAST_BATCH = 64
"""Our graph has at least this batch: a learner's tiny batch says nothing about the host."""
_PREPARE_S = 120.0


class OwnPrepared(Wire):
    """The clean room runs our own graph."""

    kind: Literal["prepared_own"]
    batch_size: int
    queue_depth: int


@dataclass(frozen=True)
class Job:
    """What both sides do, and with what."""

    files: Sequence[str]
    plan: Mapping[str, object]
    """As the clean room derived it from the learner's graph."""
    batch_size: int
    threads: int
    device: Device


def needs_host_effect(measurement: Measurement) -> bool:
    """Whether the host's own ratio can still change the outcome: images that do not count have none to change."""
    decision, content = measurement.decision, measurement.content
    counted = content is None or content.problem is None
    return counted and decision is not None and decision.outcome != "passed"


def measure_host(
    pod: Pod, baselines: Sequence[TimedArm], job: Job, plan: MeasurementPlan, note: Callable[[str], None]
) -> HostEffect | None:
    """Builds our graph in the clean room's pod and compares it with the fair reference loader.

    Args:
        pod: the clean room's, frozen before and after.
        baselines: the arms that were timed; the fair reference is the one at fair settings, or the one at declared
            settings where these are fair.

    Returns:
        None when it could not be measured; then the outcome stands as it is.

    Raises:
        SandboxUnavailable: the reference's pod ended.
    """
    fair = next((arm for wanted in (Arm.FAIR, Arm.DECLARED) for arm in baselines if arm.arm is wanted), None)
    own = None if fair is None else _prepare(pod, job)
    effect = None if fair is None or own is None else host_ratio(own, fair, plan)
    if effect is None:
        note("what this host can show could not be measured")
    else:
        note(f"our own DALI graph reaches {effect.ratio:.2f} times our own loader on this host")
    return effect


def host_ratio(own: TimedArm, fair: TimedArm, plan: MeasurementPlan) -> HostEffect | None:
    """The median ratio of interleaved blocks, after one unrecorded window of each; None when an arm was lost."""
    seconds = plan.block_s * _WINDOW_SHARE
    for arm in (own, fair):
        for warm_up_s in (0.0, seconds / 2):
            if isinstance(_rate(arm, warm_up_s), ArmLost):
                return None
    taken = []
    for index in range(BLOCKS):
        # There and back again, so that a drift of the host's speed falls on both alike.
        order = (own, fair) if index % 2 == 0 else (fair, own)
        rates = {}
        for arm in order:
            rate = _rate(arm, seconds)
            if isinstance(rate, ArmLost):
                return None
            rates[arm is own] = rate
        taken.append(HostBlock(dali=rates[True], pytorch=rates[False]))
    return HostEffect(ratio=statistics.median(block.dali / block.pytorch for block in taken), blocks=tuple(taken))


def with_host(measurement: Measurement, host: HostEffect | None) -> Measurement:
    """The measurement with what the host can show, and its decision allowing for that."""
    decision = measurement.decision
    if decision is not None:
        decision = allow_for_host(decision, host, measurement.plan)
    return measurement.model_copy(update={"decision": decision, "host": host})


def _rate(arm: TimedArm, seconds: float) -> float | ArmLost:
    """Images per second over a window of about this length."""
    window = arm.window(arm.batches_for(seconds), timeout_s=window_timeout_s(seconds))
    return window if isinstance(window, ArmLost) else window.images_per_s


def _prepare(pod: Pod, job: Job) -> DaliArm | None:
    request = {
        "kind": "prepare_own",
        "files": list(job.files),
        "plan": dict(job.plan),
        "batch_size": max(job.batch_size, _LEAST_BATCH),
        "threads": job.threads,
        "device": job.device,
    }
    with awake(pod):
        message = ask(pod, request, timeout_s=_PREPARE_S)
    answer = parse(pod, message, OwnPrepared, GraphRefusedAnswer)
    return DaliArm(pod, answer.queue_depth) if isinstance(answer, OwnPrepared) else None
