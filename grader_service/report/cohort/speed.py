"""What a batch changes about ratios and rates: of each submission that was measured on both sides."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from grader_service.model.regrade import Change
from grader_service.model.verdict_summary import RatioSummary, VerdictSummary
from grader_service.report.cohort import wording
from grader_service.report.cohort.plots import ArmRow, Interval, way
from grader_service.report.cohort.spread import Summary, summary

SIDES = ("before", "after")


@dataclass
class Speeds:
    """Ratios and rates before and after, in pairs."""

    ratios: list[tuple[Interval, Interval]] = field(default_factory=list)
    rates: dict[str, tuple["array[float]", "array[float]"]] = field(default_factory=dict)
    """Median images/s by arm, of submissions that have the arm on both sides."""
    one_sided: int = 0
    """Submissions with a ratio on one side only."""

    def add(self, change: Change) -> None:
        """Takes in what one submission has; one without a new verdict has nothing to compare."""
        if change.new is None:
            return
        old, new = change.old.ratio, change.new.ratio
        if old is not None and new is not None:
            self.ratios.append((_interval(old), _interval(new)))
        elif old is not new:
            self.one_sided += 1
        self._add_rates(change.old, change.new)

    @property
    def moved(self) -> bool:
        """Whether anything was measured anew: what is judged again from its evidence has the same figures."""
        return any(before != after for before, after in self.ratios) or any(
            before != after for before, after in self.rates.values()
        )

    @property
    def apart(self) -> int:
        """Of how many submissions the intervals before and after have nothing in common."""
        return sum(way(before, after) != 0 for before, after in self.ratios)

    def sides(self) -> tuple[Summary | None, Summary | None]:
        """Ratios before and after; null where no submission has both."""
        return summary(before for (before, *_), _ in self.ratios), summary(after for _, (after, *_) in self.ratios)

    def arms(self) -> list[ArmRow]:
        """Each arm, or each side of each where something was measured anew."""
        moved = self.moved
        rows = []
        for name in sorted(self.rates, key=wording.arm_order):
            before, after = self.rates[name]
            rows += (
                [arm_row(name, before, "before"), arm_row(name, after, "after")] if moved else [arm_row(name, after)]
            )
        return [row for row in rows if row is not None]

    def _add_rates(self, old: VerdictSummary, new: VerdictSummary) -> None:
        for arm in old.rates.keys() & new.rates.keys():
            pair = self.rates.setdefault(arm, (array("d"), array("d")))
            for values, side in zip(pair, (old, new), strict=True):
                values.append(side.rates[arm].median)


def arm_row(name: str, rates: Iterable[float], side: str = "") -> ArmRow | None:
    """An arm as plots and tables show it; null where it has no rates."""
    found = summary(rates)
    shown = f"{wording.arm(name)}, {side}" if side else wording.arm(name)
    return None if found is None else (wording.arm_class(name), wording.arm_sign(name), shown, found)


def _interval(ratio: RatioSummary) -> Interval:
    return ratio.ratio, ratio.low, ratio.high
