"""Takes interleaved blocks until the test decides: DALI, the learner's loader and the references, one at a time."""

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from grader_service.grading.arms import MIN_WINDOW_TIMEOUT_S, ArmLost, TimedArm
from grader_service.grading.progress import Progress
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, ArmReport, Block, Decision, LoaderSettings, Window
from grader_service.sequential_test import decide

_SLOWEST = 12.0
"""A window may take this many times what its plan says before its arm counts as stuck."""


class DaliLost(Exception):
    """The learner's graph stopped running in the clean room; a value of `measure`, never seen outside this module."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Timed:
    """What the blocks showed."""

    blocks: list[Block] = field(default_factory=list)
    decision: Decision | None = None
    lost: dict[Arm, str] = field(default_factory=dict)
    """Arm to why it could not be timed to the end."""
    seconds: float = 0.0


def measure(
    dali: TimedArm,
    baselines: Sequence[TimedArm],
    plan: MeasurementPlan,
    threshold: float,
    progress: Progress,
) -> Timed:
    """Runs blocks until a decision or the last look.

    Args:
        dali: the arm that must be faster.
        baselines: the learner's loader first if there is one, then the references.
        plan: window length, looks and error budgets.
        threshold: the ratio to exceed.
    """
    timed = Timed()
    started = time.monotonic()
    arms: list[TimedArm] = [dali, *baselines]
    latest: dict[Arm, Window] = {}
    try:
        for arm in arms:
            _settle(arm, arms, timed)
        log_ratios: list[float] = []
        while timed.decision is None and len(timed.blocks) < plan.looks[-1]:
            index = len(timed.blocks)
            due = [arm for arm in arms if arm.arm is not Arm.FAIR or index % 2 == 0]
            # There and back again, so that a drift of the host's speed falls on every arm alike.
            order = due if index % 2 == 0 else due[::-1]
            windows: list[Window] = []
            for arm in order:
                window = _window(arm, plan, timed)
                if window is None:
                    arms.remove(arm)
                    latest.pop(arm.arm, None)
                else:
                    windows.append(window)
                    latest[arm.arm] = window
            baseline, rate = _effective_baseline(latest, plan)
            ratio = latest[Arm.DALI].images_per_s / rate
            log_ratios.append(math.log(ratio))
            timed.blocks.append(
                Block(
                    index=index,
                    order=tuple(arm.arm for arm in order),
                    windows=tuple(windows),
                    log_ratio=math.log(ratio),
                    baseline=baseline,
                )
            )
            progress.note(_line(index, latest, ratio))
            timed.decision = decide(log_ratios, plan, threshold)
    except DaliLost as lost:
        timed.lost[Arm.DALI] = lost.reason
    timed.seconds = time.monotonic() - started
    return timed


def reports(timed: Timed, settings: dict[Arm, LoaderSettings], notes: dict[Arm, list[str]]) -> tuple[ArmReport, ...]:
    """Median and range of every arm over the blocks; arms that were lost say so."""
    result = []
    for arm in Arm:
        rates = [w.images_per_s for block in timed.blocks for w in block.windows if w.arm is arm]
        arm_notes = [*notes.get(arm, [])]
        if arm in timed.lost:
            arm_notes.append(f"not timed to the end: {timed.lost[arm]}"[:200])
        if rates or arm_notes:
            result.append(
                ArmReport(
                    arm=arm,
                    images_per_s=statistics.median(rates) if rates else None,
                    low=min(rates) if rates else None,
                    high=max(rates) if rates else None,
                    settings=settings.get(arm),
                    notes=tuple(arm_notes),
                )
            )
    return tuple(result)


def _settle(arm: TimedArm, arms: list[TimedArm], timed: Timed) -> None:
    """A first, unrecorded window: it warms the arm up and gives the pace for the next one."""
    for batches in (arm.batches_for(0.0), None):
        outcome = arm.window(batches or arm.batches_for(0.25), timeout_s=4 * MIN_WINDOW_TIMEOUT_S)
        if isinstance(outcome, ArmLost):
            _lose(arm, outcome, timed)
            arms.remove(arm)
            return


def _window(arm: TimedArm, plan: MeasurementPlan, timed: Timed) -> Window | None:
    timeout_s = max(MIN_WINDOW_TIMEOUT_S, _SLOWEST * plan.block_s)
    outcome = arm.window(arm.batches_for(plan.block_s), timeout_s=timeout_s)
    if isinstance(outcome, ArmLost):
        _lose(arm, outcome, timed)
        return None
    return outcome


def _lose(arm: TimedArm, lost: ArmLost, timed: Timed) -> None:
    if arm.arm is Arm.DALI:
        raise DaliLost(lost.reason)
    timed.lost[arm.arm] = lost.reason


def _effective_baseline(latest: dict[Arm, Window], plan: MeasurementPlan) -> tuple[Arm, float]:
    """The learner's own rate, unless a reference shows that it was held back."""
    floors = {Arm.LEARNER: 1.0, Arm.DECLARED: plan.declared_floor, Arm.FAIR: plan.fair_floor}
    rates = {arm: latest[arm].images_per_s * floor for arm, floor in floors.items() if arm in latest}
    best = max(rates, key=lambda arm: rates[arm])
    return best, rates[best]


def _line(index: int, latest: dict[Arm, Window], ratio: float) -> str:
    words = {Arm.DALI: "DALI", Arm.LEARNER: "PyTorch", Arm.DECLARED: "reference", Arm.FAIR: "fair reference"}
    rates = "  ".join(f"{words[arm]} {window.images_per_s:,.0f}/s" for arm, window in latest.items())
    return f"block {index + 1}: {rates}  ratio {ratio:.2f}"
