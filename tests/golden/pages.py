"""From kept evidence to the page that a learner sees; the same page whenever it is made."""

import io
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from rich.console import Console

from checks.registry import Registry
from grader_service.cli.render import show_verdict
from grader_service.errors import SubmissionRejected
from grader_service.judging import verdicts
from grader_service.judging.checks import judge
from grader_service.labs.catalogue import load_lab
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode, Verdict
from grader_service.report.html import render_report
from sandbox.api import SandboxFacts
from tests.golden.catalogue import LAB, Mistake, Result, mistakes
from tests.golden.visible import Line, visible

COLUMNS = 100
_WIDE = 5_000
_MOMENT = datetime(2026, 9, 1, 12, tzinfo=UTC)
_SANDBOX = SandboxFacts(name="process", isolated=False, image=None, image_digest=None, engine=None, gpu_access=None)
_SOURCE = re.compile(r"^ *>? +\d+ │ ")
_PRINTED = "  The last that it printed:"


@dataclass(frozen=True)
class Page:
    """What a learner sees of one verdict."""

    verdict: Verdict
    terminal: str
    """100 columns wide."""
    lines: tuple[Line, ...]
    """The terminal's text, no line wrapped."""
    html: str
    report: tuple[Line, ...]
    """The text of the report."""

    @property
    def first(self) -> str:
        """The first line of the terminal's text."""
        return self.lines[0].text

    @property
    def report_text(self) -> str:
        """The report's text as it is kept."""
        return "".join(f"{'  ' * line.verbatim}{line.text}\n" for line in self.report)


@cache
def registry() -> Registry:
    """The installed checks."""
    return Registry()


@cache
def lab() -> LabSpec:
    """As it is shipped: thresholds, points and titles."""
    return load_lab(LAB, registry())


def verdict_on(mistake: Mistake, document: dict[str, object]) -> Verdict:
    """The verdict that follows from what was kept; without a signature, and with fixed ids and time."""
    steps = lab().selected(())
    submission = Submission(
        submission_id=f"golden:{mistake.name}",
        lab=LAB,
        filename=mistake.filename,
        sha256="0" * 64,
        size_bytes=1,
        steps=(),
    )
    rejected = document.get("rejected")
    if isinstance(rejected, dict):
        error = SubmissionRejected(rejected["code"], rejected["feedback"])
        made = verdicts.rejected(submission, lab(), steps, error, _SANDBOX, Mode.REHEARSAL, run_id="golden")
    else:
        evidence = Evidence.model_validate_json(json.dumps(document["evidence"]))
        made = verdicts.compose(submission, lab(), steps, judge(evidence, steps, registry()), evidence)
    return made.model_copy(update={"verdict_id": "golden", "created_at": _MOMENT})


def page_of(verdict: Verdict) -> Page:
    """Terminal and report of a verdict, for its learner."""
    html = render_report(verdict)
    return Page(
        verdict=verdict,
        terminal=_printed(verdict, COLUMNS),
        lines=tuple(_marked(_printed(verdict, _WIDE))),
        html=html,
        report=tuple(visible(html)),
    )


@cache
def kept_page(name: str) -> Page:
    """The page that the kept evidence of a mistake gives.

    Raises:
        AssertionError: nothing is kept of it.
    """
    mistake = mistakes()[name]
    assert mistake.evidence.exists(), f"no run was kept: python -m tests.golden.run {name}"
    return page_of(verdict_on(mistake, json.loads(mistake.evidence.read_text())))


def write_texts(mistake: Mistake, page: Page) -> None:
    """Keeps both texts."""
    mistake.terminal.write_text(page.terminal)
    mistake.report.write_text(page.report_text)


def facts(verdict: Verdict) -> tuple[str, str, str, dict[str, Result]]:
    """Status and code, the run's code, and what each step's check answered."""
    run = "" if verdict.run is None else verdict.run.code
    return verdict.status.value, verdict.code, run, {one.step: (one.outcome.value, one.code) for one in verdict.checks}


def wanted(mistake: Mistake) -> tuple[str, str, str, dict[str, Result]]:
    """The facts that have to come out."""
    return mistake.status, mistake.code, mistake.run, mistake.results


def _printed(verdict: Verdict, width: int) -> str:
    out = io.StringIO()
    show_verdict(Console(file=out, width=width, highlight=False, color_system=None), verdict)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _marked(text: str) -> list[Line]:
    """Lines of the terminal; those of the learner's own source and output are verbatim."""
    lines, printed = [], False
    for line in text.splitlines():
        printed = printed and (not line or line.startswith("    "))
        lines.append(Line(line, verbatim=printed or bool(_SOURCE.match(line))))
        printed = printed or line == _PRINTED
    return lines
