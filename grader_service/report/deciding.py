"""How blocks become a decision, in words: the rule, the look that ended it, the attempt and the host; pure."""

import math

from grader_service.measure.sequential_test import bounds_at, spent
from grader_service.model.lab import EARLY_BLOCKS, MeasurementPlan
from grader_service.model.measurement import Decision, HostEffect
from grader_service.report import formats
from grader_service.report.formats import percent
from grader_service.report.shown import factor
from grader_service.report.words import MeasuredTier, listed


def rule(
    plan: MeasurementPlan, threshold: float | None, *, tier: MeasuredTier = "A", attempt: int = 1
) -> tuple[str, ...]:
    """How blocks become a decision, one sentence or two per step of it.

    Args:
        plan: as it was run.
        threshold: the ratio that must be exceeded; None where nothing was decided.
        tier: how the DALI side was measured.
        attempt: which measured attempt of the learner at the lab this was.
    """
    needed = "the threshold" if threshold is None else f"{threshold:g}"
    return (
        _block(plan, tier),
        f"A block's ratio is the images per second of your DALI {'graph' if tier == 'A' else 'code'} over those of the "
        f"baseline. The baseline is your DataLoader, but never less than {percent(plan.declared_floor)} of our "
        f"reference at your settings, nor less than {percent(plan.fair_floor)} of our reference at fair settings: a "
        "slow DataLoader does not help.",
        _looks(plan, needed),
        *_first_look_bound(plan, threshold, attempt),
        *_two_block_bound(plan, needed, attempt),
        f"Over all your attempts together, whoever has a true ratio of exactly {needed} passes with a chance of at "
        f"most {percent(plan.alpha_pass)} and fails with one of at most {percent(plan.alpha_fail)}. The first attempt "
        f"may use {percent(spent(1.0, 1), 2)} of these chances, the second {percent(spent(1.0, 2), 2)}, and later "
        f"ones less. In each attempt {percent(plan.look_share)} of its part is shared equally by the looks, so the "
        "bounds of the test are not those of the interval in the plot, which is only for reading.",
    )


def ending(decision: Decision, plan: MeasurementPlan) -> str:
    """Which look ended the measurement, and after how many blocks."""
    looks = plan.all_looks
    if decision.blocks_used == EARLY_BLOCKS and decision.blocks_used in plan.stops(decision.attempt)[:1]:
        return f"Here the first {EARLY_BLOCKS} blocks ended it, before any look."
    if decision.blocks_used not in looks:
        return f"Here the blocks ended after {decision.blocks_used} valid ones, where no look was due."
    extended = ", the one after the extension," if decision.blocks_used > plan.looks[-1] else ""
    return f"Here look {decision.look} of {len(looks)}{extended} ended it, after {decision.blocks_used} blocks."


def budget(plan: MeasurementPlan, attempt: int) -> str:
    """How much error a later attempt may spend; empty for a first one."""
    if attempt == 1:
        return ""
    to_pass, to_fail = (percent(spent(alpha, attempt), 2) for alpha in (plan.alpha_pass, plan.alpha_fail))
    return (
        f"This was your measured attempt number {attempt} at this lab, so the test was stricter: it had "
        f"{percent(spent(1.0, attempt), 2)} of the error of all attempts, which is a chance of at most {to_pass} to "
        f"pass wrongly and of {to_fail} to fail wrongly."
    )


def host(effect: HostEffect, plan: MeasurementPlan, decision: Decision | None) -> str:
    """What the host can show, and what follows for the outcome."""
    needed = plan.host_floor if decision is None else max(plan.host_floor, decision.threshold)
    ratios = [block.dali / block.pytorch for block in effect.blocks]
    blocks = "1 block" if len(ratios) == 1 else f"{len(ratios)} blocks"
    seen = (
        f"With the same job our own DALI graph delivered {formats.ratio(effect.ratio, needed)} the images of our own "
        f"PyTorch loader on this host (median of {blocks}, {formats.ratio(min(ratios))} to "
        f"{formats.ratio(max(ratios))})."
    )
    if effect.ratio >= needed:
        return f"{seen} At least {needed:g}× is wanted of a host, so it can show the effect."
    return (
        f"{seen} At least {needed:g}× is wanted of a host, so this one cannot show the effect, and nobody fails on it."
    )


def _block(plan: MeasurementPlan, tier: MeasuredTier) -> str:
    turn = "The order turns around from block to block, so that a drift of the host falls on all arms alike."
    fair = "our reference at fair settings takes part in every second block"
    if tier == "A":
        return (
            f"A block times the arms one after another, for about {plan.block_s:g} s each, on the same images, which "
            f"are made for the run; {fair}. {turn}"
        )
    built, counts = ("is built anew on", ", and the time to build it counts") if tier == "C" else ("gets", "")
    return (
        f"A block times the arms one after another; {fair}. Your DataLoader was timed once, before the first block, "
        f"and that window stands in each. {turn} In each window your DALI code {built} images that it has not seen "
        f"before{counts}. Only these count, and each of them once."
    )


def _looks(plan: MeasurementPlan, needed: str) -> str:
    text = (
        f"After {listed([str(look) for look in plan.looks])} valid blocks the logarithms of the ratios are tested "
        f"(Student's t): does the true ratio lie above {needed}, or below it? The first look that can tell ends the "
        "measurement."
    )
    if plan.extension_blocks:
        more = "1 more block follows" if plan.extension_blocks == 1 else f"{plan.extension_blocks} more blocks follow"
        text += f" If none can, {more}, with a last look after {plan.most_blocks}."
    return f"{text} What stays open is inconclusive, which is not a failure. A mean of exactly {needed} does not pass."


def _two_block_bound(plan: MeasurementPlan, needed: str, attempt: int) -> tuple[str, ...]:
    """The two-block bound, where this attempt had it."""
    if plan.glaring is None or EARLY_BLOCKS not in plan.stops(attempt)[:1] or EARLY_BLOCKS in plan.all_looks:
        return ()
    return (
        f"A first attempt ends after {EARLY_BLOCKS} blocks where each of them alone lies a factor of "
        f"{plan.glaring:g} or more above {needed}, or each as far below it.",
    )


def _first_look_bound(plan: MeasurementPlan, threshold: float | None, attempt: int) -> tuple[str, ...]:
    """The first-look bound, where this attempt had it."""
    bounds = bounds_at(plan, plan.looks[0], attempt)
    if not math.isfinite(bounds.clear_pass):
        return ()
    text = (
        f"A first attempt ends at the first look where the blocks scatter by at most {percent(plan.clear_most_sd)} and "
        f"their mean would decide even if they scattered by {percent(plan.clear_sd)}"
    )
    if threshold is not None:
        above, below = threshold * factor(bounds.clear_pass), threshold * factor(-bounds.clear_fail)
        text += f", which takes about {formats.ratio(above)} or more, or {formats.ratio(below)} or less"
    return (f"{text}.",)
