"""Takes interleaved blocks until the test decides: DALI, the learner's loader and the references, one at a time."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from grader_service.measure.arms import MIN_WINDOW_TIMEOUT_S, ArmLost, Discarding, Settled, TimedArm, window_timeout_s
from grader_service.measure.gpu_use import Span
from grader_service.measure.interference import InterferenceMonitor
from grader_service.measure.sequential_test import decide
from grader_service.model.lab import EARLY_BLOCKS, MeasurementPlan
from grader_service.model.measurement import (
    Arm,
    ArmReport,
    Block,
    Decision,
    GpuUse,
    KeptReference,
    LoaderSettings,
    Window,
)
from grader_service.run.progress import Progress

_SETTLED = 0.05
"""Two windows of the DALI arm in a row that differ by less are taken for its steady rate."""
_SETTLE_WINDOWS = 6
_SETTLE_S = 0.5
"""Target length of such a window; on a GPU, clocks and decoder buffers need about a second to get where they stay."""
_SCREEN_SHARE = 0.3
"""Length of a window of the screen, as a share of those that decide otherwise; a loader's has whole batches, so that
it is rarely as short. The two-block bound, which both must pass, leaves room for noise many times theirs."""


@dataclass
class Timed:
    """What the blocks showed."""

    blocks: list[Block] = field(default_factory=list)
    """All that were taken, in order; those that the host contaminated say so and count nowhere."""
    decision: Decision | None = None
    lost: dict[Arm, str] = field(default_factory=dict)
    """Arm to why it could not be timed to the end."""
    unsteady: str | None = None
    """Why the host gave no decision; None when it was steady enough."""
    uses: tuple[GpuUse, ...] = ()
    """What NVML saw in the windows of valid blocks."""
    notes: list[str] = field(default_factory=list)
    """What staff should know of the host."""
    seconds: float = 0.0


@dataclass
class _Taken:
    """One block's windows, before anybody has looked at their rates."""

    order: tuple[Arm, ...]
    windows: list[Window] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


def measure(
    dali: TimedArm,
    baselines: Sequence[TimedArm],
    plan: MeasurementPlan,
    threshold: float,
    progress: Progress,
    *,
    attempt: int = 1,
    interference: InterferenceMonitor | None = None,
    known: Window | None = None,
) -> Timed:
    """Runs blocks until a decision, or until the host has contaminated as many as the plan's last look has.

    Args:
        baselines: the learner's loader first if there is one, then the references.
        threshold: the ratio to exceed.
        attempt: which measured attempt of the learner at the lab this is.
        interference: says which blocks the host contaminated; None where nothing is watched.
        known: of an arm that was timed before; then by the two-block bound, or not at all.

    Raises:
        InfrastructureError: a trusted pod ended, or the GPU is gone.
    """
    arms, interference = [dali, *baselines], interference or InterferenceMonitor()
    timed = Timed()
    started = time.monotonic()
    # DALI comes last, so that it is warm when the first block begins with it.
    for arm in arms[::-1]:
        if known is not None and arm.arm is not Arm.DALI:
            continue  # its first window gives its pace, and counts: its workers are warm
        if not _settle(arm, plan, timed):
            arms.remove(arm)
    fixed = {known.arm: known} if known is not None else {}
    latest: dict[Arm, Window] = dict(fixed)
    log_ratios: list[float] = []
    spans: list[Span] = []
    while timed.decision is None and timed.unsteady is None and Arm.DALI not in timed.lost:
        if fixed and (len(log_ratios) == EARLY_BLOCKS or len(timed.blocks) == 2 * EARLY_BLOCKS):
            break
        interference.watch.begin()
        taken = _take(arms, len(log_ratios), plan, timed)
        # The host is asked before any rate is computed, so that no rate can have a say in which blocks count.
        contamination = interference.watch.contamination()
        if Arm.DALI in timed.lost:
            if contamination is not None:
                timed.unsteady = f"{contamination}; the DALI arm ended in that block: {timed.lost[Arm.DALI]}"[:500]
            break
        left = {arm.arm for arm in arms} | fixed.keys()
        rates = {arm: window for arm, window in latest.items() if arm in left}
        rates |= {window.arm: window for window in taken.windows}
        block = _block(len(timed.blocks), taken, rates, plan, contamination)
        timed.blocks.append(block)
        if contamination is not None:
            progress.note(f"block {block.index + 1} discarded: {contamination}")
            timed.unsteady = _too_many_contaminated(timed.blocks, plan)
            for arm in arms:
                if isinstance(arm, Discarding):
                    arm.discarded()
            continue
        latest = rates
        log_ratios.append(block.log_ratio)
        spans += taken.spans
        timed.uses = interference.uses(spans)
        progress.note(_line(block.index, latest, math.exp(block.log_ratio)))
        timed.decision = decide(log_ratios, plan, threshold, attempt=attempt)
    timed.notes = list(interference.notes)
    timed.seconds = time.monotonic() - started
    return timed


def screen(
    dali: TimedArm,
    own: TimedArm,
    kept: KeptReference,
    plan: MeasurementPlan,
    threshold: float,
    progress: Progress,
    *,
    interference: InterferenceMonitor | None = None,
) -> Timed:
    """The first blocks of a first attempt, with short windows, beside a reference that was measured before.

    Only a pass by the two-block bound is decided so. Anything else is for `measure`, which begins anew: the screen
    adds no more error than that bound has, and nobody fails by a rate of another hour.

    Args:
        own: the learner's loader.
        threshold: the ratio to exceed.
        interference: as for `measure`.

    Raises:
        InfrastructureError: as `measure`.
    """
    known = Window(arm=Arm.FAIR, images=max(1, round(kept.images_per_s * 1000)), seconds=1000.0)
    short = plan.model_copy(update={"block_s": plan.block_s * _SCREEN_SHARE})
    timed = measure(dali, [own], short, threshold, progress, interference=interference, known=known)
    # A loader of the learner that broke meanwhile leaves nothing of this run to compare with.
    if timed.decision is not None and (timed.decision.outcome != "passed" or Arm.LEARNER in timed.lost):
        timed.decision = None
    return timed


def _take(arms: list[TimedArm], valid: int, plan: MeasurementPlan, timed: Timed) -> _Taken:
    """One window of every arm that is due; arms that are lost leave `arms`, and without DALI there is no block.

    Args:
        valid: valid blocks so far; a discarded block is repeated as it was.
    """
    due = [arm for arm in arms if arm.arm is not Arm.FAIR or valid % 2 == 0]
    # There and back again, so that a drift of the host's speed falls on every arm alike.
    order = due if valid % 2 == 0 else due[::-1]
    taken = _Taken(tuple(arm.arm for arm in order))
    for arm in order:
        start = time.monotonic()
        window = arm.window(arm.batches_for(plan.block_s), timeout_s=window_timeout_s(plan.block_s))
        if not isinstance(window, ArmLost):
            taken.windows.append(window)
            taken.spans.append(Span(arm.arm, start, time.monotonic()))
            continue
        timed.lost[arm.arm] = window.reason
        arms.remove(arm)
        if arm.arm is Arm.DALI:
            break
    return taken


def _block(
    index: int, taken: _Taken, rates: dict[Arm, Window], plan: MeasurementPlan, contamination: str | None
) -> Block:
    baseline, rate = _effective_baseline(rates, plan)
    return Block(
        index=index,
        order=taken.order,
        windows=tuple(taken.windows),
        log_ratio=math.log(rates[Arm.DALI].images_per_s / rate),
        baseline=baseline,
        spoiled=None if contamination is None else contamination[:200],
    )


def _too_many_contaminated(blocks: Sequence[Block], plan: MeasurementPlan) -> str | None:
    reasons = Counter(block.spoiled for block in blocks if block.spoiled is not None)
    if reasons.total() < plan.looks[-1]:
        return None
    most = "; ".join(f"{reason} ({count} blocks)" for reason, count in reasons.most_common(3))
    return f"{reasons.total()} of {len(blocks)} blocks were discarded: {most}"


def reports(timed: Timed, settings: dict[Arm, LoaderSettings], notes: dict[Arm, list[str]]) -> tuple[ArmReport, ...]:
    """Median and range of every arm over the valid blocks; arms that were lost say so."""
    result = []
    valid = [block for block in timed.blocks if block.spoiled is None]
    for arm in Arm:
        rates = [w.images_per_s for block in valid for w in block.windows if w.arm is arm]
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


def _settle(arm: TimedArm, plan: MeasurementPlan, timed: Timed) -> bool:
    """Unrecorded windows, which warm the arm up and give the pace for the next one; False when the arm was lost.

    One short window is enough for a loader, whose workers were warm when it was prepared. The DALI arm goes on until
    two windows in a row agree, or until enough were tried. That changes no window that counts, so there is nothing to
    gain by never agreeing.
    """
    if isinstance(arm, Settled):
        return True
    most = _SETTLE_WINDOWS if arm.arm is Arm.DALI else 0
    length_s = min(_SETTLE_S, plan.block_s / 2)
    patience_s = most * length_s
    rate: float | None = None
    for number in range(1 + most):
        batches = arm.batches_for(0.0 if number == 0 else length_s / 2 if number == 1 else length_s)
        outcome = arm.window(batches, timeout_s=4 * MIN_WINDOW_TIMEOUT_S)
        if isinstance(outcome, ArmLost):
            timed.lost[arm.arm] = outcome.reason
            return False
        patience_s -= outcome.seconds
        if number > 0 and patience_s <= 0:
            break
        if number > 1 and rate is not None and abs(outcome.images_per_s / rate - 1) < _SETTLED:
            break
        rate = outcome.images_per_s
    return True


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
