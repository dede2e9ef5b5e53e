"""`grader regrade diff|flakes`: what a batch changes, and what varies although nothing changed."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from grader_service.cli.arguments import service_store
from grader_service.cli.diff_text import show_diff, show_flakes
from grader_service.cli.output import console, tell, write_text
from grader_service.errors import UsageError
from grader_service.exports.cohorts.rows import BATCH_COLUMNS, batch_rows
from grader_service.exports.registry import TableFormatName, write_table
from grader_service.model.base import neutralise
from grader_service.model.diff import Filter, Kind, Result
from grader_service.model.regrade import Batch, Change, ItemState, Progress
from grader_service.regrade.diff import diff_of
from grader_service.regrade.filters import rows_of
from grader_service.regrade.flakes import flakes_of

if TYPE_CHECKING:
    from grader_service.store.engine import Store

EXIT_CHANGES = 1
EXIT_UNFINISHED = 4
_UNFINISHED = (ItemState.WAITING, ItemState.WORKING, ItemState.NEEDS_ATTENTION, ItemState.CANCELLED)


def diff(
    batch: Annotated[str, typer.Argument(metavar="BATCH", help="As `grader regrade list` shows it.")],
    *,
    as_json: Annotated[str | None, typer.Option("--json", metavar="FILE|-", help="Write the diff as JSON.")] = None,
    learner: Annotated[str | None, typer.Option(help="Only this learner's submissions.")] = None,
    step: Annotated[str | None, typer.Option(help="Apply --from, --to and --changed to this step.")] = None,
    check: Annotated[str | None, typer.Option(help="Apply them to this check; else to the whole verdict.")] = None,
    old: Annotated[Result | None, typer.Option("--from", help="Only what had this result before.")] = None,
    new: Annotated[Result | None, typer.Option("--to", help="Only what has this result now.")] = None,
    code: Annotated[str | None, typer.Option(help="Only new verdicts with this code.")] = None,
    kind: Annotated[list[Kind] | None, typer.Option(help="Only submissions of this kind; repeatable.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what changed.")] = False,
    limit: Annotated[int, typer.Option(min=0, max=200, help="Submissions in each list.")] = 10,
    report: Annotated[str | None, typer.Option(metavar="FILE.html", help="Write a page that opens offline.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write a row for each submission.")] = None,
    parquet: Annotated[str | None, typer.Option(metavar="FILE", help="The same as Parquet.")] = None,
) -> None:
    """Show what a batch would change, or has changed; nothing is put in force.

    Exit codes: 0 nothing changes · 1 something changes · 4 not finished: some of the chosen submissions have no new
    verdict yet, or never will · 2 usage.
    """
    if [as_json, csv].count("-") > 1:
        raise UsageError("--json and --csv both write to standard output; name a file for one of them")
    chosen = _filter(
        learner=learner,
        step=step,
        check=check,
        old=old,
        new=new,
        code=code,
        kinds=tuple(kind or ()),
        differs=changed,
    )
    store = service_store()
    found, progress, changes = _opened(store, batch)
    shown = None
    if report is not None:
        from grader_service.report.cohort.pages import BatchRows

        shown = BatchRows()
    counted = shown.add if shown is not None else None
    made = diff_of(found, progress, changes(), movers=200, chosen=chosen, counted=counted)
    if chosen is not None and not made.count():
        _refuse_unknown(chosen, _parts(store, found, changes()))
        tell("grader: no submission of the batch matches these options")
    if as_json is not None:
        write_text(as_json, made.model_dump_json(indent=2) + "\n")
    tables: dict[TableFormatName, str | None] = {"csv": csv, "parquet": parquet}
    for form, target in tables.items():
        if target is not None:
            rows = batch_rows(rows_of(changes(), chosen))
            tell(f"grader: {write_table(target, form, rows, BATCH_COLUMNS)} rows written")
    if report is not None and shown is not None:
        write_text(report, shown.page(made))
    if "-" not in {as_json, csv, report}:
        show_diff(console(), made, limit)
    # 4 before 1: where it is not finished, changes may still come.
    raise typer.Exit(EXIT_UNFINISHED if made.open else EXIT_CHANGES if made.changed else 0)


def flakes(
    batch: Annotated[str, typer.Argument(metavar="BATCH", help="One that was planned with repetitions.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    limit: Annotated[int, typer.Option(min=0, max=200, help="Submissions that are listed.")] = 20,
) -> None:
    """Show which checks come out differently over repetitions of the same submission.

    Exit codes: 0 none varies · 1 some check or status varies · 4 none so far, and not finished · 2 usage.
    """
    found, progress, changes = _opened(service_store(), batch)
    if found.repeats < 2:
        raise UsageError(
            f"batch {batch} grades each submission once, which shows no variation; plan one with --repeat 2 or more"
        )
    ledger = flakes_of(found.repeats, changes())
    if as_json:
        typer.echo(ledger.model_dump_json(indent=2))
    else:
        show_flakes(console(), ledger, limit)
    open_items = sum(progress.counts.get(state, 0) for state in _UNFINISHED)
    raise typer.Exit(EXIT_CHANGES if ledger.varying else EXIT_UNFINISHED if open_items else 0)


def _filter(**conditions: object) -> Filter | None:
    if not any(conditions.values()):
        return None
    try:
        return Filter.model_validate(conditions)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option, came = first["loc"][0], neutralise(str(first["input"]))[:80]
        raise UsageError(f"--{option} does not take {came!r}: {first['msg']}") from error


def _opened(store: "Store", batch_id: str) -> tuple[Batch, Progress, Callable[[], Iterator[Change]]]:
    """The batch, how far it is, and what reads its submissions anew each time."""
    from grader_service.store import regrades

    found, progress = regrades.batch(store, batch_id), regrades.progress(store, batch_id)
    return found, progress, partial(regrades.changes, store, batch_id)


def _parts(store: "Store", batch: Batch, changes: Iterable[Change]) -> set[tuple[str, str]]:
    """Step and check of all that the batch knows: its labs', and those of verdicts on either side."""
    from grader_service.labs.specs import read_lab
    from grader_service.service.lab_texts import kept_text

    labs = [read_lab(kept_text(store, ref), f"lab {ref.lab}") for ref in batch.labs]
    known = {(step.id, check.id) for lab in labs for step in lab.steps for check in step.checks}
    for change in changes:
        for summary in (change.old, change.new):
            known.update((check.step, check.id) for check in (summary.checks if summary is not None else ()))
    return known


def _refuse_unknown(chosen: Filter, known: Collection[tuple[str, str]]) -> None:
    """A slip in the name of a step or check must not look like a batch that changes nothing."""
    steps, checks = ({pair[place] for pair in known} for place in (0, 1))
    for what, name, names in (("step", chosen.step, steps), ("check", chosen.check, checks)):
        if name is not None and name not in names:
            raise UsageError(f"the batch has no {what} {name}; its {what}s are {_listed(names)}")
    if chosen.step is not None and chosen.check is not None and (chosen.step, chosen.check) not in known:
        there = _listed(step for step, check in known if check == chosen.check)
        raise UsageError(f"the check {chosen.check} is not in the step {chosen.step}; it is in {there}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
