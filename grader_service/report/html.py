"""Renders one verdict as one page that opens offline: no script, no request, every text of a learner escaped."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from jinja2 import Environment

from grader_service.model.verdict import CheckVerdict, Mode, Outcome, StepVerdict, Verdict
from grader_service.report import deciding, delivered, formats, words
from grader_service.report.audience import Audience
from grader_service.report.changes import NOT_REACHED, Attempt, reached, since
from grader_service.report.once import decisive, told_once
from grader_service.report.plots import rate_plot, ratio_plot
from grader_service.report.shown import Shown, shown
from grader_service.report.templating import environment_of

_DETAILS_BUDGET = 40_000
"""Characters of staff details on one page, over all checks."""


@dataclass(frozen=True)
class Section:
    """One step with its checks."""

    anchor: str
    name: str
    step: StepVerdict | None
    """Null when a check names a step that the verdict does not list."""
    checks: tuple[CheckVerdict, ...]
    reached: bool
    """Whether the run got far enough for any of its checks to look."""


def render_report(verdict: Verdict, audience: Audience = Audience.LEARNER, attempt: Attempt | None = None) -> str:
    """The page; the same text whenever the same verdict is rendered."""
    seen = shown(verdict)
    return (
        _environment()
        .get_template(f"{audience.value}.html.j2")
        .render(
            verdict=verdict,
            attempt=attempt,
            changes=since(attempt.earlier, verdict) if attempt is not None and attempt.earlier is not None else (),
            stopped=verdict.stopped is not None,
            rehearsal=verdict.mode is Mode.REHEARSAL,
            summary=_summary(verdict),
            sections=_sections(verdict),
            cause=(cause := decisive(verdict)),
            page=told_once(verdict, sorted(verdict.checks, key=lambda check: check is not cause)),
            details_budget=_DETAILS_BUDGET // max(1, len(verdict.checks)),
            measurement=verdict.measurement,
            shown=seen,
            plots=_plots(seen),
            stages=_stages(verdict.provenance.timings_s),
        )
    )


@cache
def _environment() -> Environment:
    environment = environment_of("grader_service.report")
    environment.globals |= {
        "not_reached": NOT_REACHED,
        "stopped_and_passed": words.STOPPED_AND_PASSED,
        "status_meaning": words.STATUS_MEANING,
        "tier_meaning": words.TIER_MEANING,
        "arm_meaning": words.arm_meaning,
        "arm_signs": words.ARM_SIGNS,
        "baselines": words.baselines,
        "budget": deciding.budget,
        "ending": deciding.ending,
        "findings": delivered.findings,
        "graph_findings": delivered.graph_findings,
        "graph_problem": delivered.graph_problem,
        "host_effect": deciding.host,
        "problem": delivered.problem,
        "refusals": delivered.refusals,
        "rule": deciding.rule,
        "details_json": formats.details_json,
    }
    environment.filters |= {
        "busy": formats.busy,
        "claim": formats.claim,
        "claim_ratio": formats.claim_ratio,
        "loader": words.loader,
        "mebibytes": formats.mebibytes,
        "moment": formats.moment,
        "percent": formats.percent,
    }
    return environment


def _summary(verdict: Verdict) -> str:
    """The verdict's feedback, unless it only repeats what stands at the run and the checks further down the page."""
    open_checks = [check for check in verdict.checks if check.outcome is not Outcome.PASSED]
    said = all(check.outcome is Outcome.SKIPPED or check.feedback in verdict.feedback for check in open_checks)
    if not verdict.checks or not said or not (open_checks or verdict.stopped):
        return verdict.feedback
    done = len(verdict.checks) - len(open_checks)
    return f"{done} of {len(verdict.checks)} checks passed. What to do next stands at each step below."


def _sections(verdict: Verdict) -> list[Section]:
    steps: dict[str, StepVerdict | None] = {step.id: step for step in verdict.steps}
    for check in verdict.checks:
        steps.setdefault(check.step, None)
    sections = []
    for number, (step_id, step) in enumerate(steps.items(), start=1):
        checks = tuple(check for check in verdict.checks if check.step == step_id)
        name = (step.title if step is not None else None) or words.title(step_id)
        sections.append(Section(f"step-{number}", name, step, checks, reached(checks)))
    return sections


def _plots(seen: Shown | None) -> dict[str, object]:
    if seen is None or not seen.rows:
        return {}
    plots: dict[str, object] = {"ratio": ratio_plot(seen)}
    if seen.arms:
        plots["rates"] = rate_plot(seen)
    return plots


class Stage(NamedTuple):
    """One bar of the waterfall."""

    name: str
    took_s: float
    begins: float
    """Share of the whole that was over when it began; a stage that was entered again has one bar with all its time."""
    share: float
    """Of the whole."""


def _stages(timings_s: Mapping[str, float]) -> list[Stage]:
    """The stages in the order in which they began, each behind those before it."""
    took = {name: max(0.0, seconds) for name, seconds in timings_s.items()}
    whole = sum(took.values()) or 1.0
    found, over = [], 0.0
    for name, seconds in took.items():
        found.append(Stage(words.stage(name), seconds, over / whole, seconds / whole))
        over += seconds
    return found
