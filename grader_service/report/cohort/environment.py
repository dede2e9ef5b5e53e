"""The templates of the pages about many verdicts, with what they say numbers and groups in."""

from collections import Counter
from collections.abc import Mapping
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from grader_service.model.diff import CheckDiff, FlakeRow, Transition
from grader_service.model.verdict import Outcome
from grader_service.report import formats
from grader_service.report.cohort import wording
from grader_service.report.cohort.plots import share_bar
from grader_service.report.cohort.spread import Share, share
from grader_service.report.cohort.tally import CheckTally, version_order
from grader_service.report.templating import environment_of


@cache
def environment() -> Environment:
    """Escapes everything; shares macros and the look with the page of one verdict."""
    made = environment_of("grader_service.report.cohort", "grader_service.report")
    made.globals["marks"] = wording.MARKS
    made.filters |= {
        "arm_name": wording.arm,
        "bar": share_bar,
        "by_outcome": _by_outcome,
        "difference": _difference,
        "filters_of": _filters_of,
        "filters_of_move": _filters_of_move,
        "flake_bar": _flake_bar,
        "moment": wording.moment,
        "of_points": _of_points,
        "several": wording.several,
        "share_of": wording.percent,
        "signed": _signed,
        "signed_percent": _signed_percent,
        "sort_versions": _sort_versions,
        "versions": _versions,
        "with_lab": _with_lab,
    }
    return made


def _by_outcome(outcomes: Counter[Outcome]) -> list[tuple[str, int]]:
    counted = [(outcome.value, count) for outcome, count in outcomes.items() if count]
    return sorted(counted, key=lambda pair: wording.outcome_order(pair[0]))


def _difference(sides: tuple[Share, Share]) -> str:
    """Of two shares, in percentage points."""
    before, after = (side.value for side in sides)
    if before is None or after is None:
        return formats.ABSENT
    moved = round((after - before) * 100, 1)
    if not moved:
        return "0"
    return f"{_sign(moved)}{abs(moved):.1f} pp"


def _filters_of(check: CheckTally, outcome: str, labs: Mapping[str, int]) -> dict[str, str]:
    """The filters that leave the submissions counted here."""
    return _with_lab({"check": check.name, "outcome": outcome}, check.lab, len(labs) > 1)


def _filters_of_move(check: CheckDiff, move: Transition, several_labs: bool) -> dict[str, str]:  # noqa: FBT001 - a filter
    filters = {"kind": "compared", "check": f"{check.step}/{check.check}", "from": move.old, "to": move.new}
    return _with_lab(filters, check.lab, several_labs)


def _with_lab(filters: dict[str, str], lab: str, several_labs: bool) -> dict[str, str]:  # noqa: FBT001
    """Where the table has several labs, only those of this one."""
    return filters | ({"lab": lab} if several_labs else {})


def _flake_bar(row: FlakeRow) -> Markup:
    return share_bar(share(row.varying, row.submissions))


def _of_points(part: float | None, top: float | None = None) -> str:
    """A share of all points as points, or in per cent where these are not the same for all."""
    if part is None:
        return formats.ABSENT
    return wording.percent(part, 1) if top is None else formats.points(part * top)


def _signed(count: int) -> str:
    return f"{_sign(count)}{abs(count):,}"


def _signed_percent(part: float | None) -> str:
    if part is None:
        return formats.ABSENT
    return f"{_sign(part)}{wording.percent(abs(part), 1)}"


def _sign(value: float) -> str:
    return "+" if value > 0 else "−" if value < 0 else ""


def _sort_versions(versions: set[str]) -> list[str]:
    return sorted(versions, key=version_order)


def _versions(check: CheckDiff) -> str:
    """Which versions judged, before and after."""
    before = _sort_versions({seen.version for seen in check.versions if seen.before})
    after = _sort_versions({seen.version for seen in check.versions if seen.after})
    sides = [", ".join(versions) or "none" for versions in (before, after)]
    return f"version {sides[0]}" if sides[0] == sides[1] else f"version {sides[0]} to {sides[1]}"
