"""Operating characteristic of the decision on the ratio: how often it passes, fails, or says that it cannot tell.

    python bench/decision.py [--runs 100000] [--figure docs/figures/decision.svg]

Blocks are drawn with a known true ratio and go through the lab's own plan and bounds, many runs at once; a test proves
that this is `grader_service.measure.sequential_test.replay`, run by run. No clock and no GPU takes part.
"""

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grader_service.labs.specs import lab_text, read_lab
from grader_service.measure.sequential_test import SMALLEST_SD, bounds_at
from grader_service.model.lab import EARLY_BLOCKS, MeasurementPlan, threshold_of

RATIOS = (0.9, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.75, 2.0, 5.0)
_DRAWN = RATIOS[:-1]
ATTEMPTS = 20
SEED = 20261121


@dataclass(frozen=True)
class Noise:
    """How the blocks of a run scatter around the true ratio."""

    name: str
    sd: float
    """Of `ln(ratio)` per block."""
    tail_share: float = 0.0
    """Share of blocks that scatter `tail_factor` times as much."""
    tail_factor: float = 4.0

    def blocks(self, generator: np.random.Generator, ratio: float, shape: tuple[int, int]) -> "np.ndarray":
        """`ln(ratio)` of `[runs, blocks]`."""
        scatter = generator.normal(0.0, self.sd, shape)
        if self.tail_share:
            scatter *= np.where(generator.random(shape) < self.tail_share, self.tail_factor, 1.0)
        return math.log(ratio) + scatter


USUAL = (
    Noise("SD 2 %", 0.02),
    Noise("SD 5 %", 0.05),
    Noise("SD 10 %", 0.10),
    Noise("SD 5 %, every tenth block 20 %", 0.05, tail_share=0.1),
)
WORSE = (Noise("SD 15 %", 0.15), Noise("SD 30 %", 0.30), Noise("SD 40 %", 0.40), Noise("SD 60 %", 0.60))


@dataclass(frozen=True)
class Ends:
    """Where many runs ended."""

    outcome: "np.ndarray"
    """1 passed, -1 failed, 0 inconclusive; one per run."""
    blocks: "np.ndarray"
    """Blocks taken; one per run."""

    def share(self, outcome: int) -> float:
        """Share of runs with this outcome."""
        return float(np.mean(self.outcome == outcome))


def simulate(log_ratios: "np.ndarray", plan: MeasurementPlan, threshold: float, attempt: int = 1) -> Ends:
    """`replay` for many runs at once.

    Args:
        log_ratios: `[runs, blocks]`, as many blocks as the plan takes at most.
        plan: looks, extension and error budgets.
        threshold: the ratio that must be exceeded.
        attempt: 1-based.
    """
    outcome = np.zeros(len(log_ratios), int)
    blocks = np.full(len(log_ratios), plan.most_blocks)
    for size in plan.stops(attempt):
        seen = log_ratios[:, :size]
        if size == EARLY_BLOCKS and size not in plan.all_looks:
            leads = seen - math.log(threshold)
            passes, fails = leads.min(axis=1) > math.log(plan.glaring), leads.max(axis=1) < -math.log(plan.glaring)
            outcome[passes], outcome[fails] = 1, -1
            blocks[passes | fails] = size
            continue
        lead = seen.mean(axis=1) - math.log(threshold)
        sd = np.maximum(seen.std(axis=1, ddof=1), SMALLEST_SD)
        error = sd / math.sqrt(size)
        clear = sd <= plan.clear_most_sd
        bounds = bounds_at(plan, size, attempt)
        passes = (lead > bounds.pass_errors * error) | (clear & (lead > bounds.clear_pass))
        fails = ((-lead > bounds.fail_errors * error) | (clear & (-lead > bounds.clear_fail))) & ~passes
        ends = (outcome == 0) & (passes | fails)
        outcome[ends] = np.where(passes, 1, -1)[ends]
        blocks[ends] = size
    return Ends(outcome, blocks)


def ever_passed(
    generator: np.random.Generator, noise: Noise, ratio: float, plan: MeasurementPlan, threshold: float, runs: int
) -> list[float]:
    """Chance of a pass within the first 1, 2, … attempts, when nothing but the noise differs between them."""
    passed = np.zeros(runs, bool)
    chances = []
    for attempt in range(1, ATTEMPTS + 1):
        log_ratios = noise.blocks(generator, ratio, (runs, plan.most_blocks))
        passed |= simulate(log_ratios, plan, threshold, attempt).outcome == 1
        chances.append(float(passed.mean()))
    return chances


def main() -> None:
    """Prints the tables; draws the figure where it is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--lab", default="dali-pipelines")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    started = time.monotonic()
    lab = read_lab(lab_text(options.lab), options.lab)
    plan, threshold = lab.measurement, threshold_of(lab)
    generator = np.random.default_rng(SEED)
    print(f"threshold {threshold:g}, {options.runs:,} runs per row; shares of runs\n")
    curves: dict[str, list[Ends]] = {}
    for noise in USUAL:
        print(f"{noise.name}\n\n| true ratio | passed | failed | inconclusive | within 4 blocks | blocks |")
        print("| --- | --- | --- | --- | --- | --- |")
        for ratio in RATIOS:
            blocks = noise.blocks(generator, ratio, (options.runs, plan.most_blocks))
            ends = simulate(blocks, plan, threshold)
            curves.setdefault(noise.name, []).append(ends)
            early = float(np.mean((ends.outcome != 0) & (ends.blocks <= plan.looks[0])))
            print(
                f"| {ratio:.2f} | {ends.share(1):.4f} | {ends.share(-1):.4f} | {ends.share(0):.4f} | {early:.3f} "
                f"| {ends.blocks.mean():.1f} |"
            )
        print()
    print("\n".join(attempt_rows(generator, plan, threshold, options.runs)))
    if options.figure is not None:
        draw(curves, options.figure, threshold)
    print(f"\n{time.monotonic() - started:.1f} s")


def attempt_rows(generator: np.random.Generator, plan: MeasurementPlan, threshold: float, runs: int) -> Iterator[str]:
    """The table of resubmissions, line by line."""
    yield "Chance of ever passing within so many attempts\n"
    yield "| noise | true ratio | 1 | 2 | 5 | 10 | 20 |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for noise in (*USUAL, *WORSE):
        for ratio in (1.05, 1.1):
            chances = ever_passed(generator, noise, ratio, plan, threshold, runs)
            shown = " | ".join(f"{chances[attempt - 1]:.4f}" for attempt in (1, 2, 5, 10, 20))
            yield f"| {noise.name} | {ratio:.2f} | {shown} |"


def draw(curves: dict[str, list[Ends]], path: Path, threshold: float) -> None:
    """Draws what the tables say: outcomes on the left, blocks on the right."""
    import matplotlib as mpl  # noqa: PLC0415 - only where a figure is asked for
    from matplotlib.figure import Figure  # noqa: PLC0415

    # No date and no random ids: the same numbers give the same file.
    with mpl.rc_context({"svg.hashsalt": "decision", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        shares, counts = figure.subplots(1, 2)
        for name, ends in curves.items():
            (line,) = shares.plot(_DRAWN, [end.share(1) for end in ends[: len(_DRAWN)]], label=name)
            shares.plot(_DRAWN, [end.share(-1) for end in ends[: len(_DRAWN)]], color=line.get_color(), linestyle=":")
            counts.plot(_DRAWN, [end.blocks.mean() for end in ends[: len(_DRAWN)]], color=line.get_color())
        for axes, label in ((shares, "passed (line), failed (dots)"), (counts, "blocks, mean")):
            axes.axvline(threshold, color="0.5", linewidth=0.8)
            axes.set_xlabel("true ratio")
            axes.set_ylabel(label)
        counts.set_ylim(0)
        figure.legend(*shares.get_legend_handles_labels(), loc="outside upper center", ncols=len(curves), fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
