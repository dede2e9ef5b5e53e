"""What the report shows of a measurement: one row per block, and the decision that graded it; pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from grader_service.model.measurement import Arm, Block, Decision, Measurement
from grader_service.model.verdict import CheckVerdict, Verdict
from grader_service.report import words

MOST_ROWS = 120
_MOST_LOG = 300.0
"""Logarithms beyond this are shown as this, so that no exponential overflows."""


@dataclass(frozen=True)
class BlockRow:
    """One block, as the plots and the table show it."""

    number: int
    """1-based."""
    ratio: float
    rates: Mapping[Arm, float]
    """Images per second of each arm that was timed in it."""
    baseline: Arm
    counted: bool
    """It is one of the blocks that the decision was made on."""
    remark: str
    """Why it was not counted; empty when it was."""


@dataclass(frozen=True)
class Shown:
    """Rows and numbers that plots, tables and sentences take alike."""

    rows: tuple[BlockRow, ...]
    left_out: int
    """Blocks beyond the rows shown."""
    arms: tuple[Arm, ...]
    """Arms that any row has a rate of."""
    names: Mapping[Arm, str]
    """What each arm is called, which depends on how the DALI side was measured."""
    decision: Decision | None
    outcome: str | None
    """What came of the ratio; null without a decision, and where images or graph were found not to count."""
    threshold: float | None
    graded: bool
    """Whether a check judged the ratio; a lab may time a graph for what the host sees meanwhile."""
    mean: float | None
    """Geometric mean of the ratios of the counted blocks."""
    contaminated: int
    """Blocks that the host contaminated, those beyond the rows shown included."""
    medians: Mapping[Arm, float]
    """Images per second of each arm over all blocks."""

    @property
    def not_counted(self) -> tuple[BlockRow, ...]:
        """Rows that were not counted."""
        return tuple(row for row in self.rows if row.remark)

    @property
    def reasons(self) -> Mapping[str, tuple[int, ...]]:
        """Why rows were not counted, with the numbers of their blocks."""
        numbers: dict[str, tuple[int, ...]] = {}
        for row in self.not_counted:
            numbers[row.remark] = (*numbers.get(row.remark, ()), row.number)
        return numbers


def shown(verdict: Verdict) -> Shown | None:
    """What there is to show of the verdict's measurement, if there is one."""
    measurement = verdict.measurement
    if measurement is None:
        return None
    graded = not verdict.checks or any(map(_judges_ratio, verdict.checks))
    decision, outcome = _decision(verdict.checks, measurement) if graded else (None, None)
    rows = _rows(measurement.blocks, decision)
    ratios = [row.ratio for row in rows if row.counted]
    mean = decision.ratio if decision is not None else math.exp(fmean(map(math.log, ratios))) if ratios else None
    medians = {arm.arm: arm.images_per_s for arm in measurement.arms if arm.images_per_s is not None}
    rows, left_out = rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS)
    return Shown(
        rows=tuple(rows),
        left_out=left_out,
        arms=tuple(arm for arm in Arm if arm in medians or any(arm in row.rates for row in rows)),
        names=words.arm_names(measurement.tier),
        decision=decision,
        outcome=outcome,
        threshold=decision.threshold if decision is not None else None,
        graded=graded,
        mean=mean,
        contaminated=sum(block.spoiled is not None for block in measurement.blocks),
        medians=medians,
    )


def _judges_ratio(check: CheckVerdict) -> bool:
    return check.id == "throughput_ratio" or check.decision is not None


def _decision(checks: Sequence[CheckVerdict], measurement: Measurement) -> tuple[Decision | None, str | None]:
    """The decision and its outcome, as a check graded by them, which may have a threshold of its own.

    Else the measurement's, where a ratio has no outcome if images do not count as delivered, or a graph was seen not to
    do its work.
    """
    for check in checks:
        if check.decision is not None:
            return check.decision, check.outcome.value
    decision = measurement.decision
    proofs = (measurement.content, measurement.graph)
    uncounted = any(proof is not None and proof.problem is not None for proof in proofs)
    return decision, None if decision is None or uncounted else decision.outcome


def factor(log: float) -> float:
    """What this logarithm is of; a stored verdict may hold any number, and a factor ends where numbers do."""
    return math.exp(min(max(log, -_MOST_LOG), _MOST_LOG))


def _rows(blocks: Sequence[Block], decision: Decision | None) -> list[BlockRow]:
    rows = []
    valid = 0
    for block in blocks:
        valid += block.spoiled is None
        late = decision is not None and valid > decision.blocks_used
        remark = "taken after the decision" if late else ""
        if block.spoiled is not None:
            remark = f"discarded: {block.spoiled or 'no reason given'}"
        timed = {window.arm: window.images_per_s for window in block.windows}
        rows.append(
            BlockRow(
                number=block.index + 1,
                ratio=factor(block.log_ratio),
                rates={arm: timed[arm] for arm in Arm if 0 < timed.get(arm, 0) < math.inf},
                baseline=block.baseline,
                counted=not remark,
                remark=remark,
            )
        )
    return rows
