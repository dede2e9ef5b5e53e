"""Decides from paired blocks whether the throughput ratio exceeds the threshold; pure.

A group-sequential test on `x = ln(DALI / effective baseline)` per block. Everything is compared in logarithms and
nothing is rounded: a mean of exactly `ln(threshold)` does not pass. Two rules share the error of an attempt, and a
third one needs next to none; the last two are the early-stopping bounds:

- at every look, the extension included, Student's t with the SD of the blocks seen; each look has an equal part
  (Bonferroni, valid and slightly conservative), so that stopping early costs no error;
- at the first look of a first attempt, the first-look bound: with an SD taken to be `clear_sd`, more than a usable host
  shows, while the SD seen is at most `clear_most_sd`. Four blocks say so little about their own SD that Student's t
  alone needs six or more for a ratio of 1.5. A part of the error stays unspent, for hosts noisier than `clear_sd`.
- in a first attempt, the two-block bound: each of the first two blocks alone lies beyond the threshold by a factor that
  hosts do not err by (`glaring`); at a block SD of 30 % two such blocks come once in a billion runs.

The error of the j-th attempt is `6 / (π² j²)` of the whole, so that resubmitting until noise passes gains nothing:
over any number of attempts the parts add up to the whole. Passing and failing have error budgets of their own; what
neither side reaches by the end of the extension is `inconclusive`.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from grader_service.model.lab import EARLY_BLOCKS, MeasurementPlan
from grader_service.model.measurement import Decision, HostEffect, Interval

CONFIDENCE = 0.95
SMALLEST_SD = 1e-4
"""Block rates are never that equal; keeps an interval from closing to a point on a clock's granularity."""
_OWN_FAULT = 0.5
"""Share of the host's own ratio below which a ratio says more of the graph than of the host."""
_CLEAR_LEAST_BLOCKS = 4
"""With fewer, the SD seen is no guard at all against a noisy host."""


@dataclass(frozen=True)
class Bounds:
    """How far the mean of `ln(ratio)` must lie beyond `ln(threshold)` at one look."""

    pass_errors: float
    """Student's t: in standard errors of the blocks seen, upwards."""
    fail_errors: float
    """The same downwards."""
    clear_pass: float = math.inf
    """The first-look bound: in `ln(ratio)`, upwards; infinite where the rule does not apply."""
    clear_fail: float = math.inf
    """The same downwards."""


def decide(
    log_ratios: Sequence[float],
    plan: MeasurementPlan,
    threshold: float,
    *,
    attempt: int = 1,
    last: bool = False,
) -> Decision | None:
    """The decision after these blocks, or None when more are needed.

    Args:
        log_ratios: `ln(ratio)` of every valid block so far, at least two.
        threshold: the ratio that must be exceeded, such as 1.1.
        attempt: 1 for a learner's first measured attempt at the lab, 2 for the second, and so on.
        last: no more blocks will come, whatever the plan says.
    """
    blocks = len(log_ratios)
    if blocks < 2 or (blocks not in plan.stops(attempt) and not last):
        return None
    early = _by_two_blocks(log_ratios, plan, threshold, attempt)
    if early is None and blocks not in plan.all_looks and not last:
        return None
    mean = fmean(log_ratios)
    sd = max(stdev(log_ratios), SMALLEST_SD)
    error = sd / math.sqrt(blocks)
    lead = mean - math.log(threshold)
    bounds = bounds_at(plan, blocks, attempt)
    clear = sd <= plan.clear_most_sd
    if early is not None:
        outcome = early
    elif lead > bounds.pass_errors * error or (clear and lead > bounds.clear_pass):
        outcome = "passed"
    elif -lead > bounds.fail_errors * error or (clear and -lead > bounds.clear_fail):
        outcome = "failed"
    elif last or blocks >= plan.most_blocks:
        outcome = "inconclusive"
    else:
        return None
    half = _t_quantile((1 - CONFIDENCE) / 2, blocks) * error
    return Decision(
        outcome=outcome,  # type: ignore[arg-type]
        threshold=threshold,
        ratio=math.exp(mean),
        interval=Interval(low=math.exp(mean - half), high=math.exp(mean + half), confidence=CONFIDENCE),
        blocks_used=blocks,
        look=sum(blocks >= size for size in plan.all_looks) or 1,
        rule=_rule(plan, attempt),
        attempt=attempt,
    )


def replay(
    log_ratios: Sequence[float], plan: MeasurementPlan, threshold: float, *, attempt: int = 1
) -> Decision | None:
    """The decision over stored blocks, look by look, as it fell or as it would have fallen at another threshold.

    Returns:
        None for fewer than two blocks.
    """
    for size in plan.stops(attempt):
        if size <= len(log_ratios):
            decision = decide(log_ratios[:size], plan, threshold, attempt=attempt)
            if decision is not None:
                return decision
    return decide(log_ratios, plan, threshold, attempt=attempt, last=True)


def allow_for_host(decision: Decision, host: HostEffect | None, plan: MeasurementPlan) -> Decision:
    """The same decision, or `inconclusive` where the host's own ratio shows that nobody could have passed on it.

    A graph that stays below half of what ours reaches on the same host is slow by itself, and fails.
    """
    if decision.outcome == "passed" or host is None or host.ratio >= max(plan.host_floor, decision.threshold):
        return decision
    if decision.outcome == "failed" and _highest(decision, plan) < _OWN_FAULT * host.ratio:
        return decision
    return decision.model_copy(update={"outcome": "inconclusive", "reason": "host_cannot_show_effect"})


def _highest(decision: Decision, plan: MeasurementPlan) -> float:
    """The highest ratio that a failure leaves open.

    An interval from two blocks is wide however much they agree; where they failed by the two-block bound, both lie
    below that.
    """
    if plan.glaring is None or decision.blocks_used != EARLY_BLOCKS:
        return decision.interval.high
    bound = decision.threshold / plan.glaring
    return min(decision.interval.high, bound) if decision.ratio <= bound else decision.interval.high


def spent(alpha: float, attempt: int) -> float:
    """The part of a learner's error budget that the j-th attempt may spend; all parts together are `alpha`."""
    return alpha * 6 / (math.pi * attempt) ** 2


@functools.cache
def bounds_at(plan: MeasurementPlan, blocks: int, attempt: int) -> Bounds:
    """The bounds of both rules after this many blocks."""
    to_pass, to_fail = spent(plan.alpha_pass, attempt), spent(plan.alpha_fail, attempt)
    share = plan.look_share / len(plan.all_looks)
    bounds = Bounds(_t_quantile(to_pass * share, blocks), _t_quantile(to_fail * share, blocks))
    if attempt > 1 or blocks != plan.looks[0] or blocks < _CLEAR_LEAST_BLOCKS or plan.clear_share == 0:
        return bounds
    error = plan.clear_sd / math.sqrt(blocks)
    return Bounds(
        bounds.pass_errors,
        bounds.fail_errors,
        clear_pass=_normal_quantile(to_pass * plan.clear_share) * error,
        clear_fail=_normal_quantile(to_fail * plan.clear_share) * error,
    )


def _by_two_blocks(log_ratios: Sequence[float], plan: MeasurementPlan, threshold: float, attempt: int) -> str | None:
    """The outcome by the two-block bound; None where it decides nothing."""
    if plan.glaring is None or len(log_ratios) != EARLY_BLOCKS or len(log_ratios) not in plan.stops(attempt):
        return None
    leads = [value - math.log(threshold) for value in log_ratios]
    if min(leads) > math.log(plan.glaring):
        return "passed"
    return "failed" if max(leads) < -math.log(plan.glaring) else None


def _rule(plan: MeasurementPlan, attempt: int) -> str:
    looks = ", ".join(map(str, plan.looks))
    extension = f" and, once extended, {plan.most_blocks}" if plan.extension_blocks else ""
    text = (
        f"group-sequential t-test on ln(ratio) per block, looks after {looks}{extension} blocks; one-sided error of "
        f"all attempts {plan.alpha_pass:g} to pass and {plan.alpha_fail:g} to fail, of attempt {attempt} "
        f"{spent(plan.alpha_pass, attempt):.2g} and {spent(plan.alpha_fail, attempt):.2g}; "
        f"{plan.look_share:g} of it split equally over looks"
    )
    if attempt == 1 and plan.clear_share:
        text += (
            f", {plan.clear_share:g} for the first-look bound (SD taken as {plan.clear_sd:g}, "
            f"seen at most {plan.clear_most_sd:g})"
        )
    if attempt == 1 and plan.glaring is not None:
        text += f"; two first blocks that are both {plan.glaring:g} times above or below the threshold end it too"
    return f"{text}; compared without rounding, and a ratio of exactly the threshold does not pass"


@functools.cache
def _t_quantile(alpha: float, blocks: int) -> float:
    """Upper `alpha` quantile of Student's t with `blocks - 1` degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415 - its import costs more than most commands need

    return float(-stdtrit(blocks - 1, alpha))


@functools.cache
def _normal_quantile(alpha: float) -> float:
    """Upper `alpha` quantile of the standard normal distribution."""
    from scipy.special import ndtri  # noqa: PLC0415 - see `_t_quantile`

    return float(-ndtri(alpha))
