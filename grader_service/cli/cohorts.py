"""`grader cohort list|weight|export|report`: what cohorts there are, their shares, and their verdicts in force."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from grader_service.cli.arguments import operator, service_store
from grader_service.cli.loading import group
from grader_service.cli.output import console, say, table_of, tell, when, write_text
from grader_service.cli.selecting import check_outcomes, moment, named
from grader_service.errors import UsageError
from grader_service.exports.cohorts.bundle import write_bundle
from grader_service.exports.cohorts.rows import COHORT_COLUMNS, cohort_rows
from grader_service.exports.cohorts.texts import with_texts
from grader_service.exports.registry import CohortFormatName, write_table
from grader_service.host.garbage import look_seldom
from grader_service.model.base import neutralise
from grader_service.model.regrade import Selection
from grader_service.model.verdict import Status
from grader_service.report.formats import ABSENT
from grader_service.store import cohorts, fairness
from grader_service.store.engine import Store

app = group("Cohorts and their verdicts in force: list, weight, export, report.", callback=look_seldom)

_Cohort = Annotated[str, typer.Argument(metavar="COHORT", help="As `grader cohort list` shows it.")]
_Lab = Annotated[list[str] | None, typer.Option("--lab", metavar="ID", help="Only this lab; repeatable.")]
_Status = Annotated[list[Status] | None, typer.Option("--status", help="Only verdicts with this status; repeatable.")]
_Check = Annotated[
    list[str] | None,
    typer.Option("--check", metavar="ID[=OUTCOME]", help="Only verdicts with this check and outcome; repeatable."),
]
_Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Received then or later, such as 2026-09-21 or 2026-09-21T14:00Z."),
]
_Latest = Annotated[bool, typer.Option("--latest", help="Only the latest submission of each learner to each lab.")]


@app.command("list")
def list_cohorts(*, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List every cohort at every lab, the one with the newest submission first."""
    store = service_store()
    found, weights = cohorts.cohorts(store), fairness.weights(store)
    if as_json:
        typer.echo(
            json.dumps(
                [
                    asdict(item) | {"weight": weights.get(item.cohort or "", 1.0), "newest_at": when(item.newest_at)}
                    for item in found
                ],
                indent=2,
            )
        )
        return
    rows = (
        (
            neutralise(item.cohort) if item.cohort is not None else ABSENT,
            item.lab,
            *map(str, (item.submissions, item.learners, item.passed)),
            f"{weights.get(item.cohort or '', 1.0):g}",
            when(item.newest_at),
        )
        for item in found
    )
    console().print(table_of("cohort", "lab", "submissions", "learners", "passed", "weight", "newest", rows=rows))


@app.command("weight")
def weight(
    cohort: Annotated[str, typer.Argument(metavar="COHORT", help="Its name; '' for submissions without a cohort.")],
    share: Annotated[float, typer.Argument(metavar="WEIGHT", help="0.01 to 100; the default is 1.")],
) -> None:
    """Give a cohort a larger or a smaller share of the GPUs while several have runs waiting.

    A cohort with weight 2 gets twice the GPU time of one with weight 1. The first submission may come later.
    """
    fairness.set_weight(service_store(), cohort, share, operator())
    say(f"cohort {neutralise(cohort)!r} has weight {share:g}")


@app.command("export")
def export(
    cohort: _Cohort,
    *,
    form: Annotated[CohortFormatName, typer.Option("--format", help="What to write.")],
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE|-", help="File; - is standard output.")],
    lab: _Lab = None,
    status: _Status = None,
    check: _Check = None,
    since: _Since = None,
    latest: _Latest = False,
    allow_rehearsal: Annotated[
        bool,
        typer.Option("--allow-rehearsal", help="Export rehearsals to Gradescope too, as if they were grades."),
    ] = False,
) -> None:
    """Write the verdicts in force, one row or document for each submission. A missing score is never written as 0.

    In CSV an apostrophe is put in front of text that a spreadsheet would read as a formula.
    """
    if allow_rehearsal and form != "gradescope":
        raise UsageError("--allow-rehearsal needs --format gradescope; tables have rehearsals, marked in `mode`")
    store = service_store()
    selection = _selection(store, cohort, lab, status, check, since, latest=latest)
    entries = cohorts.entries(store, selection)
    if form != "gradescope":
        count = write_table(out, form, cohort_rows(entries), COHORT_COLUMNS)
        tell(f"grader: {count} submissions")
        return
    bundled = write_bundle(out, entries, partial(cohorts.documents, store), allow_rehearsal=allow_rehearsal)
    tell(f"grader: {bundled.documents} documents")
    if bundled.held_back:
        tell(f"grader: {bundled.held_back} submissions have no document; manifest.csv says why")


@app.command("report")
def report(
    cohort: _Cohort,
    *,
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE.html|-", help="File; - is standard output.")],
    lab: _Lab = None,
    status: _Status = None,
    check: _Check = None,
    since: _Since = None,
    latest: _Latest = False,
) -> None:
    """Write a page on a cohort that opens offline: scores, checks, measurements, and every submission."""
    from grader_service.report.cohort.pages import cohort_page

    store = service_store()
    chosen = cohorts.entries(store, _selection(store, cohort, lab, status, check, since, latest=latest))
    entries, texts = with_texts(chosen, partial(cohorts.documents, store))
    write_text(out, cohort_page(entries, title=neutralise(cohort), generated_at=time.time(), feedback=texts))


def _selection(
    store: Store,
    cohort: str,
    labs: Sequence[str] | None,
    statuses: Sequence[Status] | None,
    checks: Sequence[str] | None,
    since: str | None,
    *,
    latest: bool,
) -> Selection:
    known = {item.cohort for item in cohorts.cohorts(store)}
    if cohort not in known:
        raise UsageError(f"there is no submission of cohort {neutralise(cohort)[:100]!r}; see `grader cohort list`")
    return named(
        cohorts=[cohort],
        labs=labs,
        statuses=statuses,
        checks=check_outcomes(checks or ()),
        received_from=moment(since),
        latest_only=latest,
    )
