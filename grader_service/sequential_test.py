"""Decides from paired blocks whether the throughput ratio exceeds the threshold; pure.

A group-sequential t-test on `x = ln(DALI / effective baseline)` per block: at each look the one-sided error is split
equally over all looks (Bonferroni, valid and slightly conservative), so that stopping early costs no error. Passing and
failing have error budgets of their own; what neither side reaches by the last look is `inconclusive`.
"""

import functools
import math
from collections.abc import Sequence
from statistics import fmean, stdev

from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Decision, Interval

CONFIDENCE = 0.95
_SMALLEST_SD = 1e-4
"""Block rates are never that equal; keeps an interval from closing to a point on a clock's granularity."""


def decide(
    log_ratios: Sequence[float], plan: MeasurementPlan, threshold: float, *, last: bool = False
) -> Decision | None:
    """The decision after these blocks, or None when more are needed.

    Args:
        log_ratios: `ln(ratio)` of every valid block so far, at least two.
        threshold: the ratio that must be exceeded, such as 1.1.
        last: no more blocks will come, whatever the plan says.
    """
    blocks = len(log_ratios)
    if blocks < 2:
        return None
    if blocks not in plan.looks and not last:
        return None
    look = sum(blocks >= size for size in plan.looks) or 1
    mean = fmean(log_ratios)
    error = max(stdev(log_ratios), _SMALLEST_SD) / math.sqrt(blocks)
    looks = len(plan.looks)
    low = mean - _quantile(plan.alpha_pass / looks, blocks) * error
    high = mean + _quantile(plan.alpha_fail / looks, blocks) * error
    target = math.log(threshold)
    if low > target:
        outcome = "passed"
    elif high < target:
        outcome = "failed"
    elif last or blocks >= plan.looks[-1]:
        outcome = "inconclusive"
    else:
        return None
    half = _quantile((1 - CONFIDENCE) / 2, blocks) * error
    return Decision(
        outcome=outcome,  # type: ignore[arg-type]
        threshold=threshold,
        ratio=math.exp(mean),
        interval=Interval(low=math.exp(mean - half), high=math.exp(mean + half), confidence=CONFIDENCE),
        blocks_used=blocks,
        look=look,
        rule=(
            f"group-sequential t-test on ln(ratio) per block, looks after {', '.join(map(str, plan.looks))} blocks, "
            f"one-sided error {plan.alpha_pass:g} to pass and {plan.alpha_fail:g} to fail, split equally over looks"
        ),
    )


@functools.cache
def _quantile(alpha: float, blocks: int) -> float:
    """Upper `alpha` quantile of Student's t with `blocks - 1` degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415 - its import costs more than most commands need

    return float(-stdtrit(blocks - 1, alpha))
